"""Tool calls that a model's answer asks for, and the steps and results that answer them."""

from __future__ import annotations

import dataclasses
from itertools import groupby
from typing import TYPE_CHECKING

from mast_trace.replay.canonical import canonical_arguments
from mast_trace.replay.executions import plain_name
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.messages import Message, ToolCall
    from mast_trace.trajectory import Step


def is_call_of(step: Step, asked: ToolCall) -> bool:
    """Return whether a step is the tool call that a model's answer asks for.

    Programs without a framework do not pass on the ids of calls; their steps are recognised by the name
    of the tool and the arguments.
    """
    if step.kind is not StepKind.TOOL:
        return False
    if step.call_id:
        return step.call_id == asked.id
    same = canonical_arguments(step.arguments or None) == canonical_arguments(asked.arguments)
    return same and plain_name(step.tool) == plain_name(asked.name)


def with_call_ids(messages: Iterable[Message], steps: Mapping[str, Step]) -> Iterator[Message]:
    """Yield the messages of a request, tools' results with the ids of their calls, as far as known.

    Args:
        messages: the request.
        steps: tool steps by the id of the message that holds their result.
    """
    waiting: list[ToolCall] = []
    for is_result, block in groupby(messages, key=lambda message: message.role == "tool"):
        found = list(block)
        for message in _identified(found, waiting, steps) if is_result else found:
            waiting += message.tool_calls
            if message.tool_call_id:
                waiting = [call for call in waiting if call.id != message.tool_call_id]
            yield message


def _identified(
    results: Sequence[Message], waiting: Sequence[ToolCall], steps: Mapping[str, Step]
) -> list[Message]:
    """Return results that follow each other, with the ids of the calls that wait for them.

    A result belongs to the call of its step's tool. Functions may be named otherwise than their tools;
    those begin in the order of their calls.
    """
    known = {message.tool_call_id for message in results}
    calls = [call for call in waiting if call.id not in known]
    found = list(results)
    left = [
        place
        for place, message in enumerate(results)
        if not message.tool_call_id and message.id in steps
    ]
    left.sort(key=lambda place: steps[results[place].id or ""].start)
    for named in (True, False):
        for place in tuple(left):
            step = steps[results[place].id or ""]
            call = next((each for each in calls if not named or is_call_of(step, each)), None)
            if call is not None:
                found[place] = dataclasses.replace(results[place], tool_call_id=call.id)
                calls.remove(call)
                left.remove(place)
    return found
