"""Ours equals the truth in every cell of the coverage benchmark's table for CrewAI."""

from __future__ import annotations

import pytest

pytest.importorskip("crewai_programs")  # before CrewAI is imported: its own telemetry off

import crewai

if int(crewai.__version__.split(".")[0]) < 1:
    pytest.skip("the program's tool calls are those of CrewAI 1.x", allow_module_level=True)

from coverage_programs import truth_and_record

pytestmark = pytest.mark.framework("crewai")


def test_the_record_is_the_truth(monkeypatch):
    """A crew with a delegation, three runs, two at the same time."""
    truth, record = truth_and_record("crewai", monkeypatch)
    assert record == truth
