"""The first run of the documentation is judged as its page shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from code_blocks import PAGES, blocks_of

from mast_trace_judge.local.layers import judge_by_rules

if TYPE_CHECKING:
    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.documents

PAGE = PAGES / "start" / "first-run.md"


@pytest.mark.mast_trace(frameworks=[])
def test_the_verdict_is_that_of_the_page(captured_spans: CapturedSpans) -> None:
    """The steps, the decisive one, and the finding with its evidence."""
    [program] = [block for block in blocks_of(PAGE) if "first-run" in block.words]
    [shown] = [block.text for block in blocks_of(PAGE) if block.language == "text"]
    exec(compile(program.text, program.place, "exec"), {"__name__": "__main__"})

    run = captured_spans.trajectory()
    assert [step.agent for step in run.steps] == ["researcher", "researcher", "planner"]
    assert all(step.text in shown for step in run.steps)
    assert f"{run.outcome}: {run.outcome_reason}" in shown

    found = judge_by_rules(run)
    decisive = found.attribution.decisive
    assert decisive is not None
    assert f"Decisive error: {decisive.agent}, step {decisive.step} (exact finding)" in shown
    assert found.modes[0].reason in shown
    assert found.modes[0].evidence.value == "exact"
