"""Agents on CrewAI commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from installed import installed
from judge.planted.planted_faults import FAILED_TEST, STOCK, blamed, exact, tools_of
from scripted_llm import Call, ScriptedLLM

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI", allow_module_level=True)

import crewai
from crewai.tools import tool
from crewai_programs import final, solo, use

pytestmark = [pytest.mark.framework("crewai"), pytest.mark.mast_trace(frameworks=["crewai"])]
LOOK_UP = Call("find_stock", {"item": 7})
RUN_TESTS = Call("run_tests", {"path": "tests"})


@tool("find_stock")
def find_stock(item: int) -> str:
    """Return the stock of an item."""
    return STOCK


@tool("run_tests")
def run_tests(path: str) -> str:
    """Run the tests."""
    raise ValueError(FAILED_TEST)


# CrewAI answers a repeated call from its own cache; a tool may refuse that.
find_stock.cache_function = lambda *_: False


def react_only() -> bool:
    """Whether the version asks for tools in text, and answers a repeated call itself."""
    return crewai.__version__.startswith("0.")


def kick_off(*replies: Call | str) -> None:
    """A crew of one agent with both tools does its task."""
    remaining = iter(replies)

    def script(request):
        reply = next(remaining)
        return use(request, reply) if isinstance(reply, Call) else final(request, reply)

    with ScriptedLLM(script) as server:
        solo(server, tools=(find_stock, run_tests)).kickoff()


def test_a_sound_run_shows_nothing(captured_spans):
    """One look-up, and the answer says what it returned."""
    kick_off(LOOK_UP, "There are 4711 pieces.")
    assert exact(captured_spans.trajectory()) == {}


def test_a_misstated_result_is_found(captured_spans):
    """The tool says 4711, the agent says that it said 4171."""
    kick_off(LOOK_UP, "The tool returned 4171 pieces.")
    trajectory = captured_spans.trajectory()
    assert set(exact(trajectory)) == {"2.6"}
    assert "4171" in blamed(trajectory).text


@pytest.mark.skipif(react_only(), reason="this CrewAI refuses to repeat a call")
def test_a_repeated_call_is_found(captured_spans):
    """The agent looks the same thing up again after another question."""
    other = Call("find_stock", {"item": 8})
    kick_off(LOOK_UP, other, LOOK_UP, other, "There are 4711 pieces.")
    trajectory = captured_spans.trajectory()
    found = exact(trajectory)
    assert set(found) == {"1.3"}
    assert set(tools_of(trajectory, found["1.3"])) == {"find_stock"}


def test_an_error_that_ends_the_run_is_found(captured_spans):
    """The model's server fails for good."""
    with pytest.raises(Exception, match=r"."):
        kick_off(LOOK_UP)
    assert "3.1" in exact(captured_spans.trajectory())
