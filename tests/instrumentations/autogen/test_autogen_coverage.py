"""Ours equals the truth in every cell of the coverage benchmark's table for AG2 classic."""

from __future__ import annotations

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic")

from coverage_programs import truth_and_record

pytestmark = pytest.mark.framework("autogen")


def test_the_record_is_the_truth(monkeypatch):
    """A group chat with three kinds of hand-over, three runs, two at the same time."""
    truth, record = truth_and_record("autogen", monkeypatch)
    assert record == truth
