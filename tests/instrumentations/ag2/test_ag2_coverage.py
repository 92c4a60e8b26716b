"""Ours equals the truth in every cell of the coverage benchmark's table for AG2 1.x."""

from __future__ import annotations

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

from coverage_programs import truth_and_record

pytestmark = pytest.mark.framework("ag2")


def test_the_record_is_the_truth(monkeypatch):
    """A channel with a hand-over by a tool, three runs, two at the same time."""
    truth, record = truth_and_record("ag2", monkeypatch)
    assert record == truth
