"""Agents on AG2 1.x commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from judge.planted.planted_faults import FAILED_TEST, STOCK, blamed, exact, tools_of
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker, in_turn, messages_of, system_text

import mast_trace

pytest.importorskip("ag2.network", reason="needs AG2 1.x")

from ag2 import Agent, tool
from ag2.middleware import BaseMiddleware as Middleware
from ag2.middleware import HistoryLimiter
from ag2_programs import model, network, round_robin, silence

pytestmark = [pytest.mark.framework("ag2"), pytest.mark.mast_trace(frameworks=["ag2"])]
TASK = "How many pieces of item 7 are in stock?"
LOOK_UP = Reply(calls=(Call("stock_level", {"item": 7}),))
RUN_TESTS = Reply(calls=(Call("run_tests", {"path": "tests"}),))


@tool
def stock_level(item: int) -> str:
    """Return the stock of an item."""
    return STOCK


@tool
def run_tests(path: str) -> str:
    """Run the tests."""
    raise ValueError(FAILED_TEST)


async def ask(name: str, *replies: Reply | str) -> None:
    """One agent with both tools answers the task."""
    with ScriptedLLM(in_turn(*replies)) as server:
        tools = [stock_level, run_tests]
        await Agent(name, "Help.", config=model(server.url), tools=tools).ask(TASK)


async def test_a_sound_run_shows_nothing(captured_spans):
    """One look-up, and the answer says what it returned."""
    await ask("clerk", LOOK_UP, "There are 4711 pieces.")
    assert exact(captured_spans.trajectory()) == {}


async def test_a_repeated_call_is_found(captured_spans):
    """The clerk looks the same thing up three times; the first repetition decides."""
    await ask("clerk", LOOK_UP, LOOK_UP, LOOK_UP, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"1.3"}
    assert tools_of(trajectory, found["1.3"]) == ["stock_level"] * 3
    assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


async def test_a_misstated_result_is_found(captured_spans):
    """The tool says 4711, the clerk says that it said 4171."""
    await ask("clerk", LOOK_UP, "The tool returned 4171 pieces.")
    trajectory = captured_spans.trajectory()
    assert set(exact(trajectory)) == {"2.6"}
    assert "4171" in blamed(trajectory).text


async def test_a_review_that_passes_failed_tests_is_found(captured_spans):
    """The reviewer's own run of the tests fails, and it approves."""
    await ask("reviewer", RUN_TESTS, "All tests passed. Approved!")
    assert set(exact(captured_spans.trajectory())) == {"3.3"}


async def test_an_error_that_ends_the_run_is_found(captured_spans):
    """The model's server is down."""
    with pytest.raises(Exception, match="down"):
        await ask("clerk", LOOK_UP, Reply("down", status=500))
    assert "3.1" in exact(captured_spans.trajectory())


async def test_a_result_that_was_lost_and_looked_up_again_is_found(captured_spans):
    """The clerk is shown only its last three events, and asks for what it had been told."""
    replies = in_turn(LOOK_UP, "There are 4711 pieces.", LOOK_UP, "As I said, 4711 pieces.")
    with ScriptedLLM(replies) as server:
        clerk = Agent(
            "clerk",
            "Help.",
            config=model(server.url),
            tools=[stock_level],
            middleware=[HistoryLimiter(max_events=3)],
        )
        with mast_trace.run("stock"):
            answer = await clerk.ask(TASK)
            await answer.ask("Are you sure?")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert "1.4" in found
    assert tools_of(trajectory, found["1.4"]) == ["stock_level"] * 2


async def delegated(answer: str, end: str) -> None:
    """A lead asks a clerk within its own turn; the clerk looks the stock up."""
    script = by_speaker(
        {
            "lead": (Reply(calls=(Call("delegate", {"target": "clerk", "prompt": TASK}),)), end),
            "clerk": (LOOK_UP, answer),
        }
    )
    with ScriptedLLM(script) as server:
        lead = Agent("lead", "You are the lead.", config=model(server.url))
        clerk = Agent("clerk", "You are the clerk.", config=model(server.url), tools=[stock_level])
        async with network(lead, clerk):
            await lead.ask(TASK)


async def test_a_finding_that_is_never_passed_on_is_found(captured_spans):
    """The clerk looks the stock up and tells the lead nothing of it."""
    await delegated("I have done what was asked.", "We do not know how many there are.")
    found = exact(captured_spans.trajectory())
    assert "2.4" in found
    assert STOCK in found["2.4"].quotes


async def test_a_finding_that_is_passed_on_is_no_withholding(captured_spans):
    """The clerk says what it found."""
    await delegated("There are 4711 pieces.", "There are 4711 pieces of item 7.")
    assert exact(captured_spans.trajectory()) == {}


class Deaf(Middleware):
    """Keeps from a model what holds a word."""

    async def on_llm_call(self, call_next, events, context):
        return await call_next([e for e in events if "second" not in str(e)], context)


async def test_a_message_that_never_arrives_is_found(captured_spans):
    """Bob's model is shown Alice's first and third remark, not the second one."""
    remarks = ("Here is my first remark.", "Here is my second remark.", "Here is my third remark.")

    def script(request):
        own = "You are bob" in system_text(request)
        return f"Answer {len(messages_of(request))}: what else is there?" if own else ""

    with ScriptedLLM(script) as server:
        alice = Agent("alice", "You are alice.", config=model(server.url))
        bob = Agent("bob", "You are bob.", config=model(server.url), middleware=[Deaf])
        async with network(alice, bob) as (hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            for number, remark in enumerate(remarks):
                await channel.send(remark)
                await silence(hub, channel.channel_id, 2 * number + 2)
            await channel.close()
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"2.5"}
    assert "second" in trajectory.steps[found["2.5"].steps[0]].text


async def test_a_talk_that_only_its_limit_ends_is_found(captured_spans):
    """Two agents take turns until the workflow's limit."""
    with ScriptedLLM(lambda request: f"Word {len(messages_of(request))}.") as server:
        await round_robin(server.url)
    assert "1.5" in exact(captured_spans.trajectory())


async def test_code_that_nobody_checks_is_found(captured_spans):
    """The run ends on what the coder has written."""
    code = "Here it is:\n```python\ndef add(a, b):\n    total = a + b\n    return total\n```"
    await ask("coder", code)
    assert set(exact(captured_spans.trajectory())) == {"3.2"}


async def test_an_agent_that_forgets_the_conversation_is_found(captured_spans):
    """In its third turn the writer is shown nothing but the task."""
    with ScriptedLLM(in_turn("Part one.", "Part two.", "First of all, part one.")) as server:
        writer = Agent("writer", "Write.", config=model(server.url))
        with mast_trace.run("book"):
            first = await writer.ask(TASK)
            second = await first.ask("Go on.")
            await second.ask("Go on, please.", middleware=[Forgetful])
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"2.1"}
    assert trajectory.steps[found["2.1"].steps[0]].text == "First of all, part one."


class Forgetful(Middleware):
    """Shows a model nothing but the task."""

    async def on_llm_call(self, call_next, events, context):
        return await call_next(events[:1], context)
