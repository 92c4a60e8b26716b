"""Agents on AG2 1.x commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from judge.planted.planted_faults import CODE, FAILED_TEST, STOCK, blamed, check, twins
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker, in_turn, messages_of, system_text

import mast_trace

pytest.importorskip("ag2.network", reason="needs AG2 1.x")

from ag2 import Agent, tool
from ag2.middleware import BaseMiddleware as Middleware
from ag2.middleware import HistoryLimiter
from ag2.network.transitions import (
    AgentTarget,
    FromSpeaker,
    TerminateTarget,
    Transition,
    TransitionGraph,
)
from ag2_programs import closed, model, network, silence

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


@twins
async def test_a_repeated_call(captured_spans, faulty):
    again = (LOOK_UP, LOOK_UP) if faulty else ()
    await ask("clerk", LOOK_UP, *again, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "1.3", faulty, quoted=STOCK, tools=["stock_level"] * 3)
    if faulty:
        assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


@twins
async def test_a_misstated_result(captured_spans, faulty):
    await ask("clerk", LOOK_UP, f"The tool returned {4171 if faulty else 4711} pieces.")
    trajectory = captured_spans.trajectory()
    check(trajectory, "2.6", faulty, quoted="4171")
    assert not faulty or "4171" in blamed(trajectory).text


@twins
async def test_a_review_that_passes_failed_tests(captured_spans, faulty):
    reply = "All tests passed. Approved!" if faulty else "The tests fail: rejected."
    await ask("reviewer", RUN_TESTS, reply)
    check(captured_spans.trajectory(), "3.3", faulty, quoted="All tests passed")


@twins
async def test_an_error_that_ends_the_run(captured_spans, faulty):
    if faulty:
        with pytest.raises(Exception, match="down"):
            await ask("clerk", LOOK_UP, Reply("down", status=500))
    else:
        await ask("clerk", LOOK_UP, "There are 4711 pieces.")
    check(captured_spans.trajectory(), "3.1", faulty)


@twins
async def test_a_result_that_was_lost_and_looked_up_again(captured_spans, faulty):
    """The clerk is shown only its last three events, and asks for a message that it had before."""
    replies = in_turn(LOOK_UP, "There are 4711 pieces.", LOOK_UP, "As I said, 4711 pieces.")
    with ScriptedLLM(replies) as server:
        clerk = Agent(
            "clerk",
            "Help.",
            config=model(server.url),
            tools=[stock_level],
            middleware=[HistoryLimiter(max_events=3 if faulty else 99)],
        )
        with mast_trace.run("stock"):
            answer = await clerk.ask(TASK)
            await answer.ask("Are you sure?")
    tools = ["stock_level"] * 2
    check(captured_spans.trajectory(), "1.4", faulty, quoted=STOCK, tools=tools)


@twins
async def test_a_finding_that_is_never_passed_on(captured_spans, faulty):
    answer = "I have done what was asked." if faulty else "There are 4711 pieces."
    script = by_speaker(
        {
            "lead": (
                Reply(calls=(Call("delegate", {"target": "clerk", "prompt": TASK}),)),
                "That is all we know.",
            ),
            "clerk": (LOOK_UP, answer),
        }
    )
    with ScriptedLLM(script) as server:
        lead = Agent("lead", "You are the lead.", config=model(server.url))
        clerk = Agent("clerk", "You are the clerk.", config=model(server.url), tools=[stock_level])
        async with network(lead, clerk):
            await lead.ask(TASK)
    check(captured_spans.trajectory(), "2.4", faulty, quoted=STOCK)


class Deaf(Middleware):
    """Keeps from a model what holds a word."""

    async def on_llm_call(self, call_next, events, context):
        return await call_next([e for e in events if "second" not in str(e)], context)


@twins
async def test_a_message_that_never_arrives(captured_spans, faulty):
    remarks = ("Here is my first remark.", "Here is my second remark.", "Here is my third remark.")

    def script(request):
        own = "You are bob" in system_text(request)
        return f"Answer {len(messages_of(request))}: what else is there?" if own else ""

    with ScriptedLLM(script) as server:
        middleware = [Deaf] if faulty else []
        alice = Agent("alice", "You are alice.", config=model(server.url))
        bob = Agent("bob", "You are bob.", config=model(server.url), middleware=middleware)
        async with network(alice, bob) as (hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            for number, remark in enumerate(remarks):
                await channel.send(remark)
                await silence(hub, channel.channel_id, 2 * number + 2)
            await channel.close()
    check(captured_spans.trajectory(), "2.5", faulty, quoted=remarks[1])


@twins
async def test_a_talk_that_only_its_limit_ends(captured_spans, faulty):
    with ScriptedLLM(lambda request: f"Word {len(messages_of(request))}.") as server:
        alice = Agent("alice", "You are alice.", config=model(server.url))
        bob = Agent("bob", "You are bob.", config=model(server.url))
        async with network(alice, bob) as (hub, (a, b)):
            graph = TransitionGraph(
                initial_speaker=a.agent_id,
                transitions=[
                    Transition(when=FromSpeaker(a.agent_id), then=AgentTarget(b.agent_id))
                ],
                default_target=AgentTarget(a.agent_id) if faulty else TerminateTarget(),
                max_turns=4,
            )
            knobs = {"graph": graph.to_dict()}
            channel = await a.open(type="workflow", target="bob", knobs=knobs)
            await channel.send("Ping")
            await closed(hub, channel.channel_id)
    check(captured_spans.trajectory(), "1.5", faulty)


@twins
async def test_a_call_that_was_never_made(captured_spans, faulty):
    reply = "I ran run_tests already." if faulty else "Somebody has to run the tests."
    with ScriptedLLM(in_turn(reply, RUN_TESTS, "The tests fail.")) as server:
        clerk = Agent("clerk", "Help.", config=model(server.url), tools=[run_tests])
        with mast_trace.run("tests"):
            answer = await clerk.ask("Do the tests pass?")
            await answer.ask("Are you sure?")
    check(captured_spans.trajectory(), "2.6", faulty, quoted="I ran run_tests")


@twins
async def test_code_that_nobody_checks(captured_spans, faulty):
    with ScriptedLLM(in_turn(CODE, RUN_TESTS, "The tests fail.")) as server:
        coder = Agent("coder", "Help.", config=model(server.url), tools=[run_tests])
        with mast_trace.run("code"):
            answer = await coder.ask("Write a function that adds.")
            if not faulty:
                await answer.ask("Are you sure?")
    check(captured_spans.trajectory(), "3.2", faulty, quoted="Here it is")


class Forgetful(Middleware):
    """Shows a model nothing but the task."""

    async def on_llm_call(self, call_next, events, context):
        return await call_next(events[:1], context)


@twins
async def test_an_agent_that_forgets_the_conversation(captured_spans, faulty):
    with ScriptedLLM(in_turn("Part one.", "Part two.", "First of all, part one.")) as server:
        writer = Agent("writer", "Write.", config=model(server.url))
        with mast_trace.run("book"):
            first = await writer.ask(TASK)
            second = await first.ask("Go on.")
            await second.ask("Go on, please.", middleware=[Forgetful] if faulty else [])
    check(captured_spans.trajectory(), "2.1", faulty, quoted="First of all, part one.")
