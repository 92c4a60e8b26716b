"""Answers that only an agent's span records: they are steps, whatever the span's operation.

A span that names an agent and has an output records an answer of that agent. Where a step around it
or inside of it carries the same text (a message, a model's answer, the result of a tool that is the
agent), or the agent sent the text as a message elsewhere in the run, that step is the answer. Among
nested spans of one answer the innermost counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import key, message_of
from mast_trace.trajectory.span_tree import LEVELS, above

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

STEPS = frozenset({semconv.SEND_MESSAGE, semconv.EXECUTE_TOOL, semconv.CHAT})
"""Operations whose spans are steps themselves."""
_OTHERS = frozenset({semconv.RECORD_OUTCOME, "embeddings", "create_agent", "create_memory_store"})
# Keys under which an answer is found in an object, the surest first.
_ANSWERS = (
    "messages",
    "answer",
    "outputs",
    "output",
    "response",
    "content",
    "text",
    "result",
    "generations",
)
_DEEPEST = 8
_MOST = 64
"""Number of texts in an output that are compared with those of steps."""


def is_of_an_agent(span: SpanRecord) -> bool:
    """Return whether an output on the span is an answer: the span names an agent, and is no step itself."""
    return span.operation not in STEPS | _OTHERS and bool(vocabulary.agent(span.attributes))


def time_of(span: SpanRecord) -> int:
    """Return the time of a step: an agent's answer at the end of its span, others at the start."""
    return span.start if span.operation in STEPS else span.end


def answer_in(output: Any) -> str:
    """Return the text of an output: its last message, its answer, or all of it."""
    loaded = vocabulary.loaded(output)
    if isinstance(loaded, Mapping | list):
        return _said(loaded, _DEEPEST) or as_text(output)
    return loaded if isinstance(loaded, str) else as_text(output)


def texts_in(output: Any) -> list[str]:
    """Return the texts in an output that a step may carry: its answer first."""
    loaded = vocabulary.loaded(output)
    leaves = _leaves(loaded, _DEEPEST) if isinstance(loaded, Mapping | list) else iter(())
    found = (each.strip() for each in (answer_in(output), *islice(leaves, _MOST)))
    return list(dict.fromkeys(filter(None, found)))


def word_of(text: str) -> int | None:
    """Return the hash of a text without surrounding white space; None if the text is empty."""
    said = text.strip()
    return hash(said) if said else None


def output_words(span: SpanRecord) -> tuple[int, ...]:
    """Return the hashes of the texts in the output of an agent's span that are no messages."""
    if not is_of_an_agent(span):
        return ()
    output = vocabulary.read(span.attributes, "output")
    return () if output is None else tuple(map(hash, texts_in(output)))


def _said(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth == 0 or not value:
        return ""
    if isinstance(value, list):
        return _said(value[-1], depth - 1)
    if isinstance(value, Mapping):
        if value.get("parts"):
            return message_of(value).content
        inner = (_said(value[name], depth - 1) for name in _ANSWERS if name in value)
        return next(filter(None, inner), "")
    return ""


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(each, depth - 1)


def with_answers(
    spans: Sequence[SpanRecord],
    steps: Sequence[SpanRecord],
    outputs: Mapping[str, Sequence[int]],
    words: Callable[[SpanRecord], int | None],
    actor: Callable[[SpanRecord], str],
) -> list[SpanRecord]:
    """Return the steps, and the spans whose output is a step of its own, all by their time.

    Args:
        spans: of the run, by start time.
        steps: the spans that are steps already, likewise.
        outputs: the hashes of the texts in an agent's output, by the span's `key`.
        words: the hash of a step's text; None if it has none.
        actor: returns the agent of a span's step.
    """
    chosen = list(steps)
    if not outputs:
        return chosen
    by_id = {span.span_id: span for span in spans if span.span_id}
    wanted = {each for told in outputs.values() for each in told}
    said: dict[str, int] = {}
    sent: Counter[tuple[str, int]] = Counter()
    told_inside: set[str] = set()
    for step in steps:
        word = words(step)
        if word is None or word not in wanted:
            continue
        said[key(step)] = word
        around = [each for each in _around(step, by_id) if word in outputs.get(each, ())]
        told_inside.update(around)
        if not around and step.operation == semconv.SEND_MESSAGE:
            sent[actor(step), word] += 1
    # An inner span begins after the outer one: the innermost comes first.
    for span in reversed(spans):
        told = outputs.get(key(span), ())
        if not told or key(span) in told_inside:
            continue
        if any(said.get(each) in told for each in _around(span, by_id)):
            continue
        elsewhere = next((word for word in told if sent[actor(span), word] > 0), None)
        if elsewhere is not None:
            sent[actor(span), elsewhere] -= 1
            continue
        chosen.append(span)
        told_inside.update(
            each for each in _around(span, by_id) if not set(told).isdisjoint(outputs.get(each, ()))
        )
    return sorted(chosen, key=lambda span: (time_of(span), -span.end, span.span_id))


def _around(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> list[str]:
    return [key(around) for around in islice(above(span, by_id), LEVELS)]
