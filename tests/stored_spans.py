"""The spans of one stored run, for tests that look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.storage import runs

if TYPE_CHECKING:
    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store


def spans_of(store: Store, trace_id: str, *, project: str | None = None) -> list[SpanRecord]:
    """Return a run's spans by start time."""
    found = runs.spans_of(store, [trace_id])
    ours = [
        span for (owner, _), spans in found.items() if project in {None, owner} for span in spans
    ]
    return sorted(ours, key=lambda span: (span.start, -span.end))
