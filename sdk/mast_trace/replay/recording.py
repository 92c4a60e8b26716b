"""Makes the tape of a recorded run, or reports the reason why it cannot be replayed.

Reasons against a replay in the texts of a run: those that redaction has changed, or a limit has cut.

A request of the program holds the texts as they were, which an altered record cannot answer; an altered
answer would lead the program elsewhere.

Tool calls that earlier versions recorded in CrewAI's history of messages.

CrewAI's event replaced the parts of a call by their ``repr``: the call of ``price`` with ``{"item": "pot"}`` was
recorded as ``'price'`` with ``'{"item": "pot"}'``. No model's provider allows a name with quotes.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final

from mast_trace import semconv
from mast_trace.content import MOST_CONTENT, as_text
from mast_trace.exceptions import MastTraceError
from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import canonical_arguments, canonical_request
from mast_trace.replay.executions import plain_functions, with_call_ids
from mast_trace.replay.tape import Exchange, Execution, Tape
from mast_trace.result_types import BLOCK, opaque_type
from mast_trace.spans.randomness import HASH_SEED, SEED_VARIABLE, usable
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace.untrusted_json import read_json

# One literal and nothing else: stored texts are not to be parsed as larger expressions.
_LITERAL: Final = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")

_OF_CALLS = {
    semconv.INPUT_MESSAGES: "the input",
    semconv.OUTPUT_MESSAGES: "the answer",
    semconv.RESPONSE_EXTRA: "the parts beside the answer",
}
_OF_TOOLS = {semconv.TOOL_CALL_ARGUMENTS: "the arguments", semconv.TOOL_CALL_RESULT: "the result"}
_OF_RUNS = {semconv.HUMAN_INPUTS: "what a person typed", semconv.FEEDBACK_TEXTS: "the lessons"}
_CUT_WITHIN = re.compile(r"characters cut by mast-trace|\d+ more (?:keys|items) cut")
"""Marks that `mast_trace.content` leaves in a text."""
_UNANSWERED = {
    "aws.bedrock": "botocore",
    "cohere": "Cohere's client",
    "gcp.gemini": "generateContent or gRPC",
    "gcp.gen_ai": "generateContent or gRPC",
    "gcp.vertex_ai": "generateContent or gRPC",
    "ollama": "Ollama's client",
}
"""Providers whose own clients make requests that a tape cannot answer, with the way of those."""
_SEVERAL = re.compile(r"n=([2-9]|\d\d+)")


def with_plain_calls(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages, their quoted tool calls as the model's server received them."""
    for message in messages:
        calls = tuple(_plain(call) for call in message.tool_calls)
        yield message if calls == message.tool_calls else _with(message, calls)


def _with(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    return dataclasses.replace(message, tool_calls=calls)


def _plain(call: ToolCall) -> ToolCall:
    name = _unquoted(call.name)
    if name == call.name:
        return call
    arguments = call.arguments
    if isinstance(arguments, str):
        arguments = _unquoted(arguments)
    return dataclasses.replace(call, name=name, arguments=arguments)


def _unquoted(text: str) -> str:
    if not _LITERAL.fullmatch(text):
        return text
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text


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


class NotReplayable(MastTraceError):
    """A run lacks data that a replay needs."""


def tape_of(run: Trajectory, *earlier: Trajectory, live_tools: Iterable[str] = ()) -> Tape:
    """Return the tape of a run.

    Args:
        run: the run.
        earlier: interrupted runs that it continues, the first one first.
        live_tools: names of tools that may be executed; ``*`` for all. Their results need not be
            values that a text can hold.

    Raises:
        NotReplayable: a tool's result is no such value, the program executes a tool by itself, texts were not captured, were redacted or were cut, the run is
            too long to be read whole, or it has no model calls.
    """
    live = frozenset(live_tools)
    parts = [_tape_of(each, live) for each in (*earlier, run)]
    if not any(part.exchanges for part in parts):
        raise NotReplayable(f"Run {run.trace_id} cannot be replayed: it has no model calls.")
    runs = (*earlier, run)
    plain = sum((Counter(plain_functions(each)) for each in runs), Counter[str]())
    blocks = Counter(step.tool for each in runs for step in each.steps if step.result_type == BLOCK)
    for executed, told in ((plain, _PLAIN), (blocks, _BLOCK)):
        if unnamed := {name: calls for name, calls in executed.items() if not live & {name, "*"}}:
            why = _of_plain(unnamed, *told)
            raise NotReplayable(f"Run {run.trace_id} cannot be replayed: {why}")
    begun = runs[0]
    drawn = {SEED_VARIABLE: begun.seed, HASH_SEED: begun.hash_seed}
    return Tape(
        run=run.trace_id,
        exchanges=tuple(each for part in parts for each in part.exchanges),
        executions=tuple(each for part in parts for each in part.executions),
        handing_over=tuple(dict.fromkeys(each for part in parts for each in part.handing_over)),
        inputs=tuple(each for part in parts for each in part.inputs),
        lessons=tuple(each for part in parts for each in part.lessons),
        plain_functions=tuple({**plain, **blocks}),
        blocks=tuple(blocks),
        start=begun.start or None,
        environment={name: seed for name, seed in drawn.items() if usable(seed)},
    )


_PLAIN = ("without a span", "write `@mast_trace.tool` in the line above `def {}`")
_BLOCK = ("in a block", "make the block of {} a function below `@mast_trace.tool`")
"""The place where a program executes a tool by itself, and the way to answer it from the record instead."""


def _of_plain(calls: Mapping[str, int], place: str, remedy: str) -> str:
    """Return the sentences on what each replay would execute, with the ways out."""
    named = ", ".join(f"{name} (calls: {number})" for name, number in calls.items())
    first = next(iter(calls))
    return (
        f"its program executes {named} by itself, {place}, so that each replay would execute it again. "
        f"Answer it from the record: {remedy.format(first)}, and record a run again. Or allow it: --set plain={first} if it changes nothing, --set live_tools={first} with --set "
        "reset=COMMAND if it does."
    )


def _tape_of(run: Trajectory, live: frozenset[str]) -> Tape:
    calls = [call for call in run.invocations if call.kind == "model"]
    tools = [step for step in run.steps if step.kind is StepKind.TOOL]
    own = [step for step in tools if step.result_type != BLOCK]
    executed = [step for step in own if not step.handoff_to and not _is_live(step, live)]
    if reason := next(chain(_obstacles(run, calls), alterations(run, calls, executed)), ""):
        raise NotReplayable(f"Run {run.trace_id} cannot be replayed: {reason}")
    for step in own:
        kind = opaque_type(step.result_type)
        if kind and not _is_live(step, live):
            raise NotReplayable(
                f"Run {run.trace_id} cannot be replayed: {step.tool} returned a value of {kind}, which "
                f"no text can stand for. --set live_tools={step.tool} executes it."
            )
    answering = {step.message_id: step for step in tools if step.message_id}
    return Tape(
        run=run.trace_id,
        exchanges=tuple(
            _exchange(run, call, answering) for call in sorted(calls, key=lambda each: each.end)
        ),
        executions=tuple(_execution(step) for step in sorted(executed, key=lambda each: each.end)),
        handing_over=tuple(dict.fromkeys(step.tool for step in tools if step.handoff_to)),
        inputs=tuple(zip_longest(run.human_inputs, run.human_input_spans, fillvalue="")),
        lessons=run.given_lessons,
    )


def _is_live(step: Step, live: frozenset[str]) -> bool:
    """Return whether a tool is executed because its result cannot be rebuilt."""
    return bool(opaque_type(step.result_type)) and bool(live & {step.tool, "*"})


def _obstacles(run: Trajectory, calls: list[Invocation]) -> Iterator[str]:
    """Yield the reasons why a run cannot be replayed."""
    if run.is_partial:
        yield "it is too long to be read whole."
    for call in calls:
        if client := _UNANSWERED.get(call.provider):
            yield (
                f"{call.agent or 'an unknown agent'} asks a model of {call.provider} through {client}; "
                "only clients on httpx with the interfaces of OpenAI and Anthropic are answered."
            )
        who = f"a model call of {call.agent or 'an unknown agent'}"
        missing = [identity for identity in call.input_ids if identity not in run.texts]
        if missing:
            yield (
                f"{who} was shown {len(missing)} messages whose texts were not recorded. "
                "Record with capture_content on."
            )
        if several := next((each for each in call.parameters if _SEVERAL.fullmatch(each)), ""):
            yield f"{who} asked for several choices ({several}), of which the first is recorded."
        if not call.input_ids:
            yield f"the input of {who} was not recorded."
        if call.error is None and _answer(run, call) is None:
            yield f"the answer to {who} was not recorded."
        seen = run.seen_by(call)
        if call.input_length is not None and sum(len(each.content) for each in seen) < (
            call.input_length
        ):
            yield f"the texts that {who} was shown were cut; raise the limit of recorded texts."


def _exchange(run: Trajectory, call: Invocation, answering: Mapping[str, Step]) -> Exchange:
    return Exchange(
        agent=call.agent,
        request=canonical_request(with_call_ids(with_plain_calls(run.seen_by(call)), answering)),
        answer=None if call.error is not None else _answer(run, call),
        model=call.model,
        finish_reason=call.finish_reason,
        error=call.error or "",
        span_id=call.span_id,
        branch=call.branch,
        start=call.start,
        end=call.end,
        parameters=call.parameters,
        requested_model=call.requested_model,
        extra=call.extra,
    )


def _answer(run: Trajectory, call: Invocation) -> Message | None:
    said = run.texts.get(call.output_id)
    if said is not None:
        return said
    return Message(call.output_text) if call.output_text else None


def _execution(step: Step) -> Execution:
    return Execution(
        agent=step.agent,
        tool=step.tool,
        arguments=canonical_arguments(step.arguments or None),
        result=step.text,
        call_id=step.call_id,
        error=step.error,
        span_id=step.span_id,
        branch=step.branch,
        result_type=step.result_type,
        start=step.start,
        end=step.end,
        parent=step.parent_span_id,
    )
