"""Mode 2.4, information withholding."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.rules._evidence import (
    USERS,
    finding,
    first_line,
    is_said,
    is_tool,
    ordinary,
)
from mast_trace_judge.local.rules._inputs import readers_of
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import number, numbers, values
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.rules._inputs import Inbox
    from mast_trace_judge.verdict import ModeFinding

_FACTS = 25
"""A result with more figures is a listing of which nobody repeats all."""


@rule("2.4")
def withheld_findings(trajectory: Trajectory) -> list[ModeFinding]:
    """What an agent's tools found is in nothing that it says, and nobody else was shown it.

    Definition: MAST 2.4, "failure to share or communicate important data". Looks at the figures of
    two digits or more that only the tool results of one turn hold; counted when the agent then
    speaks to others and none of the figures occurs in any later text or argument. Exact where the
    recorded inputs of the others' models show that they never saw the results.
    """
    if trajectory.outcome == "success":
        return []
    readers = readers_of(trajectory)
    steps = ordinary(trajectory)
    last_said: dict[float, int] | None = None
    shown_to: Mapping[str, set[str]] | None = None
    known = values([trajectory.task])
    results: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        if is_tool(step) and step.error is None:
            results[step.agent].append(step)
            continue
        if not is_said(step) or not _to_agents(step):
            continue
        found = results.pop(step.agent, [])
        facts = values(s.text for s in found) - known
        facts = {fact for fact in facts if abs(fact) >= 10}
        known |= facts
        if not 0 < len(facts) <= _FACTS:
            continue
        if last_said is None:
            last_said = _last_occurrence(steps)
        if any(last_said.get(fact, -1) >= step.index for fact in facts):
            continue
        shown_to = shown_to or _shown_to(readers.values())
        others = [inbox for name, inbox in readers.items() if name != step.agent]
        if any(shown_to.get(result.message_id, set()) - {step.agent} for result in found):
            continue
        if any(inbox.quotes(result) for inbox in others for result in found):
            continue
        exact = bool(others) and all(s.message_id for s in found)
        return [
            finding(
                "2.4",
                0.6 if exact else 0.4,
                Evidence.EXACT if exact else Evidence.HEURISTIC,
                f"{step.agent} passes on nothing of what {found[0].tool} returned.",
                [*found, step],
                [first_line(found[0]), first_line(step)],
            )
        ]
    return []


def _shown_to(readers: Iterable[Inbox]) -> Mapping[str, set[str]]:
    """Return who was shown each message as it is: up to two names, for one may be its writer's."""
    shown: dict[str, set[str]] = defaultdict(set)
    for inbox in readers:
        for identity in inbox.ids:
            if identity and len(shown[identity]) < 2:
                shown[identity].add(inbox.name)
    return shown


def _to_agents(step: Step) -> bool:
    """Whether a message is for another agent, as far as is known."""
    return not step.recipients or any(name.lower() not in USERS for name in step.recipients)


def _last_occurrence(steps: list[Step]) -> dict[float, int]:
    """Return the last step that says each number or passes it to a tool."""
    last: dict[float, int] = {}
    for step in steps:
        texts = [step.arguments] if is_tool(step) else [step.text, step.arguments]
        for text in texts:
            for match in numbers(text):
                last[number(match[0])] = step.index
    return last
