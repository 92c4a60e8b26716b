"""The change that a replay makes to a recorded run, and the border after which the program runs live.

Before the border every call is answered from the tape. The change is made at the border, and model
requests after it are sent to a model. The research paper of Zhang et al. (AgenTracer, arXiv 2509.03312)
defines the decisive error by such a change: the earliest step whose correction makes a failed run succeed.

Later changes of a joint fix, each of which waits for its agent's turn.

After the first change the program runs live, so that no later request need be equal to a recorded one.
A later change therefore meets the call of the same place: if it is the recorded agent's third call, it
changes that agent's third call; in a parallel branch its third call there.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import canonical_arguments

if TYPE_CHECKING:
    from mast_trace.replay.tape import Exchange, Execution, Tape

    _Caller = tuple[str, str]
    """An agent and its parallel branch; without a branch, the agent wherever it is."""

Change = Literal["start", "keep", "answer", "ask", "result"]
"""``start``: everything is live; ``keep``: nothing is changed, and the program is live after the model
call; ``answer``: the model's answer is replaced; ``ask``: the model request is sent to a model; ``result``:
a tool's result is replaced."""


class Turns:
    """Counts the model calls of each agent, and knows at which of them a change is due.

    Args:
        tape: the record.
        changes: the later changes.
    """

    def __init__(self, tape: Tape, changes: Iterable[LaterChange]) -> None:
        self._due: dict[tuple[_Caller, int], LaterChange] = {}
        self._made: Counter[_Caller] = Counter()
        self._names: dict[str, str] = {}
        self._counted: dict[int, tuple[_Caller, ...]] = {}
        callers = [(each.agent, each.branch) for each in tape.exchanges]
        self._known = {"", *(agent for agent, _ in callers)}
        for change in changes:
            agent, branch = callers[change.position]
            before = callers[: change.position]
            turn = sum(who == agent and (not branch or where == branch) for who, where in before)
            self._due[(agent, branch), turn] = change

    def __len__(self) -> int:
        """Return the number of changes that have not been made."""
        return len(self._due)

    def due(self, agent: str, branch: str) -> LaterChange | None:
        """Return the change that the next call of an agent meets, and take it out; None without one."""
        for caller in self._callers(agent, branch):
            if change := self._due.pop((caller, self._made[caller]), None):
                return change
        return None

    def served(self, agent: str, branch: str, recorded: Exchange) -> None:
        """Count a call that is answered from the record.

        The record may know its agent by another name than the one that the call came with.
        """
        if agent not in self._known:
            self._names[agent] = recorded.agent
        self._made.update(self._callers(recorded.agent, branch))

    def sent(self, agent: str, branch: str, number: int) -> None:
        """Count a call that is sent to a model under a number."""
        self._counted[number] = self._callers(agent, branch)
        self._made.update(self._counted[number])

    def failed(self, number: int) -> None:
        """Take back a call that a model did not answer: its client makes it again."""
        self._made.subtract(self._counted.pop(number, ()))

    def _callers(self, agent: str, branch: str) -> tuple[_Caller, ...]:
        name = self._names.get(agent, agent)
        return ((name, branch), (name, "")) if branch else ((name, ""),)


@dataclass(frozen=True)
class LaterChange:
    """A further change of a joint fix, after the first one; see `mast_trace.replay.intervention`.

    Attributes:
        position: index of the changed model call in `Tape.exchanges`.
        answer: the new answer; None where a model is asked.
        model: name of that model.
    """

    position: int
    answer: Message | None = None
    model: str = ""


@dataclass(frozen=True)
class LaterResult:
    """A further result of a tool, which meets the recorded call: that of its tool and arguments.

    Attributes:
        position: index of the changed tool call in `Tape.executions`.
        result: the new result.
    """

    position: int
    result: str


@dataclass(frozen=True)
class Intervention:
    """One change of a recorded run, or several that belong together.

    Attributes:
        change: the kind of change.
        position: index of the changed model call in `Tape.exchanges`, or of the changed tool call in
            `Tape.executions` for ``result``; -1 for ``start``.
        border: number of model calls, from the first, that are answered from the tape.
        answer: the new answer, for ``answer``.
        result: the new result, for ``result``.
        error: text of the exception that the tool raises in place of the result, for ``result``.
        model: name of the model that is asked, for ``ask``; empty for the program's own.
        request: the change of the messages that the model is shown, for ``ask``; see
            `mast_trace_instrumentations.replay.live_requests`.
        hold: whether requests after the border that are equal to a recorded one are answered from
            the tape.
        also: further changes of model calls after the border, for ``answer``, ``ask`` and ``result``.
        results: further results of tools, likewise.
    """

    change: Change
    position: int = -1
    border: int = 0
    answer: Message | None = None
    result: str = ""
    error: str = ""
    model: str = ""
    request: Mapping[str, Any] | None = None
    hold: bool = False
    also: tuple[LaterChange, ...] = ()
    results: tuple[LaterResult, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return the intervention as a mapping that JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, shape: Mapping[str, Any]) -> Intervention:
        """Read what `to_plain` returned.

        Raises:
            TypeError: the mapping has other keys.
            KeyError: the answer lacks a key.
        """
        also = tuple(
            LaterChange(**{**each, "answer": _message(each.get("answer"))})
            for each in shape.get("also", ())
        )
        results = tuple(LaterResult(**each) for each in shape.get("results", ()))
        answer = _message(shape.get("answer"))
        return cls(**{**shape, "answer": answer, "also": also, "results": results})

    def executions(self, recorded: Sequence[Execution]) -> dict[int, Execution]:
        """Return the tool calls of a tape that have a new result, with it, by their position."""
        changed = {each.position: (each.result, "") for each in self.results}
        if self.change == "result":
            changed[self.position] = self.result, self.error
        made = {
            place: dataclasses.replace(recorded[place], result=result, error=error or None)
            for place, (result, error) in changed.items()
        }
        return {  # the type of an exception is not that of the result in its place
            place: each
            if recorded[place].error is None
            else dataclasses.replace(each, result_type="")
            for place, each in made.items()
        }


def with_answer(recorded: Exchange, answer: Message | None) -> Exchange:
    """Return a recorded model call with a new answer; the recorded one without it.

    Reasoning, citations and the like belong to the recorded answer, so that a new one has none.
    """
    if answer is None or recorded.answer is None:
        return recorded
    same_end = bool(answer.tool_calls) == bool(recorded.answer.tool_calls)
    finish = recorded.finish_reason if same_end else ""
    return dataclasses.replace(recorded, answer=answer, finish_reason=finish, extra="")


def changed_calls(recorded: Exchange, answer: Message | None) -> frozenset[str]:
    """Return ids of tool calls that a new answer asks for with another name or other arguments."""
    if answer is None or recorded.answer is None:
        return frozenset()
    before = {call.id: _asked(call) for call in recorded.answer.tool_calls}
    return frozenset(
        call.id for call in answer.tool_calls if call.id and before.get(call.id) != _asked(call)
    )


def _message(shape: Mapping[str, Any] | None) -> Message | None:
    if shape is None:
        return None
    calls = tuple(ToolCall(**call) for call in shape["tool_calls"])
    return Message(**{**shape, "tool_calls": calls})


def _asked(call: ToolCall) -> tuple[str, str]:
    return call.name, canonical_arguments(call.arguments)
