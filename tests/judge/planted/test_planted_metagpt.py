"""Roles on MetaGPT commit faults, and the rules prove them from the recorded spans."""

from __future__ import annotations

import pytest
from installed import installed
from judge.planted.planted_faults import exact
from scripted_llm import Reply

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT", allow_module_level=True)

from metagpt_programs import model, script, team

pytestmark = [pytest.mark.framework("metagpt"), pytest.mark.mast_trace(frameworks=["metagpt"])]
CODE = "Here is the code:\n```python\ndef add(a, b):\n    total = a + b\n    return total\n```"


@pytest.fixture(autouse=True, scope="module")
def served():
    """The one model of the session: MetaGPT reads its address when it is imported."""
    with model as started:
        yield started


async def develop(answers, *, rounds: int) -> None:
    """A coder and a reviewer work on an adder."""
    model.follow(answers)
    await team().run(n_round=rounds, idea="an adder")


async def test_a_sound_run_shows_nothing(captured_spans):
    """Code, review, end."""
    await develop(script, rounds=5)
    assert exact(captured_spans.trajectory()) == {}


async def test_code_that_the_rounds_left_unreviewed_is_found(captured_spans):
    """One round is enough for the coder only: limit, idle reviewer, unchecked code."""
    await develop(lambda _request: CODE, rounds=1)
    found = exact(captured_spans.trajectory())
    assert {"1.5", "3.2"} <= set(found)
    assert "Reviewer" in found["3.2"].reason


async def test_an_error_that_the_team_swallows_is_found(captured_spans):
    """MetaGPT goes on as if nothing had happened."""
    await develop(lambda _request: Reply("no such model", status=400), rounds=3)
    assert "3.1" in exact(captured_spans.trajectory())
