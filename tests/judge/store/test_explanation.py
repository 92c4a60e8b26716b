"""Verdicts in words."""

from judge.store.verdicts import verdict

from mast_trace_judge.explanation import explain


def test_says_what_decided_the_failure_and_how_sure_it_is():
    """Outcome, decisive step with reason and fix, modes with their evidence and quotes, the judge."""
    text = explain(verdict())
    assert "The run failed (90%)." in text
    assert "Decisive error: step 3 of researcher (70%)." in text
    assert "Smallest fix: say 118" in text
    assert "Otherwise: step 4 of planner (20%)." in text
    assert "2.6 Reasoning-action mismatch (90%, said by the model" in text
    assert '"a "quoted" line and another"' in text
    assert "version v1, 4 calls, 0.0042 USD" in text


def test_says_why_there_is_no_score():
    """An unscored run is neither passed nor failed in words."""
    text = explain(
        verdict(status="unscored", status_reason="no steps", outcome="unknown", modes=())
    )
    assert text.startswith("Unscored: no steps.")
    assert "succeeded" not in text


def test_says_where_to_look_when_no_step_is_certain():
    """An abstaining judge names its candidates and no decisive step."""
    text = explain(verdict(decisive=None, abstained=True))
    assert "Look first at step 3 of researcher (70%), step 4 of planner (20%)" in text


def test_says_that_nothing_was_found():
    """A success without findings says so, and what a layer could not contribute."""
    success = verdict(
        outcome="success",
        failure_probability=0.0,
        modes=(),
        decisive=None,
        candidates=(),
        method="local",
        calls=0,
        status_reason="without the model: it was away",
    )
    text = explain(success)
    assert "The run succeeded (100%)." in text
    assert "No failure mode was found." in text
    assert "Note: without the model: it was away." in text
    assert "Judged by rules and local attribution" in text
