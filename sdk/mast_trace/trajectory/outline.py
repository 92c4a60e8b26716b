"""The outline of a run that is too long to be held: its steps without their texts.

Steps are numbered as in `read_trajectory`, whose counterpart this is for runs of any length. An
outline takes about a hundred bytes a step. Given any of the run's spans, it yields their steps,
turns and calls of models; `mast_trace.trajectory.outlining.OutlineBuilder` makes one.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.trajectory.agent_requests import HandOff, as_call
from mast_trace.trajectory.copies import completed, completed_by
from mast_trace.trajectory.foreign import translated
from mast_trace.trajectory.model import Invocation, SpanRecord, Step, StepKind, Trajectory
from mast_trace.trajectory.reader import in_order, invocation_of
from mast_trace.trajectory.span_messages import answer_on, texts_of
from mast_trace.trajectory.steps import step_of

if TYPE_CHECKING:
    from mast_trace.messages import Message

    Fetch = Callable[[Sequence[str], "tuple[int, int] | None"], Iterable[SpanRecord]]
    """Reads the spans of these ids, in any order; receives the first and the last start time, if
    known.
    """

KINDS = tuple(StepKind)
_OF_A_STEP = 160
"""Approximate bytes of a step: its span's id, and its entries in the columns."""
_OF_A_TURN = 150


@dataclass(frozen=True)
class Outline:
    """A run without its texts.

    Attributes:
        run: the run without steps, turns and texts.
        turns: the acting agent of each turn and call of a model, by its span; None after `compact`.
        aliases: the message that a model's answer became; None after `compact`.
        spoken: whether models' answers count as the messages, because none are recorded.
        foreign: whether some spans are not ours; see `mast_trace.trajectory.foreign`.
        parents: of spans inside a duplicate, or inside a call that counts once: the span above it.
        requests: of an agent to another one, by their spans.
        inner: the other spans of a tool call, by the one that counts.
        others: the other span of a model's call, by the one that counts.
        answers: of calls whose answer is on another span: the message's id, and that span.
        begun: start times of the spans whose steps are placed at their end.
        names: of the acting agents, in the order of their first step, or their turn where there are
            no steps; "" where unknown.
        said: number of messages from one agent to another.
        handed: number of hand-offs from one agent to another.
        span_ids: the span of each step.
        actors: the index in `names` of each step's agent.
        kinds: the index in `KINDS` of each step's kind.
        failed: 1 for each step with an error.
        starts: of each step, in nanoseconds since the epoch.
        ends: likewise.
        likenesses: hashes, equal for steps of equal content, in this process.
        repeats: for each step the first one with the same likeness; its own number where it is new.
    """

    run: Trajectory
    turns: Mapping[str, str] | None
    aliases: Mapping[str, str] | None
    spoken: bool
    foreign: bool
    parents: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, HandOff] = field(default_factory=dict)
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    said: Counter[tuple[str, str]] = field(default_factory=Counter)
    handed: Counter[tuple[str, str]] = field(default_factory=Counter)
    span_ids: list[str] = field(default_factory=list)
    actors: array[int] = field(default_factory=lambda: array("l"))
    kinds: bytearray = field(default_factory=bytearray)
    failed: bytearray = field(default_factory=bytearray)
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    likenesses: array[int] = field(default_factory=lambda: array("q"))
    repeats: array[int] = field(default_factory=lambda: array("l"))

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.span_ids)

    @property
    def size(self) -> int:
        """Approximate bytes of memory of the outline."""
        turns = len(self.turns or ()) + len(self.aliases or ()) + len(self.answers)
        edges = len(self.said) + len(self.handed) + len(self.inner) + len(self.begun)
        edges += len(self.requests) + len(self.others)
        return _OF_A_STEP * len(self) + _OF_A_TURN * (turns + edges + len(self.parents))

    def compact(self) -> Outline:
        """Return a smaller outline that still reads steps, to be kept for long."""
        steps = set(self.span_ids)
        answers = {span: found for span, found in self.answers.items() if span in steps}
        return dataclasses.replace(self, turns=None, aliases=None, answers=answers)

    def actor(self, number: int) -> str:
        """Return the agent that acts in a step; empty if unknown."""
        return self.names[self.actors[number]]

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that act, in the order of their first step; of a run without any, its turns'."""
        return tuple(filter(None, self.names))

    def steps(self, numbers: Sequence[int], fetch: Fetch) -> Iterator[Step]:
        """Yield the steps of these numbers, in the order in which their spans are fetched.

        Args:
            numbers: of steps.
            fetch: reads spans of the run. Texts that it has shortened are short in the steps.
        """
        if not numbers:
            return
        wanted = {self.span_ids[number]: number for number in numbers}
        answers = self._answers_of(wanted, fetch)
        inner = self._inner_of(wanted, fetch)
        first, last = self.starts[min(numbers)], self.starts[max(numbers)]
        begun = [self.begun[each] for each in wanted if each in self.begun]
        between = min([first, *begun]), max([last, *begun])
        for span in self._whole(fetch(list(wanted), between), wanted, fetch):
            number = wanted.pop(span.span_id, None)
            if number is None:
                continue
            output = None
            if span.operation not in {semconv.SEND_MESSAGE, semconv.EXECUTE_TOOL}:
                output = answer_on(span) or answers.get(span.span_id)
            whole = completed(span, inner.get(span.span_id, ()))
            yield step_of(whole, self.actor(number), number, output, spoken=self.spoken)

    def invocations(self, spans: Sequence[SpanRecord], fetch: Fetch) -> Iterator[Invocation]:
        """Yield the turns and calls of models among some spans; not after `compact`."""
        assert self.turns is not None
        assert self.aliases is not None
        answers = self._answers_of([span.span_id for span in spans], fetch)
        for span in self._whole(spans, [span.span_id for span in spans], fetch):
            agent = self.turns.get(span.span_id)
            if agent is not None:
                output = answer_on(span) or answers.get(span.span_id)
                yield invocation_of(span, agent, output, self.aliases)

    def texts(self, spans: Iterable[SpanRecord]) -> Iterator[tuple[str, Message]]:
        """Yield the messages that some spans hold, with their ids; the first of an id counts."""
        for span in self._read(spans):
            yield from texts_of([span]).by_id.items()

    def _read(self, spans: Iterable[SpanRecord]) -> Iterator[SpanRecord]:
        """Return spans as the reader of the whole run sees them: translated, without duplicates above them."""
        for read in translated(spans) if self.foreign else spans:
            span = as_call(read, self.requests.get(read.span_id))
            parent = self.parents.get(span.span_id)
            if parent is None:
                yield span
            else:
                yield dataclasses.replace(span, parent_span_id=parent)

    def _whole(
        self, spans: Iterable[SpanRecord], wanted: Iterable[str], fetch: Fetch
    ) -> Iterator[SpanRecord]:
        """Read spans, each call of a model with what another span tells of it."""
        asked = {self.others[span]: span for span in wanted if span in self.others}
        found = self._read(fetch(sorted(asked), None)) if asked else ()
        others = {asked[each.span_id]: each for each in found}
        for span in self._read(spans):
            yield completed_by(span, others.get(span.span_id))

    def _inner_of(self, wanted: Iterable[str], fetch: Fetch) -> dict[str, list[SpanRecord]]:
        """Return the other spans of tool calls."""
        calls = {each: call for call in wanted for each in self.inner.get(call, ())}
        found: dict[str, list[SpanRecord]] = {}
        for span in in_order(self._read(fetch(sorted(calls), None)) if calls else ()):
            found.setdefault(calls[span.span_id], []).append(span)
        return found

    def _answers_of(self, wanted: Iterable[str], fetch: Fetch) -> dict[str, Message]:
        """Return the answers of model calls whose text another span holds."""
        asked = {span: self.answers[span] for span in wanted if span in self.answers}
        if not asked:
            return {}
        texts: dict[str, Message] = {}
        holders = sorted({holder for _, holder in asked.values()})
        for span in self._read(fetch(holders, None)):
            texts |= texts_of([span]).by_id
        return {span: texts[identity] for span, (identity, _) in asked.items() if identity in texts}


def is_turn(span: SpanRecord) -> bool:
    """Return whether a span is a turn of an agent or a call of a model."""
    return span.operation in {semconv.INVOKE_AGENT, semconv.CHAT}
