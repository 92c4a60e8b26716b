"""Compares a replayed run with the recorded one, step by step."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from mast_trace.replay.canonical import canonical_arguments, canonical_text, mask_of, masked_text
from mast_trace.trajectory import Step, StepKind, Trajectory


@dataclass(frozen=True)
class StepDifference:
    """The first step in which two runs differ.

    Attributes:
        index: the step's number, from 0.
        text: description of the difference.
    """

    index: int
    text: str


def masked_run(run: Trajectory, masks: Sequence[tuple[str, str]]) -> Trajectory:
    """Return a run with masks in the texts of its messages."""
    made = [mask_of(*each) for each in masks]
    steps = [
        replace(step, text=masked_text(canonical_text(step.text), made))
        if step.kind is StepKind.MESSAGE
        else step
        for step in run.steps
    ]
    return replace(run, steps=tuple(steps)) if masks else run


def first_difference(recorded: Trajectory, replayed: Trajectory) -> StepDifference | None:
    """Return the first step that differs in kind, agent, text, tool, arguments or recipients.

    Ids of messages and spans are generated anew by each execution, so they are not compared. Texts
    and arguments are compared in their canonical form, which hides generated ids and times. Steps of
    parallel branches, or of threads, may come in another order.
    """
    expected = _expected(recorded.steps, replayed.steps)
    pairs = zip_longest(expected, _in_order_of(expected, replayed.steps))
    for place, (one, other) in enumerate(pairs):
        index = place if one is None else one.index
        if one is None:
            return StepDifference(index, f"additional step: {_told(other)}")
        if other is None:
            return StepDifference(index, f"missing step: {_told(one)}")
        before, after = _compared(one), _compared(other)
        for name, value in before.items():
            if value != after[name]:
                text = f"{name} was {_short(value)}, is {_short(after[name])} ({_told(one)})"
                return StepDifference(index, text)
    return None


def _expected(recorded: Sequence[Step], replayed: Sequence[Step]) -> list[Step]:
    """Return the recorded steps without the messages inside of tools that were answered.

    A tool that asks a person sends messages while its code runs. In a replay its code does not run, and it
    has no message.
    """
    now = iter(_messages_in_tools(replayed))
    gone: set[int] = set()
    for messages in _messages_in_tools(recorded):
        if not next(now, []):
            gone.update(messages)
    return [step for step in recorded if id(step) not in gone]


def _messages_in_tools(steps: Sequence[Step]) -> list[list[int]]:
    """Return the messages inside of each tool call, in the order of the calls."""
    inside: dict[str, list[int]] = defaultdict(list)
    for step in steps:
        if step.kind is StepKind.MESSAGE:
            inside[step.parent_span_id].append(id(step))
    return [
        inside.get(step.span_id, []) if not step.handoff_to else []
        for step in steps
        if step.kind is StepKind.TOOL
    ]


def _in_order_of(recorded: Sequence[Step], replayed: Sequence[Step]) -> list[Step]:
    """Return the replayed steps, those of each block of parallel steps in the recorded order."""
    ordered = list(replayed)
    start = 0
    several = _parents_of_parallel_steps(recorded)
    for is_parallel, group in groupby(
        recorded, key=lambda step: bool(step.branch) or step.parent_span_id in several
    ):
        block = list(group)
        end = start + len(block)
        if is_parallel:
            ordered[start:end] = _matched(block, ordered[start:end])
        start = end
    return ordered


def _parents_of_parallel_steps(steps: Sequence[Step]) -> set[str]:
    """Return the spans of which two steps ran at the same time: threads of a pool have no span of their own.

    The steps of such a span may come in any order, for a replay answers at once.
    """
    ends: dict[str, int] = {}
    found = set()
    for step in sorted(steps, key=lambda each: each.start):
        if step.start < ends.get(step.parent_span_id, step.start):
            found.add(step.parent_span_id)
        ends[step.parent_span_id] = max(ends.get(step.parent_span_id, 0), step.end)
    return found


def _matched(block: Sequence[Step], replayed: Sequence[Step]) -> list[Step]:
    """Return replayed steps at the places of recorded ones that are equal; the others fill the rest."""
    equal: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for place, step in enumerate(replayed):
        equal[tuple(_compared(step).values())].append(place)
    places = [
        waiting.popleft() if (waiting := equal[tuple(_compared(step).values())]) else None
        for step in block
    ]
    taken = set(places)
    others = (place for place in range(len(replayed)) if place not in taken)
    filled = [next(others, None) if place is None else place for place in places]
    return [replayed[place] for place in filled if place is not None]


def _compared(step: Step) -> dict[str, str]:
    return {
        "kind": step.kind.value,
        "agent": step.agent,
        "tool": step.tool,
        "arguments": canonical_arguments(step.arguments or None),
        "text": canonical_text(step.text),
        "recipients": ", ".join(step.recipients),
        "hand-off": step.handoff_to,
    }


def _told(step: Step) -> str:
    what = f"calls {step.tool}" if step.tool else f"says {_short(step.text)}"
    return f"{step.agent or 'an unknown agent'} {what}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
