"""Runs of a recorded program are found by the label of the recording."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from stores import new_store

from mast_trace_lab.program.recording import RECORDED_FOR, RecordedRun, recorded

if TYPE_CHECKING:
    from pathlib import Path


def test_runs_are_found_by_their_label(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        for number, (label, outcome) in enumerate((("one", "success"), ("two", ""), ("one", ""))):
            root = {
                "Timestamp": datetime(2026, 3, 1, 12 - number, tzinfo=timezone.utc),
                "TraceId": f"{number:032x}",
                "SpanId": f"{number:016x}",
                "ResourceAttributes": {RECORDED_FOR: label, "mast.project": "p"},
                "SpanAttributes": {
                    "gen_ai.operation.name": "invoke_workflow",
                    "mast.run.outcome": outcome,
                },
            }
            store.insert("otel_traces", [root])
        newest, oldest = (
            RecordedRun("p", f"{at:032x}", told) for at, told in ((0, "success"), (2, ""))
        )
        assert recorded(store, "one") == [oldest, newest]
        assert recorded(store, "three") == []
