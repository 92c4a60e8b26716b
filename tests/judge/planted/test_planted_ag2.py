"""Agents on AG2 1.x commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from judge.planted.planted_faults import FAILED_TEST, STOCK, blamed, exact, tools_of
from scripted_llm import Call, Reply, ScriptedLLM, in_turn

pytest.importorskip("ag2.network", reason="needs AG2 1.x")

from ag2 import Agent, tool
from ag2.config import OpenAIConfig

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
        config = OpenAIConfig(
            model="scripted", base_url=server.url, api_key="scripted", max_retries=0
        )
        await Agent(name, "Help.", config=config, tools=[stock_level, run_tests]).ask(TASK)


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
