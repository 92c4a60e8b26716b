"""The recorded tool calls of a tape, as a replayed program asks for them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mast_trace.replay.canonical import canonical_arguments
from mast_trace.trajectory import Step, StepKind, Trajectory

if TYPE_CHECKING:
    from mast_trace.messages import Message, ToolCall
    from mast_trace.replay.tape import Exchange, Execution, Tape


class Executions:
    """Finds recorded tool calls, each once before the change of an intervention.

    After the change, an agent that calls a tool again with arguments that were recorded gets the
    recorded result again: executing the tool would act on the world a second time.
    """

    def __init__(self, tape: Tape) -> None:
        self._waiting = list(tape.executions)
        self._used: dict[tuple[str, str], Execution] = {}
        self._ids: set[str] = set()

    def __len__(self) -> int:
        """Return the number of calls that the program has not made yet."""
        return len(self._waiting)

    def forget(self, tool: str, call_id: str) -> list[Execution]:
        """Remove and return the entry of a call that the program has answered without the tool's code."""
        plain = plain_name(tool)
        gone = [
            each
            for each in self._waiting
            if each.call_id == call_id and plain_name(each.tool) == plain
        ]
        self._waiting = [each for each in self._waiting if each not in gone]
        return gone

    def know_ids(self, call_ids: Iterable[str]) -> None:
        """Note ids of recorded calls that a served answer asks for without a change."""
        self._ids.update(call_ids)

    def take(
        self,
        tool: str,
        arguments: str,
        call_id: str,
        agent: str,
        *,
        after: bool,
        branch: str = "",
    ) -> Execution | None:
        """Return the recorded call and remove it; None if there is none.

        Args:
            tool: name of the tool.
            arguments: in canonical form.
            call_id: the model's id of the call; empty if the framework does not pass it on.
            agent: name of the calling agent; empty if unknown.
            after: whether the change of an intervention has been made. Ids of live answers may then
                be equal to recorded ones, so that arguments count more than ids.
            branch: path of the calling branch.
        """
        plain = plain_name(tool)
        found = self._by_id(plain, arguments, call_id, after=after)
        if found is None and (after or not call_id):
            # Some frameworks do not pass the id of a call on to the code that executes the tool.
            same = [each for each in self._waiting if plain_name(each.tool) == plain]
            same = [each for each in same if each.arguments == arguments]
            found = min(same, key=partial(strangeness, agent, branch), default=None)
        if found is None:
            return self._used.get((plain, arguments)) if after else None
        self._waiting.remove(found)
        # Frameworks fill in defaults, so that arguments may differ from the recorded ones.
        for form in (arguments, found.arguments):
            self._used[plain, form] = found
        return found

    def _by_id(self, plain: str, arguments: str, call_id: str, *, after: bool) -> Execution | None:
        if not call_id or (after and call_id not in self._ids):
            return None
        for each in self._waiting:
            if each.call_id == call_id and plain_name(each.tool) == plain:
                return each if not after or _agree(each.arguments, arguments) else None
        return None


class PlainCalls:
    """Counts the calls of functions that a replayed program executes by itself, by the results in its requests.

    Args:
        names: of the functions.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._asked: set[str] = set()
        self._seen: set[str] = set()

    def asked(self, call_ids: Iterable[str]) -> None:
        """Note the ids of calls that an answer from the record asks for."""
        self._asked.update(call_ids)

    def executed(self, messages: Sequence[Message], *, live: bool) -> int:
        """Return the number of calls whose result is in a request for the first time.

        Args:
            messages: the request.
            live: whether models answer, whose calls are not known. Before that a call for which no answer has
                asked is one of an earlier run of a conversation.
        """
        calls = [call for message in messages for call in message.tool_calls]
        plain = {call.id for call in calls if call.id and call.name in self._names}
        results = {message.tool_call_id for message in messages if message.role == "tool"}
        new = plain & results - self._seen
        self._seen |= new
        return len(new if live else new & self._asked)


def strangeness(agent: str, branch: str, entry: Exchange | Execution) -> tuple[bool, bool, bool]:
    """Return a sort key: smaller for entries of the same parallel branch, then of the same agent."""
    other = entry.branch != branch
    return bool(branch) and other, entry.agent != agent, bool(entry.branch) and other


def plain_name(tool: str) -> str:
    """Return a tool's name in the form that frameworks send to models: letters, digits and _."""
    return re.sub(r"\W+", "_", tool).casefold()


def _agree(recorded: str, asked: str) -> bool:
    """Return whether every recorded argument has its value in the call, which may have more of them."""
    before, after = json.loads(recorded), json.loads(asked)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return bool(before == after)
    missing: Any = object()
    return all(after.get(name, missing) == value for name, value in before.items())


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


def plain_functions(run: Trajectory) -> dict[str, int]:
    """Return the number of calls of each function that the program calls by itself, by its name.

    A model of the run asks for it, no tool call of the run has its name or its result, and a later request
    carries a result: the program has executed it, and a replay does again. Structured outputs and tools of the
    provider have no such result.
    """
    steps = [step for step in run.steps if step.kind is StepKind.TOOL]
    recorded = {plain_name(step.tool) for step in steps}
    ids = {step.call_id for step in steps}
    results = {step.message_id for step in steps if step.message_id}
    models = [call for call in run.invocations if call.kind == "model"]
    answers = [run.texts[call.output_id] for call in models if call.output_id in run.texts]
    asked = {
        call.id: call.name
        for answer in answers
        for call in answer.tool_calls
        if call.id and call.id not in ids and plain_name(call.name) not in recorded
    }
    if not asked:
        return {}
    answered = {
        message.tool_call_id
        for call in models
        for message in run.seen_by(call)
        if message.role == "tool" and message.id not in results
    }
    return dict(Counter(name for identity, name in asked.items() if identity in answered))


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
