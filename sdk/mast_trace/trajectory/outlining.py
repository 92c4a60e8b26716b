"""Builds the `Outline` of a run from its spans, which arrive page by page, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.agent_requests import (
    MESSAGE,
    METHOD,
    STATE,
    TASK,
    as_call,
    hand_offs,
)
from mast_trace.trajectory.copies import (
    arguments_of_call,
    is_open,
    one_span_per_call,
    split_copies,
)
from mast_trace.trajectory.foreign import translated
from mast_trace.trajectory.model import SpanRecord, StepKind, Trajectory
from mast_trace.trajectory.outline import KINDS, Outline, is_turn
from mast_trace.trajectory.outputs import (
    answer_in,
    is_of_an_agent,
    output_words,
    time_of,
    word_of,
)
from mast_trace.trajectory.reader import (
    acting_agents,
    head_of,
    in_one,
    in_order,
    root_of,
    task_ids,
)
from mast_trace.trajectory.span_messages import Texts, aliases_of, key, texts_of
from mast_trace.trajectory.steps import actor_of, arguments_of, choose_steps, result_of
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.trajectory.outline import Fetch

_FIELDS = (
    *("operation", "agent", "tool", "tool_call_id", "input_tokens", "output_tokens"),
    *("conversation", "framework", "sender", "recipients", "workflow", "handoff_target"),
)
_STRUCTURE = frozenset(
    [name for spelt in _FIELDS for name in vocabulary.SPELLINGS[spelt]]
    + [
        semconv.MCP_METHOD_NAME,
        *(METHOD, MESSAGE, TASK, STATE),
        semconv.TOOL_REQUESTED_BY,
        semconv.MESSAGE_ID,
        semconv.MESSAGE_ROLE,
        semconv.MESSAGE_CONTENT_HASH,
        semconv.RUN_OUTCOME,
        semconv.RUN_OUTCOME_REASON,
        semconv.RUN_EXPECTED,
    ]
)
"""Attributes from which steps are read, numbered and counted; none holds texts."""
_WORDS = "."
"""Stands for any text that is not empty."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A message on a span: its id, whether it has text and which calls, and its likeness.

    ``word`` stands for its text; see `mast_trace.trajectory.outputs.word_of`.
    """

    identity: str
    message: Message
    likeness: int
    word: int | None


@dataclass(slots=True)
class _Kept:
    """The part of a run's spans that is kept; all by the span's id.

    Attributes:
        spans: without the attributes that hold texts.
        held: the messages on each span.
        answers: the answer that is written out on the call of a model.
        likenesses: of messages: equal for equal content.
        calls: of tools' runs: hashes of tool, arguments and result.
        words: hashes of the texts of messages and of tools' results.
        outputs: hashes of the texts in the outputs of agents' spans, the answer first.
    """

    spans: dict[str, SpanRecord] = field(default_factory=dict)
    held: dict[str, tuple[_Held, ...]] = field(default_factory=dict)
    answers: dict[str, _Held] = field(default_factory=dict)
    likenesses: dict[str, int] = field(default_factory=dict)
    calls: dict[str, Sequence[int | None]] = field(default_factory=dict)
    words: dict[str, int | None] = field(default_factory=dict)
    outputs: dict[str, Sequence[int]] = field(default_factory=dict)


class OutlineBuilder:
    """Keeps of each span the attributes that decide on the steps of the run: up to a kilobyte."""

    def __init__(self, *, foreign: bool) -> None:
        """Begin an outline.

        Args:
            foreign: some of the run's spans are not ours; see `mast_trace.trajectory.foreign`.
        """
        self._foreign = foreign
        self._kept = _Kept()
        self._shared: dict[str, str] = {}
        self._messages: dict[tuple[str, str], Message] = {}

    def add(self, spans: Iterable[SpanRecord]) -> None:
        """Add some of the run's spans, each of which comes once."""
        kept = self._kept
        for span in translated(spans) if self._foreign else spans:
            own, identity = texts_of([span]), span.span_id
            kept.spans[identity] = self._lean(span)
            held = {known: self._hold(known, message) for known, message in own.by_id.items()}
            if held:
                kept.held[identity] = tuple(held.values())
            for answer in own.answers.values():
                same = held.get(answer.id or "")
                kept.answers[identity] = same or self._hold("", answer)
            if span.operation == semconv.SEND_MESSAGE:
                kept.likenesses[identity] = hash(result_of(span))
            elif span.operation == semconv.EXECUTE_TOOL:
                kept.calls[identity] = [hash(told) if told else None for told in result_of(span)]
            if span.operation in {semconv.SEND_MESSAGE, semconv.EXECUTE_TOOL}:
                kept.words[identity] = word_of(result_of(span)[2])
            elif told := output_words(span):
                kept.outputs[identity] = told
                said = answer_in(vocabulary.read(span.attributes, "output"))
                kept.likenesses[identity] = hash(("", "", said))

    def build(self, fetch: Fetch) -> Outline:
        """Return the outline.

        Args:
            fetch: reads a few spans of the run in full: its root, and the one with its task.
        """
        kept = self._kept
        own, others = split_copies(in_order(kept.spans.values()))
        self._complete(others)
        requests = hand_offs(own)
        called = [as_call(span, requests.get(span.span_id)) for span in own]
        for span in called:
            if span.span_id in requests:
                kept.calls[span.span_id] = [hash(t) if t else None for t in result_of(span)]
                kept.words[span.span_id] = None
        ordered, inner = one_span_per_call(called)
        for call, spans in inner.items():
            if not is_open(kept.spans[call]):
                continue
            told = (kept.calls[each.span_id] for each in (kept.spans[call], *spans))
            kept.calls[call] = [
                next(filter(None, known), None) for known in zip(*told, strict=True)
            ]
        texts, holders = self._texts(ordered)
        agents, aliases = acting_agents(ordered, texts), aliases_of(ordered)

        def answer_of(span: SpanRecord) -> _Held | None:
            identity = text(span.attributes, semconv.MESSAGE_ID)
            elsewhere = holders[identity][1] if identity in holders else None
            return kept.answers.get(span.span_id) or elsewhere

        def words(span: SpanRecord) -> int | None:
            if span.operation != semconv.CHAT:
                return kept.words[span.span_id]
            answer = answer_of(span)
            return answer.word if answer else None

        def outputs(span: SpanRecord) -> Sequence[int]:
            answer = answer_of(span)
            if answer is None:
                return kept.outputs.get(span.span_id, ())
            return () if answer.word is None else (answer.word,)

        chosen, spoken = choose_steps(ordered, texts, aliases, agents, words, outputs)
        lifted = {
            span.span_id: span.parent_span_id
            for span in ordered
            if span.parent_span_id != kept.spans[span.span_id].parent_span_id
        }
        empty = Outline(
            run=self._head(ordered, chosen, texts, holders, fetch),
            turns={span.span_id: agents[key(span)] for span in ordered if is_turn(span)},
            aliases=aliases,
            spoken=spoken,
            foreign=self._foreign,
            parents=lifted,
            requests=requests,
            inner={call: tuple(each.span_id for each in spans) for call, spans in inner.items()},
            others={call: other.span_id for call, other in others.items()},
            answers=self._answered_elsewhere(ordered, holders),
            begun={each.span_id: each.start for each in chosen if time_of(each) != each.start},
        )
        return self._numbered(empty, chosen, agents, holders)

    def _complete(self, others: Mapping[str, SpanRecord]) -> None:
        """Keep for calls of models what other spans tell of them besides."""
        kept = self._kept
        for call, other in others.items():
            kept.held[call] = kept.held.get(call, ()) + kept.held.get(other.span_id, ())
            if other.span_id in kept.answers:
                kept.answers.setdefault(call, kept.answers[other.span_id])
            if other.span_id in kept.outputs:
                kept.outputs.setdefault(call, kept.outputs[other.span_id])

    def _answered_elsewhere(
        self, ordered: Sequence[SpanRecord], holders: Mapping[str, tuple[str, _Held]]
    ) -> dict[str, tuple[str, str]]:
        """Map turns and calls whose answer another span holds to its id and that span."""
        found: dict[str, tuple[str, str]] = {}
        for span in ordered:
            answers = is_turn(span) or is_of_an_agent(span)
            if answers and span.span_id not in self._kept.answers:
                identity = text(span.attributes, semconv.MESSAGE_ID)
                holder = holders[identity][0] if identity in holders else span.span_id
                if holder != span.span_id:
                    found[span.span_id] = identity, holder
        return found

    def _numbered(
        self,
        outline: Outline,
        chosen: Sequence[SpanRecord],
        agents: Mapping[str, str],
        holders: Mapping[str, tuple[str, _Held]],
    ) -> Outline:
        """Return the outline with its steps."""
        places: dict[str, int] = {}
        first: dict[int, int] = {}
        said: Counter[tuple[str, str]] = Counter()
        handed: Counter[tuple[str, str]] = Counter()
        for number, span in enumerate(chosen):
            identity, who = span.span_id, actor_of(span, agents[key(span)])
            kind, likeness = self._told(span, holders, spoken=outline.spoken)
            likeness = hash((kind.value, who, likeness))
            outline.span_ids.append(identity)
            outline.actors.append(places.setdefault(who, len(places)))
            outline.kinds.append(KINDS.index(kind))
            outline.failed.append(span.status == "Error")
            outline.starts.append(time_of(span))
            outline.ends.append(span.end)
            outline.likenesses.append(likeness)
            outline.repeats.append(first.setdefault(likeness, number))
            if who and span.operation == semconv.SEND_MESSAGE:
                for to in vocabulary.strings(vocabulary.read(span.attributes, "recipients")):
                    said[who, to] += 1
            target = str(vocabulary.read(span.attributes, "handoff_target") or "")
            if target:
                handed[who, target] += 1
        names = places or dict.fromkeys((outline.turns or {}).values())
        return replace(outline, names=tuple(names), said=said, handed=handed)

    def _told(
        self,
        span: SpanRecord,
        holders: Mapping[str, tuple[str, _Held]],
        *,
        spoken: bool,
    ) -> tuple[StepKind, int]:
        """Return the kind of a step and its likeness."""
        if span.operation == semconv.SEND_MESSAGE:
            return StepKind.MESSAGE, self._kept.likenesses[span.span_id]
        if span.operation == semconv.EXECUTE_TOOL:
            return StepKind.TOOL, hash(tuple(self._kept.calls[span.span_id]))
        answer = self._kept.answers.get(span.span_id)
        if answer is None:
            identity = text(span.attributes, semconv.MESSAGE_ID)
            answer = holders[identity][1] if identity in holders else None
        if span.operation != semconv.CHAT:
            likeness = answer.likeness if answer else self._kept.likenesses[span.span_id]
            return StepKind.MESSAGE, likeness
        says = spoken and answer is not None and bool(answer.message.content)
        kind = StepKind.MESSAGE if says else StepKind.MODEL
        return kind, answer.likeness if answer else hash(("", "", ""))

    def _texts(self, ordered: Sequence[SpanRecord]) -> tuple[Texts, dict[str, tuple[str, _Held]]]:
        """Return the messages of a run, each with the first span that holds it."""
        holders: dict[str, tuple[str, _Held]] = {}
        for span in ordered:
            for each in self._kept.held.get(span.span_id, ()):
                holders.setdefault(each.identity, (span.span_id, each))
        by_id = {identity: each.message for identity, (_, each) in holders.items()}
        answers = {identity: each.message for identity, each in self._kept.answers.items()}
        return Texts(by_id, answers), holders

    def _head(
        self,
        ordered: Sequence[SpanRecord],
        chosen: Sequence[SpanRecord],
        texts: Texts,
        holders: Mapping[str, tuple[str, _Held]],
        fetch: Fetch,
    ) -> Trajectory:
        """Return the run without its steps."""

        def whole(identity: str) -> list[SpanRecord]:
            found = fetch([identity], None)
            return list(translated(found) if self._foreign else found)

        lean = root_of(ordered)
        root = next(iter(whole(lean.span_id)), lean) if lean else None
        shown = vocabulary.strings(root.attributes.get(semconv.INPUT_MESSAGE_IDS)) if root else ()
        asked = next(
            (s for s in chosen if text(s.attributes, semconv.MESSAGE_ROLE) == "user"), None
        )
        task = ""
        wanted = task_ids(shown, texts.by_id)
        if not wanted and asked is not None and asked.operation == semconv.SEND_MESSAGE:
            task = next((result_of(span)[2] for span in whole(asked.span_id)), "")
        if not wanted and not task:
            wanted = [i for i, each in texts.by_id.items() if each.role == "user"][:1]
        for identity in wanted:
            held = texts_of(whole(holders[identity][0])).by_id
            task = in_one([task, held[identity].content if identity in held else ""])
        return head_of(ordered, root, task)

    def _lean(self, span: SpanRecord) -> SpanRecord:
        """Return a span without its texts; values that recur are kept once."""
        shared = self._shared
        attributes = {
            name: shared.setdefault(value, value) if isinstance(value, str) else value
            for name, value in span.attributes.items()
            if name in _STRUCTURE
        }
        if span.operation:  # other attributes may have marked it
            attributes[semconv.OPERATION_NAME] = span.operation
        if span.operation == semconv.EXECUTE_TOOL and (given := arguments_of_call(span)):
            # Calls are compared by their arguments: only a hash of them is needed.
            attributes[semconv.TOOL_CALL_ARGUMENTS] = f'{{"": {hash(given)}}}'
        return SpanRecord(
            trace_id=shared.setdefault(span.trace_id, span.trace_id),
            span_id=shared.setdefault(span.span_id, span.span_id),
            parent_span_id=shared.setdefault(span.parent_span_id, span.parent_span_id),
            name="",
            start=span.start,
            end=span.end,
            attributes=attributes,
            status=shared.setdefault(span.status, span.status),
            service=shared.setdefault(span.service, span.service),
            scope=shared.setdefault(span.scope, span.scope),
            is_open=span.is_open,
        )

    def _hold(self, identity: str, message: Message) -> _Held:
        says = bool(message.content.strip())
        likeness = hash(("", arguments_of(message), message.content))
        if message.tool_calls and not says:
            calls = tuple(ToolCall(call.name, None, call.id) for call in message.tool_calls)
            return _Held(identity, Message("", role=message.role, tool_calls=calls), likeness, None)
        given = (_WORDS if says else "", message.role)
        shown = self._messages.setdefault(given, Message(*given))
        return _Held(identity, shown, likeness, word_of(message.content))
