"""The spans of a test as an indented text, in an order that does not depend on time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from recorded_spans import RecordedSpans


def trees_of(recorded: RecordedSpans) -> list[str]:
    """Return each trace's spans below their parents; siblings by name, failed ones with a mark."""
    return sorted(_below(None, spans) for spans in recorded.traces().values())


def tree_of(recorded: RecordedSpans) -> str:
    """The spans of all traces, one below the other."""
    return "\n".join(trees_of(recorded))


def _below(parent: ReadableSpan | None, spans: Sequence[ReadableSpan]) -> str:
    known = {span.context.span_id for span in spans}
    above = parent.context.span_id if parent else None
    branches = []
    for span in spans:
        found = span.parent.span_id if span.parent and span.parent.span_id in known else None
        if found == above:
            inside = _below(span, spans).splitlines()
            failed = " !" * (not span.status.is_ok)
            branches.append("\n".join([span.name + failed, *(f"  {line}" for line in inside)]))
    return "\n".join(sorted(branches))
