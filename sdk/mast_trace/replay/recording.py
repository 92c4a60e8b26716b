"""Makes the tape of a recorded run, or reports the reason why it cannot be replayed."""

from __future__ import annotations

import re
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from mast_trace.exceptions import MastTraceError
from mast_trace.messages import Message
from mast_trace.replay.altered import alterations
from mast_trace.replay.asked_calls import with_call_ids
from mast_trace.replay.canonical import canonical_arguments, canonical_request
from mast_trace.replay.quoted_calls import with_plain_calls
from mast_trace.replay.tape import Exchange, Execution, Tape
from mast_trace.result_types import opaque_type
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Invocation, Step, Trajectory


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
        NotReplayable: a tool's result is no such value, texts were not captured, were redacted or were cut, the run is
            too long to be read whole, or it has no model calls.
    """
    live = frozenset(live_tools)
    parts = [_tape_of(each, live) for each in (*earlier, run)]
    if not any(part.exchanges for part in parts):
        raise NotReplayable(f"Run {run.trace_id} cannot be replayed: it has no model calls.")
    return Tape(
        run=run.trace_id,
        exchanges=tuple(each for part in parts for each in part.exchanges),
        executions=tuple(each for part in parts for each in part.executions),
        handing_over=tuple(dict.fromkeys(each for part in parts for each in part.handing_over)),
        inputs=tuple(each for part in parts for each in part.inputs),
        lessons=tuple(each for part in parts for each in part.lessons),
    )


def _tape_of(run: Trajectory, live: frozenset[str]) -> Tape:
    calls = [call for call in run.invocations if call.kind == "model"]
    tools = [step for step in run.steps if step.kind is StepKind.TOOL]
    executed = [step for step in tools if not step.handoff_to and not _is_live(step, live)]
    if reason := next(chain(_obstacles(run, calls), alterations(run, calls, executed)), ""):
        raise NotReplayable(f"Run {run.trace_id} cannot be replayed: {reason}")
    for step in tools:
        kind = opaque_type(step.result_type)
        if kind and not _is_live(step, live):
            raise NotReplayable(
                f"Run {run.trace_id} cannot be replayed: {step.tool} returned a value of {kind}, which "
                f"no text can stand for. --live-tools {step.tool} executes it."
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
