"""Agents on AG2 classic (autogen) commit faults, and the rules prove them from the spans."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from judge.planted.planted_faults import CODE, FAILED_TEST, STOCK, blamed, check, exact, twins
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker, in_turn

autogen = pytest.importorskip("autogen", reason="needs AG2 classic")
if not hasattr(autogen, "ConversableAgent"):
    pytest.skip("needs AG2 classic", allow_module_level=True)

from autogen.agentchat.contrib.capabilities.transform_messages import TransformMessages
from autogen.agentchat.contrib.capabilities.transforms import MessageHistoryLimiter

pytestmark = [pytest.mark.framework("autogen"), pytest.mark.mast_trace(frameworks=["autogen"])]
TASK = "How many pieces of item 7 are in stock?"
LOOK_UP = Reply(calls=(Call("stock_level", {"item": 7}),))
RUN_TESTS = Reply(calls=(Call("run_tests", {"path": "tests"}),))


def stock_level(item: int) -> str:
    """Return the stock of an item."""
    return STOCK


def run_tests(path: str) -> str:
    """Run the tests."""
    raise ValueError(FAILED_TEST)


def agent(server: ScriptedLLM, name: str):
    """An agent with a model."""
    config = {"model": "gpt-4o", "base_url": server.url, "api_key": "scripted"}
    return autogen.ConversableAgent(
        name,
        system_message=f"You are the {name}.",
        llm_config={"config_list": [config], "cache_seed": None},
        human_input_mode="NEVER",
    )


def boss(runs_tools_of=None, *, signal: str = "DONE"):
    """The agent that asks, runs the tools of an agent, and goes on until it gets the signal."""
    made = autogen.ConversableAgent(
        "boss",
        llm_config=False,
        human_input_mode="NEVER",
        default_auto_reply="Go on.",
        is_termination_msg=lambda message: signal in str(message.get("content")),
    )
    for function in (stock_level, run_tests) if runs_tools_of else ():
        autogen.register_function(
            function, caller=runs_tools_of, executor=made, description=function.__doc__
        )
    return made


def chat(name: str, *replies: Reply | str, signal: str = "DONE", prepare=None) -> None:
    """An agent with both tools answers a boss, who runs them for it."""
    with ScriptedLLM(in_turn(*replies)) as server:
        asked = agent(server, name)
        if prepare is not None:
            prepare(asked)
        boss(asked, signal=signal).initiate_chat(asked, message=TASK, max_turns=6)


@twins
def test_a_repeated_call(captured_spans, faulty):
    again = (LOOK_UP, LOOK_UP) if faulty else ()
    chat("clerk", LOOK_UP, *again, "There are 4711 pieces. DONE")
    trajectory = captured_spans.trajectory()
    check(trajectory, "1.3", faulty, quoted=STOCK, tools=["stock_level"] * 3)
    if faulty:
        assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


@twins
def test_a_result_that_was_lost_and_looked_up_again(captured_spans, faulty):
    """AG2's own limiter leaves the result out of what the clerk's model is shown."""

    def limit(clerk):
        limiter = MessageHistoryLimiter(max_messages=3, keep_first_message=True)
        if faulty:
            TransformMessages(transforms=[limiter]).add_to_agent(clerk)

    chat("clerk", LOOK_UP, "4711 pieces.", LOOK_UP, "As I said, 4711. DONE", prepare=limit)
    lost = {"tools": ["stock_level"] * 2, "follows": ["1.3"]}
    check(captured_spans.trajectory(), "1.4", faulty, quoted=STOCK, **lost)


@twins
def test_a_chat_that_ignores_the_signal_to_end(captured_spans, faulty):
    """The clerk says TERMINATE, and the boss, who waits for another word, goes on to the limit."""
    signal = "no such word" if faulty else "TERMINATE"
    chat("clerk", LOOK_UP, "There are 4711 pieces. TERMINATE", signal=signal)
    check(captured_spans.trajectory(), "1.5", faulty, quoted="TERMINATE")


@twins
def test_an_agent_that_forgets_the_conversation(captured_spans, faulty):
    turns = itertools.count()

    def forgetful(writer):
        writer.register_hook(
            "process_all_messages_before_reply",
            lambda messages: messages[:1] if next(turns) == 2 and faulty else messages,
        )

    chat("writer", "Part one.", "Part two.", "First, part one. DONE", prepare=forgetful)
    check(captured_spans.trajectory(), "2.1", faulty, quoted="First, part one.")


@twins
def test_a_finding_that_is_never_passed_on(captured_spans, faulty):
    """The clerk tells nothing of the stock, and a writer is given its last word as the context.

    The boss executes the tool and has seen the stock, so that nobody can say that the clerk kept it back.
    """
    reply = "I have done what was asked. DONE" if faulty else "There are 4711 pieces. DONE"
    script = by_speaker({"clerk": (LOOK_UP, reply), "writer": ("That is all we know. DONE",)})
    with ScriptedLLM(script) as server:
        clerk, writer = agent(server, "clerk"), agent(server, "writer")
        boss(clerk).initiate_chats(
            [
                {"recipient": clerk, "message": TASK, "summary_method": "last_msg"},
                {"recipient": writer, "message": "Write a report."},
            ]
        )
    assert "2.4" not in exact(replace(captured_spans.trajectory(), outcome="failure"))


@twins
def test_a_message_that_never_arrives(captured_spans, faulty):
    remarks = [f"Here is my {number} remark." for number in ("first", "second", "third")]
    script = by_speaker({"alice": remarks, "bob": ("What else?", "Is that so?", "Done.")})
    with ScriptedLLM(script) as server:
        alice, bob = agent(server, "alice"), agent(server, "bob")
        if faulty:
            bob.register_hook(
                "process_all_messages_before_reply",
                lambda messages: [m for m in messages if "second" not in str(m["content"])],
            )
        bob.initiate_chat(alice, message="What do you think?", max_turns=3)
    check(captured_spans.trajectory(), "2.5", faulty, quoted=remarks[1], follows=["1.5"])


@twins
def test_a_misstated_result(captured_spans, faulty):
    chat("clerk", LOOK_UP, f"The tool returned {4171 if faulty else 4711} pieces. DONE")
    check(captured_spans.trajectory(), "2.6", faulty, quoted="4171")


@twins
def test_a_call_that_was_never_made(captured_spans, faulty):
    """The clerk says that it has run the tests, before it does."""
    reply = "I ran run_tests already." if faulty else "Somebody has to run the tests."
    chat("clerk", reply, RUN_TESTS, "The tests fail. DONE")
    check(captured_spans.trajectory(), "2.6", faulty, quoted="I ran run_tests")


@twins
def test_an_error_that_ends_the_run(captured_spans, faulty):
    if faulty:
        with pytest.raises(Exception, match="no such model"):
            chat("clerk", LOOK_UP, Reply("no such model", status=400))
    else:
        chat("clerk", LOOK_UP, "There are 4711 pieces. DONE")
    check(captured_spans.trajectory(), "3.1", faulty)


@twins
def test_code_that_nobody_checks(captured_spans, faulty):
    done = (f"{CODE} DONE",) if faulty else (CODE, RUN_TESTS, "The tests fail. DONE")
    chat("coder", *done)
    check(captured_spans.trajectory(), "3.2", faulty, quoted="Here it is")


@twins
def test_a_review_that_passes_failed_tests(captured_spans, faulty):
    reply = "All tests passed. Approved!" if faulty else "The tests fail: rejected."
    chat("reviewer", RUN_TESTS, f"{reply} DONE")
    check(captured_spans.trajectory(), "3.3", faulty, quoted="All tests passed")
