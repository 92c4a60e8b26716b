"""Messages of a conversation as the steps of a run: each tool call is one step with its result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.transfer.formats.kinds import Transcript, moment_or_zero, whole_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.messages import ToolCall


@dataclass(frozen=True)
class Result:
    """A tool's answer: the id of its call, the tool, and the error, if any."""

    text: str
    call_id: str = ""
    tool: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Entry:
    """One parsed message.

    Attributes:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        agent: the author.
        calls: the tool calls that it asks for.
        results: the answers of tools that it holds.
        handoff_to: the agent to which it hands over.
        synthetic: the framework wrote the text in the agent's name.
        time: nanoseconds since the epoch; 0 if unknown.
        usage: tokens of input and output of the model's call that made it; None if not reported.
    """

    role: str
    agent: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    recipients: tuple[str, ...] = ()
    handoff_to: str = ""
    synthetic: bool = False
    time: int = 0
    usage: tuple[int, int] | None = None


class _Steps:
    """Collects steps; a call waits for its result in its place."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._waiting: dict[int, tuple[ToolCall, bool]] = {}
        self._caller = ""

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        first = len(self.steps)
        if entry.text or entry.handoff_to or not (entry.calls or entry.results):
            self.steps.append(_said(entry, len(self.steps)))
        for call in entry.calls:
            self._caller = entry.agent
            called = Step(
                index=len(self.steps),
                kind=StepKind.TOOL,
                agent=entry.agent,
                text="",
                tool=call.name,
                arguments=whole_text(call.arguments) if call.arguments is not None else "",
                call_id=call.id or "",
                start=entry.time,
            )
            self._waiting[len(self.steps)] = (call, bool(entry.text))
            self.steps.append(called)
        for result in entry.results:
            self._answer(result, entry)
        if entry.usage and first < len(self.steps):
            spent, made = entry.usage
            self.steps[first] = dataclasses.replace(
                self.steps[first], input_tokens=spent, output_tokens=made
            )

    def finished(self) -> tuple[Step, ...]:
        """Return the numbered steps.

        A call without an answer was requested, but it is unknown whether it was made: its text
        notes that, or a model's action does.
        """
        kept: list[Step] = []
        for place, step in enumerate(self.steps):
            unanswered = self._waiting.get(place)
            if unanswered is not None:
                call, listed = unanswered
                if listed:  # the message before it lists its calls
                    continue
                asked = whole_text([{"name": call.name, "arguments": call.arguments}])
                step = dataclasses.replace(  # noqa: PLW2901  # the step as it is kept
                    step, kind=StepKind.MODEL, tool="", call_id="", arguments=asked
                )
            moved = step.index != len(kept)
            kept.append(dataclasses.replace(step, index=len(kept)) if moved else step)
        return tuple(kept)

    def _answer(self, result: Result, entry: Entry) -> None:
        number = self._place_of(result)
        if number is None:
            orphan = Step(
                index=len(self.steps),
                kind=StepKind.TOOL,
                agent=self._caller or entry.agent,
                text=result.text,
                tool=result.tool,
                call_id=result.call_id,
                error=result.error,
                start=entry.time,
            )
            self.steps.append(orphan)
            return
        del self._waiting[number]
        self.steps[number] = dataclasses.replace(
            self.steps[number], text=result.text, error=result.error, end=entry.time
        )

    def _place_of(self, result: Result) -> int | None:
        """Return the call that an answer belongs to: by id, else by the tool's name, else the oldest."""
        if result.call_id:
            ids = (n for n, (call, _) in self._waiting.items() if call.id == result.call_id)
            return next(ids, None)
        tools = ((n, call.name) for n, (call, _) in self._waiting.items())
        return next((n for n, tool in tools if result.tool in {"", tool}), None)


def _said(entry: Entry, index: int) -> Step:
    calls = [{"name": call.name, "arguments": call.arguments} for call in entry.calls]
    return Step(
        index=index,
        kind=StepKind.MESSAGE,
        agent=entry.agent,
        text=entry.text,
        role=entry.role,
        recipients=entry.recipients,
        arguments=whole_text(calls) if calls else "",
        handoff_to=entry.handoff_to,
        synthetic=entry.synthetic,
        start=entry.time,
    )


def task_at_first(entries: Sequence[Entry]) -> str:
    """Return the first text of a conversation: it is the task where whoever begins may have any name or role."""
    return next((entry.text for entry in entries if entry.text), "")


_SURE = 10**18
"""A smaller number of nanoseconds is no time of our days."""


def transcript_of(
    entries: Sequence[Entry],
    name: str,
    *,
    framework: str = "",
    task: str = "",
    termination_reason: str = "",
    outcome: str = "",
    outcome_reason: str = "",
    model: str = "",
    usage: tuple[int, int] | None = None,
    begun: Any = None,
) -> Transcript:
    """Return a conversation as a run; its task is the user's first message, where none is given.

    An outcome comes from a field of the file that states it, never from its format. Tokens of the run as a
    whole stand on the first entry of a model, and the time at which it began on the first of all,
    where no entry has its own.

    A message that holds nothing but tool calls becomes their steps; a tool's answer stands on the
    step of its call. System prompts that come before everything else are no steps, as in spans.

    Raises:
        ValueError: it holds no messages.
    """
    made = _Steps()
    spoken = next((entry for entry in entries if entry.role == "assistant"), None)
    if usage and spoken and not any(entry.usage for entry in entries):
        entries = [
            dataclasses.replace(each, usage=usage) if each is spoken else each for each in entries
        ]
    moment = 0 if any(entry.time for entry in entries) else moment_or_zero(begun)
    for entry in dropwhile(lambda entry: entry.role == "system", entries):
        made.add(dataclasses.replace(entry, time=moment) if moment > _SURE else entry)
        moment = 0
    steps = made.finished()
    if not steps:
        raise ValueError("it holds no messages")
    asked = (entry.text for entry in entries if entry.role == "user" and entry.text)
    trajectory = Trajectory(
        trace_id="",
        steps=steps,
        framework=framework,
        task=task or next(asked, ""),
        termination_reason=termination_reason,
        outcome=outcome,
        outcome_reason=outcome_reason,
    )
    return Transcript(trajectory, name, model)
