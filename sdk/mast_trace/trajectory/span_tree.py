"""Ancestors of spans, and trees from which spans have been removed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace.trajectory.model import SpanRecord

LEVELS = 100
"""Number of ancestors of a span among which another span of the same work is sought."""


def above(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> Iterator[SpanRecord]:
    """Yield the ancestors of a span, the nearest first; each once, even if parents form a circle."""
    seen = {span.span_id}
    around = by_id.get(span.parent_span_id)
    while around is not None and around.span_id not in seen:
        seen.add(around.span_id)
        yield around
        around = by_id.get(around.parent_span_id)


def lifted(span: SpanRecord, left_out: dict[str, str]) -> SpanRecord:
    """Return a span as a child of its next ancestor that is not left out.

    Args:
        span: one that is kept.
        left_out: the parent of each span that is removed; the result for a chain of them is stored
            here.
    """
    parent = span.parent_span_id
    passed: dict[str, None] = {}
    while parent in left_out:
        passed[parent] = None
        # Parents that form a circle: nothing is above them.
        parent = "" if left_out[parent] in passed else left_out[parent]
    left_out.update(dict.fromkeys(passed, parent))
    return (
        span if parent == span.parent_span_id else dataclasses.replace(span, parent_span_id=parent)
    )
