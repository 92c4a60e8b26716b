"""Agents on AG2 classic (autogen) commit faults, and the rules prove them from the spans."""

from __future__ import annotations

import pytest
from judge.planted.planted_faults import FAILED_TEST, STOCK, blamed, exact, tools_of
from scripted_llm import Call, Reply, ScriptedLLM, in_turn

autogen = pytest.importorskip("autogen", reason="needs AG2 classic")
if not hasattr(autogen, "ConversableAgent"):
    pytest.skip("needs AG2 classic", allow_module_level=True)

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


def chat(name: str, *replies: Reply | str, signal: str = "DONE") -> None:
    """An agent with both tools answers a boss, who runs them for it."""
    with ScriptedLLM(in_turn(*replies)) as server:
        config = {
            "config_list": [{"model": "gpt-4o", "base_url": server.url, "api_key": "scripted"}],
            "cache_seed": None,
        }
        agent = autogen.ConversableAgent(name, system_message="Help.", llm_config=config)
        boss = autogen.ConversableAgent(
            "boss",
            llm_config=False,
            human_input_mode="NEVER",
            default_auto_reply="Go on.",
            is_termination_msg=lambda message: signal in str(message.get("content")),
        )
        for function in (stock_level, run_tests):
            autogen.register_function(
                function, caller=agent, executor=boss, description=function.__doc__
            )
        boss.initiate_chat(agent, message=TASK, max_turns=6)


def test_a_sound_run_shows_nothing(captured_spans):
    """One look-up, and the answer says what it returned."""
    chat("clerk", LOOK_UP, "There are 4711 pieces. DONE")
    assert exact(captured_spans.trajectory()) == {}


def test_a_repeated_call_is_found(captured_spans):
    """The clerk looks the same thing up three times; the first repetition decides."""
    chat("clerk", LOOK_UP, LOOK_UP, LOOK_UP, "There are 4711 pieces. DONE")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"1.3"}
    assert tools_of(trajectory, found["1.3"]) == ["stock_level"] * 3
    assert (blamed(trajectory).agent, blamed(trajectory).tool) == ("clerk", "stock_level")


def test_a_misstated_result_is_found(captured_spans):
    """The tool says 4711, the clerk says that it said 4171."""
    chat("clerk", LOOK_UP, "The tool returned 4171 pieces. DONE")
    assert set(exact(captured_spans.trajectory())) == {"2.6"}


def test_a_review_that_passes_failed_tests_is_found(captured_spans):
    """The reviewer's run of the tests fails, and it approves."""
    chat("reviewer", RUN_TESTS, "All tests passed. Approved! DONE")
    assert set(exact(captured_spans.trajectory())) == {"3.3"}


def test_a_chat_that_ignores_the_signal_to_end_is_found(captured_spans):
    """The clerk says TERMINATE, and the boss, who waits for another word, goes on to the limit."""
    chat("clerk", LOOK_UP, "There are 4711 pieces. TERMINATE", signal="no such word")
    found = exact(captured_spans.trajectory())
    assert "1.5" in found
    assert any(quote.endswith("TERMINATE") for quote in found["1.5"].quotes)


def test_code_that_nobody_checks_is_found(captured_spans):
    """The chat ends on what the coder has written."""
    code = "Here it is:\n```python\ndef add(a, b):\n    total = a + b\n    return total\n```\nDONE"
    chat("coder", code)
    assert set(exact(captured_spans.trajectory())) == {"3.2"}


def test_an_error_that_ends_the_run_is_found(captured_spans):
    """The model's server refuses the second call."""
    with pytest.raises(Exception, match="no such model"):
        chat("clerk", LOOK_UP, Reply("no such model", status=400))
    assert "3.1" in exact(captured_spans.trajectory())


def test_an_agent_that_forgets_the_conversation_is_found(captured_spans):
    """In its third turn the writer's model is shown nothing but the task."""
    turns = iter(range(9))

    def forget(messages):
        return messages[:1] if next(turns) == 2 else messages

    with ScriptedLLM(in_turn("Part one.", "Part two.", "First, part one. DONE")) as server:
        config = {
            "config_list": [{"model": "gpt-4o", "base_url": server.url, "api_key": "scripted"}],
            "cache_seed": None,
        }
        writer = autogen.ConversableAgent("writer", system_message="Write.", llm_config=config)
        writer.register_hook("process_all_messages_before_reply", forget)
        boss = autogen.ConversableAgent(
            "boss",
            llm_config=False,
            human_input_mode="NEVER",
            default_auto_reply="Go on.",
            is_termination_msg=lambda message: "DONE" in str(message.get("content")),
        )
        boss.initiate_chat(writer, message=TASK, max_turns=6)
    assert "2.1" in exact(captured_spans.trajectory())
