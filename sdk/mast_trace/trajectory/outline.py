"""The outline of a run that is too long to be held: its steps without their texts.

Steps are numbered as in `read_trajectory`, of which this is the counterpart for runs of any
length. An outline takes about a hundred bytes a step. Shown any of the run's spans, it tells the steps,
turns and calls of models that they are; `mast_trace.trajectory.outlining.OutlineBuilder` makes one.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.trajectory.foreign import translated
from mast_trace.trajectory.model import StepKind
from mast_trace.trajectory.reader import invocation_of
from mast_trace.trajectory.span_messages import texts_of
from mast_trace.trajectory.steps import step_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mast_trace.messages import Message
    from mast_trace.trajectory.model import Invocation, SpanRecord, Step, Trajectory

    Fetch = Callable[[Sequence[str], "tuple[int, int] | None"], Iterable[SpanRecord]]
    """Reads the spans of these ids, in any order; told when the first and the last begin, if known."""

KINDS = tuple(StepKind)
_OF_A_STEP = 160
"""Bytes that a step takes, about: its span's id, and its places in the columns."""
_OF_A_TURN = 150


@dataclass(frozen=True)
class Outline:
    """A run without its texts.

    Attributes:
        run: what is known of it beside its steps, turns and texts.
        turns: who acts in each turn and call of a model, by its span; None after `compact`.
        aliases: the message that a model's answer became; None after `compact`.
        spoken: whether models' words are the messages, for nobody records any.
        foreign: whether no span is ours; see `mast_trace.trajectory.foreign`.
        parents: of spans that lie in copies: the span above those.
        answers: of calls whose answer another span holds: the message's id, and that span.
        names: of who acts; "" where nobody knows.
        said: how often one agent wrote to another.
        handed: how often one agent handed over to another.
        span_ids: the span of each step.
        actors: the place in `names` of who acts in each step.
        kinds: the place in `KINDS` of each step's kind.
        failed: 1 for each step with an error.
        starts: of each step, in nanoseconds since the epoch.
        ends: likewise.
        likenesses: equal for steps that say and do the same, in this process.
        repeats: the first step that is like each step; its own number where it is new.
    """

    run: Trajectory
    turns: Mapping[str, str] | None
    aliases: Mapping[str, str] | None
    spoken: bool
    foreign: bool
    parents: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
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
        """Bytes of memory that it takes, about."""
        turns = len(self.turns or ()) + len(self.aliases or ()) + len(self.answers)
        edges = len(self.said) + len(self.handed)
        return _OF_A_STEP * len(self) + _OF_A_TURN * (turns + edges + len(self.parents))

    def compact(self) -> Outline:
        """Return what its steps can be told by, to be kept for long."""
        steps = set(self.span_ids)
        answers = {span: found for span, found in self.answers.items() if span in steps}
        return dataclasses.replace(self, turns=None, aliases=None, answers=answers)

    def actor(self, number: int) -> str:
        """Return who acts in a step; empty if unknown."""
        return self.names[self.actors[number]]

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that act, in the order of their first step."""
        return tuple(self.names[place] for place in dict.fromkeys(self.actors) if self.names[place])

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
        between = self.starts[min(numbers)], self.starts[max(numbers)]
        for span in self._read(fetch(list(wanted), between)):
            number = wanted.pop(span.span_id, None)
            if number is None:
                continue
            output = texts_of([span]).answer_of(span) or answers.get(span.span_id)
            yield step_of(span, self.actor(number), number, output, spoken=self.spoken)

    def invocations(self, spans: Sequence[SpanRecord], fetch: Fetch) -> Iterator[Invocation]:
        """Yield the turns and calls of models among some spans; not after `compact`."""
        assert self.turns is not None
        assert self.aliases is not None
        answers = self._answers_of([span.span_id for span in spans], fetch)
        for span in self._read(spans):
            agent = self.turns.get(span.span_id)
            if agent is not None:
                output = texts_of([span]).answer_of(span) or answers.get(span.span_id)
                yield invocation_of(span, agent, output, self.aliases)

    def texts(self, spans: Iterable[SpanRecord]) -> Iterator[tuple[str, Message]]:
        """Yield the messages that some spans hold, with their ids; the first of an id counts."""
        for span in self._read(spans):
            yield from texts_of([span]).by_id.items()

    def _read(self, spans: Iterable[SpanRecord]) -> Iterator[SpanRecord]:
        """Return spans as the whole run's reader sees them: in our words, below what is no copy."""
        for span in translated(spans) if self.foreign else spans:
            parent = self.parents.get(span.span_id)
            if parent is None:
                yield span
            else:
                yield dataclasses.replace(span, parent_span_id=parent)

    def _answers_of(self, wanted: Iterable[str], fetch: Fetch) -> dict[str, Message]:
        """Return the answers of model calls that other spans hold."""
        asked = {span: self.answers[span] for span in wanted if span in self.answers}
        if not asked:
            return {}
        texts: dict[str, Message] = {}
        holders = sorted({holder for _, holder in asked.values()})
        for span in self._read(fetch(holders, None)):
            texts |= texts_of([span]).by_id
        return {span: texts[identity] for span, (identity, _) in asked.items() if identity in texts}


def is_turn(span: SpanRecord) -> bool:
    """Whether a span is a turn of an agent or a call of a model."""
    return span.operation in {semconv.INVOKE_AGENT, semconv.CHAT}
