"""Messages of a conversation as the steps of a run: each tool call is one step with its result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.transfer.formats.kinds import Transcript, whole_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.messages import ToolCall
    from mast_trace_judge.store.labels import HumanLabel


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


class _Steps:
    """Collects steps; a call waits for its result in its place."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._waiting: dict[int, tuple[ToolCall, bool]] = {}
        self._caller = ""

    def add(self, entry: Entry) -> int | None:
        """Add an entry and return the step that it begins, or whose result it brings, if any."""
        place = None
        if entry.text or entry.handoff_to or not (entry.calls or entry.results):
            place = self._append(_said(entry))
        for call in entry.calls:
            self._caller = entry.agent
            called = Step(
                index=0,
                kind=StepKind.TOOL,
                agent=entry.agent,
                text="",
                tool=call.name,
                arguments=whole_text(call.arguments) if call.arguments is not None else "",
                call_id=call.id or "",
                start=entry.time,
            )
            number = self._append(called)
            self._waiting[number] = (call, bool(entry.text))
            place = number if place is None else place
        for result in entry.results:
            number = self._answer(result, entry)
            place = number if place is None else place
        return place

    def finished(self) -> tuple[list[Step], dict[int, int]]:
        """Return the numbered steps, and the number of each by its place as `add` returned it.

        A call without an answer was requested, but it is unknown whether it was made: its text
        notes that, or a model's action does.
        """
        kept: list[Step] = []
        numbers: dict[int, int] = {}
        for place, step in enumerate(self.steps):
            unanswered = self._waiting.get(place)
            if unanswered is not None:
                call, listed = unanswered
                if listed:  # the message before it lists its calls
                    numbers[place] = len(kept) - 1
                    continue
                asked = whole_text([{"name": call.name, "arguments": call.arguments}])
                step = dataclasses.replace(  # noqa: PLW2901  # the step as it is kept
                    step, kind=StepKind.MODEL, tool="", call_id="", arguments=asked
                )
            numbers[place] = len(kept)
            kept.append(dataclasses.replace(step, index=len(kept)))
        return kept, numbers

    def _append(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _answer(self, result: Result, entry: Entry) -> int:
        number = self._place_of(result)
        if number is None:
            orphan = Step(
                index=0,
                kind=StepKind.TOOL,
                agent=self._caller or entry.agent,
                text=result.text,
                tool=result.tool,
                call_id=result.call_id,
                error=result.error,
                start=entry.time,
            )
            return self._append(orphan)
        del self._waiting[number]
        self.steps[number] = dataclasses.replace(
            self.steps[number], text=result.text, error=result.error, end=entry.time
        )
        return number

    def _place_of(self, result: Result) -> int | None:
        """Return the call that an answer belongs to: by id, else by the tool's name, else the oldest."""
        if result.call_id:
            ids = (n for n, (call, _) in self._waiting.items() if call.id == result.call_id)
            return next(ids, None)
        unnamed = {n: call for n, (call, _) in self._waiting.items() if not call.id}
        named = (n for n, call in unnamed.items() if not result.tool or call.name == result.tool)
        return next(named, None)


def _said(entry: Entry) -> Step:
    calls = [{"name": call.name, "arguments": call.arguments} for call in entry.calls]
    return Step(
        index=0,
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


def steps_of(entries: Iterable[Entry]) -> tuple[tuple[Step, ...], list[int | None]]:
    """Return the steps of a conversation, and for each message its step.

    A message that holds nothing but tool calls becomes their steps; a tool's answer stands on the
    step of its call. System prompts that come before everything else are no steps, as in spans.
    """
    made = _Steps()
    places: list[int | None] = []
    opened = False
    for entry in entries:
        opened = opened or entry.role != "system"
        places.append(made.add(entry) if opened else None)
    steps, numbers = made.finished()
    return tuple(steps), [None if place is None else numbers[place] for place in places]


def transcript_of(
    entries: Sequence[Entry],
    name: str,
    *,
    framework: str = "",
    outcome: str = "",
    task: str = "",
    termination_reason: str = "",
    labels: tuple[HumanLabel, ...] = (),
) -> Transcript:
    """Return a conversation as a run; its task is the user's first message, where none is given.

    Raises:
        ValueError: it holds no messages.
    """
    steps, _ = steps_of(entries)
    if not steps:
        raise ValueError("it holds no messages")
    asked = (entry.text for entry in entries if entry.role == "user" and entry.text)
    trajectory = Trajectory(
        trace_id="",
        steps=steps,
        framework=framework,
        task=task or next(asked, ""),
        outcome=outcome,
        termination_reason=termination_reason,
    )
    return Transcript(trajectory, name, labels)
