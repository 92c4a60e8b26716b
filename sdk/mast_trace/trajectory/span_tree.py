"""Ancestors of spans, and trees from which spans have been removed.

Branches of a run: paths that tell apart agents of one name that work at the same time.

A path has one part for each run, agent and tool call around a span, from the outside in. A part is the
name with a number: `mast_trace.semconv.BRANCH` where the span has it, else the place among the spans
of that name below the same path, by start time. A program that is run again makes the same paths.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mast_trace import semconv

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

_PARTS = {
    semconv.INVOKE_WORKFLOW: semconv.WORKFLOW_NAME,
    semconv.INVOKE_AGENT: semconv.AGENT_NAME,
    semconv.EXECUTE_TOOL: semconv.TOOL_NAME,
}
"""Operations that are parts of a path, and the attributes with their names."""

LEVELS = 100
"""Number of ancestors of a span among which another span of the same work is sought."""


class Paths:
    """The paths of spans, which are added in the order in which they begin."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._counted: Counter[tuple[str, str, str]] = Counter()

    def add(
        self,
        trace_id: str,
        span_id: str,
        parent: str,
        operation: str,
        attributes: Mapping[str, Any],
    ) -> str:
        """Note a span and return its path, which is its parent's if the span is no part of paths."""
        path = self._paths.get(parent, "")
        if operation in _PARTS:
            name = str(attributes.get(_PARTS[operation]) or "")
            counted = (trace_id, path, name)
            number = attributes.get(semconv.BRANCH)
            if number is None:
                number = self._counted[counted]
                self._counted[counted] += 1
            path = f"{path}/{name}#{number}"
        self._paths[span_id] = path
        return path

    def of(self, span_id: str) -> str:
        """Return the path of a span; empty if it was not added."""
        return self._paths.get(span_id, "")


def parallel_branches(spans: Iterable[SpanRecord]) -> dict[str, str]:
    """Return the paths of the spans that are in parallel branches, by span id.

    A branch is parallel if its span overlaps in time with another one of the same parent, or if it has
    a number of its own. Spans that were made of an exported run have their paths with them.

    Args:
        spans: the spans of one run, by start time.
    """
    spans = tuple(spans)
    known = {
        span.span_id: str(span.attributes[semconv.BRANCH_PATH])
        for span in spans
        if span.attributes.get(semconv.BRANCH_PATH)
    }
    if known:
        return known
    paths = Paths()
    parallel: set[str] = set()
    open_until: dict[str, tuple[int, str]] = defaultdict(lambda: (0, ""))
    found: dict[str, str] = {}
    inside: list[SpanRecord] = []
    for span in spans:
        paths.add(span.trace_id, span.span_id, span.parent_span_id, span.operation, span.attributes)
        inside.append(span)
        if span.operation not in _PARTS:
            continue
        end, other = open_until[span.parent_span_id]
        if semconv.BRANCH in span.attributes:
            parallel.add(span.span_id)
        if span.start < end:
            parallel |= {span.span_id, other}
        open_until[span.parent_span_id] = max((end, other), (span.end, span.span_id))
    for span in inside:
        if span.span_id in parallel or span.parent_span_id in found:
            found[span.span_id] = paths.of(span.span_id)
    return found


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
