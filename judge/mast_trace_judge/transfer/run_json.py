"""Writes a run of any length as JSON, part by part: the text of `to_dict`, and its verdict."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Invocation, SpanRecord, Step, Trajectory, to_dict
from mast_trace_judge.local.long_runs import outline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace.messages import Message
    from mast_trace.trajectory.outline import Fetch, Outline
    from mast_trace_collector.storage.run_spans import RunSpans
    from mast_trace_judge.verdict import Verdict


class LongRun:
    """A run whose steps, turns and texts are read on demand, each once.

    Attributes:
        head: the run without these.
        outline: of the run.
    """

    def __init__(self, spans: RunSpans, *, outcome: str = "", outcome_reason: str = "") -> None:
        """Outline the run.

        Args:
            spans: of the run.
            outcome: overrides the run's own.
            outcome_reason: likewise.

        Raises:
            StorageError: the database does not answer.
        """
        self._spans = spans
        self.outline: Outline = outline_of(spans)
        self.head: Trajectory = self.outline.run
        if outcome:
            self.head = dataclasses.replace(
                self.head, outcome=outcome, outcome_reason=outcome_reason
            )

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order.

        Raises:
            StorageError: the database does not answer.
        """
        return steps_of(self._spans, self.outline)

    def invocations(self) -> Iterator[Invocation]:
        """Yield the turns and calls of models by their start; see `steps`."""
        for page in self._spans.read():
            here = {span.span_id: span for span in page}
            by_start = sorted(page, key=lambda span: (span.start, -span.end, span.span_id))
            yield from self.outline.invocations(by_start, _reader(self._spans, here))

    def texts(self) -> Iterator[tuple[str, Message]]:
        """Yield every message by its id; see `steps`."""
        seen: set[str] = set()
        for page in self._spans.read():
            for identity, message in self.outline.texts(page):
                if identity not in seen:
                    seen.add(identity)
                    yield identity, message

    def json(self) -> Iterator[str]:
        """Yield the text of the trajectory, as `json.dumps` writes the result of `to_dict`.

        Raises:
            StorageError: the database does not answer.
        """
        head = to_dict(self.head)
        yield f'{{"trace_id": {_text(head.pop("trace_id"))}, "steps": ['
        head.pop("steps", None)
        head.pop("texts", None)
        yield from _listed(_text(to_dict(step)) for step in self.steps())
        yield '], "invocations": ['
        yield from _listed(_text(to_dict(call)) for call in self.invocations())
        yield '], "texts": {'
        yield from _listed(
            f"{_text(identity)}: {_text(to_dict(message))}" for identity, message in self.texts()
        )
        yield "}"
        for name, value in head.items():
            yield f", {_text(name)}: {_text(value)}"
        yield "}"

    def parts(self, most: int) -> Iterator[str]:
        """Yield the trajectory as several, each the text of one that `trajectory_from_dict` reads.

        The first has the fields of the run; their steps, turns and texts, joined in order, are the
        run's.

        Args:
            most: approximate characters of each.

        Raises:
            StorageError: the database does not answer.
        """
        head = to_dict(dataclasses.replace(self.head, steps=(), invocations=(), texts={}))
        listed: dict[str, list[Any]] = {"steps": [], "invocations": []}
        texts: dict[str, Any] = {}
        size = 0
        for kind, identity, record in self._records():
            shape = to_dict(record)
            size += len(_text(shape))
            if kind == "texts":
                texts[identity] = shape
            else:
                listed[kind].append(shape)
            if size >= most:
                yield _text({**head, **listed, "texts": texts})
                head = {"trace_id": self.head.trace_id}
                listed, texts, size = {"steps": [], "invocations": []}, {}, 0
        if size or len(head) > 1:
            yield _text({**head, **listed, "texts": texts})

    def _records(self) -> Iterator[tuple[str, str, Step | Invocation | Message]]:
        yield from (("steps", "", step) for step in self.steps())
        yield from (("invocations", "", call) for call in self.invocations())
        yield from (("texts", identity, message) for identity, message in self.texts())


def steps_of(spans: RunSpans, outline: Outline) -> Iterator[Step]:
    """Yield all steps of a run in order, with their whole texts; each page of it is read once.

    Raises:
        StorageError: the database does not answer.
    """
    numbers = {span_id: number for number, span_id in enumerate(outline.span_ids)}
    # Spans that begin together may come in another order than their steps have.
    early: dict[int, Step] = {}
    following = 0
    for page in spans.read():
        here = {span.span_id: span for span in page}
        found = [numbers[span_id] for span_id in here if span_id in numbers]
        early |= {step.index: step for step in outline.steps(found, _reader(spans, here))}
        while following in early:
            yield early.pop(following)
            following += 1


def _reader(spans: RunSpans, here: dict[str, SpanRecord]) -> Fetch:
    """Return a reader of spans, some of which are passed here."""

    def fetch(span_ids: Sequence[str], between: tuple[int, int] | None) -> Iterator[SpanRecord]:
        yield from (here[span_id] for span_id in span_ids if span_id in here)
        missing = [span_id for span_id in span_ids if span_id not in here]
        if missing:
            yield from spans.of(missing, between)

    return fetch


def run_as_json(
    spans: RunSpans, verdict: Verdict | None, *, outcome: str = "", outcome_reason: str = ""
) -> Iterator[str]:
    """Yield the text of a run and its verdict.

    Args:
        spans: of the run.
        verdict: on it; None if there is none.
        outcome: overrides the run's own, as in `LongRun`.
        outcome_reason: likewise.

    Raises:
        StorageError: the database does not answer.
    """
    yield '{"trajectory": '
    yield from LongRun(spans, outcome=outcome, outcome_reason=outcome_reason).json()
    yield f', "verdict": {_text(verdict.to_json() if verdict else None)}}}'


def _listed(texts: Iterable[str]) -> Iterator[str]:
    separator = ""
    for text in texts:
        yield separator + text
        separator = ", "


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
