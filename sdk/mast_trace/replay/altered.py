"""Reasons against a replay in the texts of a run: those that redaction has changed, or a limit has cut.

A request of the program holds the texts as they were, which an altered record cannot answer; an altered
answer would lead the program elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.content import MOST_CONTENT, as_text
from mast_trace.untrusted_json import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.messages import Message
    from mast_trace.trajectory import Invocation, Step, Trajectory

_OF_CALLS = {
    semconv.INPUT_MESSAGES: "the input",
    semconv.OUTPUT_MESSAGES: "the answer",
    semconv.RESPONSE_EXTRA: "the parts beside the answer",
}
_OF_TOOLS = {semconv.TOOL_CALL_ARGUMENTS: "the arguments", semconv.TOOL_CALL_RESULT: "the result"}
_OF_RUNS = {semconv.HUMAN_INPUTS: "what a person typed", semconv.FEEDBACK_TEXTS: "the lessons"}

_CUT_WITHIN = re.compile(r"characters cut by mast-trace|\d+ more (?:keys|items) cut")
"""Marks that `mast_trace.content` leaves in a text."""


def alterations(
    run: Trajectory, calls: Iterable[Invocation], executed: Iterable[Step]
) -> Iterator[str]:
    """Yield the reasons why texts of a run are not those that its program had.

    Args:
        run: the run.
        calls: its model calls.
        executed: its tool calls that a replay answers.
    """
    yield from _reasons("the run", _OF_RUNS, run.redacted, run.cut)
    for call in calls:
        who = f"a model call of {call.agent or 'an unknown agent'}"
        cut = [name for name in call.cut if name != semconv.INPUT_MESSAGES]
        yield from _reasons(who, _OF_CALLS, call.redacted, cut)
        answer = run.texts.get(call.output_id)
        if answer is not None and _is_cut_in_a_call(answer, marked=False):
            yield _cut(f"the answer of {who}")
        # Texts of an input are compared by their length: another span may hold them whole.
        marked = semconv.INPUT_MESSAGES in call.cut
        if any(_is_cut_in_a_call(message, marked=marked) for message in run.seen_by(call)):
            yield _cut(f"the input of {who}")
    for step in executed:
        cut = list(step.cut)
        if _is_cut_json(step.arguments):
            cut.append(semconv.TOOL_CALL_ARGUMENTS)
        who = f"a call of {step.tool} by {step.agent or 'an unknown agent'}"
        yield from _reasons(who, _OF_TOOLS, step.redacted, cut)


def _reasons(
    who: str, named: Mapping[str, str], redacted: Sequence[str], cut: Sequence[str]
) -> Iterator[str]:
    if changed := [text for name, text in named.items() if name in redacted]:
        yield (
            f"redaction has changed {' and '.join(changed)} of {who}, and a replay needs the texts as "
            "the program had them. Record a run without `redact`, or with one that leaves its texts as they are."
        )
    if short := [text for name, text in named.items() if name in cut]:
        yield _cut(f"{' and '.join(short)} of {who}")


def _cut(what: str) -> str:
    return (
        f"{what} had more characters than are recorded of a text. Raise "
        "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and record a run again."
    )


def _is_cut_in_a_call(message: Message, *, marked: bool) -> bool:
    """Return whether arguments of a message's tool calls were cut.

    Args:
        message: a message of the run.
        marked: the span says that some text of its input was cut; else arguments count that the cut
            has left without the form of JSON.
    """
    for call in message.tool_calls:
        if marked and _CUT_WITHIN.search(as_text(call.arguments, MOST_CONTENT)):
            return True
        if isinstance(call.arguments, str) and _is_cut_json(call.arguments):
            return True
    return False


def _is_cut_json(text: str) -> bool:
    if not _CUT_WITHIN.search(text):
        return False
    try:
        read_json(text)
    except ValueError:
        return True
    return False
