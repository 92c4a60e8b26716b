"""Healthy programs, recorded for real: no mode is shown, and no step is called decisive."""

import pytest
from judge.healthy import conversations, figures, repeated_work  # noqa: F401  # they enter their programs
from judge.healthy.healthy_programs import PROGRAMS

from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.verdict import Evidence


@pytest.mark.parametrize("name", PROGRAMS)
def test_nobody_is_accused(captured_spans, name):
    """No agent is accused, neither for sure nor possibly; nothing is exact."""
    PROGRAMS[name]()
    found = judge_by_rules(captured_spans.trajectory())
    told = [(mode.code, mode.probability, mode.reason) for mode in found.modes]
    assert told == []
    assert not any(mode.evidence is Evidence.EXACT for mode in found.modes)
    assert not found.names_a_step
    assert found.outcome.outcome != "failure"
    assert not found.addressed
