"""Work that another tool has recorded too, in the same trace: counted once, as ours.

With two instrumentations of one framework on the same provider, each wraps the other's call: a span
of theirs lies around or inside of one of ours that is about the same turn, call or execution.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mast_trace import semconv, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.trajectory import SpanRecord

# What tells two works of one kind apart that lie inside of each other; calls of models never do.
_NAMED_BY = {semconv.INVOKE_AGENT: "agent", semconv.EXECUTE_TOOL: "tool", semconv.CHAT: ""}


def is_ours(span: SpanRecord) -> bool:
    """Whether mast-trace made the span: of a framework, or of hand-made agents."""
    return span.scope.split(".")[0] == "mast_trace" or semconv.FRAMEWORK in span.attributes


def without_copies(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans without those of other tools that are about the same work as one of ours.

    What lies below a span that is left out belongs to the span above it.
    """
    by_id = {span.span_id: span for span in spans if span.span_id}
    ours = {span.span_id for span in spans if is_ours(span)}
    copies: set[str] = set()
    for span in spans:
        for above in _above(span, by_id):
            if (span.span_id in ours) != (above.span_id in ours) and _same_work(span, above):
                copies.add(above.span_id if span.span_id in ours else span.span_id)
        around = by_id.get(span.parent_span_id)
        if around is not None and span.span_id in ours and _is_run_as_turn(span, around):
            copies.update({around.span_id} - ours)
    return [_lifted(span, by_id, copies) for span in spans if span.span_id not in copies]


def _above(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> Iterator[SpanRecord]:
    seen = {span.span_id}
    above = by_id.get(span.parent_span_id)
    while above is not None and above.span_id not in seen:
        seen.add(above.span_id)
        yield above
        above = by_id.get(above.parent_span_id)


def _same_work(one: SpanRecord, other: SpanRecord) -> bool:
    operation = vocabulary.operation(one.attributes)
    if operation not in _NAMED_BY or vocabulary.operation(other.attributes) != operation:
        return False
    field = _NAMED_BY[operation]
    names = {vocabulary.read(span.attributes, field) for span in (one, other)} if field else set()
    # Some tools make a turn of what they do not name: of a task, or of the whole crew.
    return len(names - {None}) <= 1


def _is_run_as_turn(span: SpanRecord, around: SpanRecord) -> bool:
    """Whether another tool takes a run of ours for a turn of who began it."""
    return (
        vocabulary.operation(span.attributes) == semconv.INVOKE_WORKFLOW
        and vocabulary.operation(around.attributes) == semconv.INVOKE_AGENT
    )


def _lifted(span: SpanRecord, by_id: Mapping[str, SpanRecord], copies: set[str]) -> SpanRecord:
    parent = span.parent_span_id
    while parent in copies:
        parent = by_id[parent].parent_span_id
    return (
        span if parent == span.parent_span_id else dataclasses.replace(span, parent_span_id=parent)
    )
