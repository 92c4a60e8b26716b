"""Reads runs of any length in bounded memory: a whole outline, and the texts of both ends.

A run beyond `MOST_SPANS` or `MOST_BYTES` is read from both of its ends. The steps between have
their numbers, agents, times and errors, but no texts; the verdict names the steps that were not
judged.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mast_trace.trajectory import SpanRecord, Step, Trajectory, read_trajectory
from mast_trace.trajectory.outline import KINDS, Outline
from mast_trace.trajectory.outlining import OutlineBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.messages import Message
    from mast_trace_collector.storage.run_spans import RunSpans, SpanPage

MOST_SPANS = 20_000
"""Number of spans up to which a run is judged whole; of a longer one about half as many from each
end.
"""
MOST_BYTES = 32 * 1024 * 1024
"""Bytes of attributes, likewise."""
LONGEST_TEXT = 256 * 1024
"""Characters of one text that are read in a run that is not read whole."""
PAGE_BYTES = 2 * 1024 * 1024
"""Bytes of attributes in a page; a number of pages is read from each end."""
_TOO_LONG = "(not read: the run is too long)"


def is_long(spans: RunSpans) -> bool:
    """Return whether a run is too long to be judged whole."""
    return spans.spans > MOST_SPANS or spans.size > MOST_BYTES


def outline_of(spans: RunSpans) -> Outline:
    """Outline a run; takes about a kilobyte of memory a span meanwhile.

    Raises:
        StorageError: the database does not answer.
    """
    builder = OutlineBuilder(foreign=spans.foreign)
    for page in spans.read():
        builder.add(page)
    return builder.build(spans.of)


def read_run(spans: RunSpans) -> Trajectory:
    """Read a run: whole, or from both ends where it is too long.

    Raises:
        StorageError: the database does not answer.
    """
    if not is_long(spans):
        return read_trajectory(span for page in spans.read() for span in page)
    outline = outline_of(spans)
    first, last = _ends(spans.pages)
    shown = {
        span.span_id: span
        for page in spans.read([*first, *last], clip=LONGEST_TEXT)
        for span in page
    }
    return _partial(outline, spans, shown)


def _ends(pages: Sequence[SpanPage]) -> tuple[list[SpanPage], list[SpanPage]]:
    """Return the pages at both ends that are read: half of the limit from each."""
    first = _within(pages)
    return first, _within(pages[len(first) :][::-1])


def _within(pages: Sequence[SpanPage]) -> list[SpanPage]:
    taken: list[SpanPage] = []
    spans = size = 0
    for page in pages:
        spans, size = spans + page.spans, size + page.size
        if taken and (spans > MOST_SPANS // 2 or size > MOST_BYTES // 2):
            break
        taken.append(page)
    return taken


def _partial(outline: Outline, spans: RunSpans, shown: dict[str, SpanRecord]) -> Trajectory:
    """Return a run of which these spans were read."""

    def fetch(identities: Sequence[str], between: tuple[int, int] | None) -> list[SpanRecord]:
        missing = [identity for identity in identities if identity not in shown]
        found = [shown[identity] for identity in identities if identity in shown]
        return [*found, *spans.of(missing, between, clip=LONGEST_TEXT)] if missing else found

    count = len(outline)
    begin = next((n for n in range(count) if outline.span_ids[n] not in shown), count)
    end = next((n for n in range(count, begin, -1) if outline.span_ids[n - 1] not in shown), begin)
    read = {step.index: step for step in outline.steps([*range(begin), *range(end, count)], fetch)}
    ordered = sorted(shown.values(), key=lambda span: (span.start, -span.end, span.span_id))
    texts: dict[str, Message] = {}
    for identity, message in outline.texts(ordered):
        texts.setdefault(identity, message)
    return dataclasses.replace(
        outline.run,
        steps=tuple(read.get(number) or _unread(outline, number) for number in range(count)),
        invocations=tuple(outline.invocations(ordered, fetch)),
        texts=texts,
        unread_from=begin,
        unread_to=end,
    )


def _unread(outline: Outline, number: int) -> Step:
    """Return a step without its texts, marked so that it counts as nobody's text."""
    return Step(
        index=number,
        kind=KINDS[outline.kinds[number]],
        agent=outline.actor(number),
        text="",
        span_id=outline.span_ids[number],
        start=outline.starts[number],
        end=outline.ends[number],
        synthetic=True,
        error=_TOO_LONG if outline.failed[number] else None,
    )
