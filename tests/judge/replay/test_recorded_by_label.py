"""Recorded programs: their runs are found by the label of the recording, and nothing of them is left running."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from judge.replay.test_orphans import is_there, until
from stores import new_store

from mast_trace_lab.program.recording import (
    RECORDED_FOR,
    NotRecorded,
    RecordedRun,
    record,
    recorded,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_runs_are_found_by_their_label(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        told = (("one", "success", ""), ("two", "", ""), ("one", "", ""), ("one", "", "replay"))
        for number, (label, outcome, kind) in enumerate(told):
            root = {
                "Timestamp": datetime(2026, 3, 1, 12 - number, tzinfo=timezone.utc),
                "TraceId": f"{number:032x}",
                "SpanId": f"{number:016x}",
                "ResourceAttributes": {RECORDED_FOR: label, "mast.project": "p"},
                "SpanAttributes": {
                    "gen_ai.operation.name": "invoke_workflow",
                    "mast.run.outcome": outcome,
                    "mast.run.kind": kind,
                },
            }
            store.insert("otel_traces", [root])
        newest, oldest = (
            RecordedRun("p", f"{at:032x}", told) for at, told in ((0, "success"), (2, ""))
        )
        assert recorded(store, "one") == [oldest, newest]
        assert recorded(store, "three") == []


@pytest.mark.parametrize(
    ("then", "said"),
    [("time.sleep(600)", "did not end within"), ("sys.exit(3)", "ended with 3.*: no luck")],
)
def test_no_child_outlives_a_recording(tmp_path: Path, then: str, said: str) -> None:
    """Nor is a program waited for that has ended and left one behind."""
    child = tmp_path / "child"
    program = f"""
import pathlib, subprocess, sys, time
left = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(child)!r}).write_text(str(left.pid))
print("not this")
print("no luck", file=sys.stderr)
{then}
"""
    with new_store(tmp_path / "store") as store, pytest.raises(NotRecorded, match=said) as raised:
        record(store, [sys.executable, "-c", program], label="one", timeout=5)
    assert "not this" not in str(raised.value)
    until(lambda: not is_there(int(child.read_text())), 10)
