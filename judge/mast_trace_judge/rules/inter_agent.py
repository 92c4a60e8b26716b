"""Modes 2.4, information withholding, and 2.5, ignored other agent's input."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.phrases import Phrases
from mast_trace_judge.rules._evidence import (
    USERS,
    finding,
    first_line,
    is_said,
    is_tool,
    ordinary,
)
from mast_trace_judge.texts import alike, number, numbers, quote, values
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    import re

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

UNCHANGED = 0.88
"""Character 4-gram similarity from which a reply counts as the one before it."""
_CORRECTS = Phrases(
    r"\b(?:incorrect|not correct|wrong|mistake|that(?:'s| is) not|should (?:be|have been|use)"
    r"|please (?:fix|correct|revise|change|redo)|needs? to be (?:fixed|corrected|changed)"
    r"|does(?: not|n't) (?:match|work|add up|meet)|error in)\b",
    *("correct", "wrong", "mistake", "that's not", "that is not", "should ", "please "),
    *("fixed", "changed", "does", "error in"),
)
_FACTS = 25
"""A result with more figures is a listing of which nobody repeats all."""


def withheld_findings(trajectory: Trajectory) -> list[ModeFinding]:
    """What an agent's tools found is in nothing that it says, and nobody else was shown it.

    Definition: MAST 2.4, "failure to share or communicate important data". Looks at the figures of
    two digits or more that only the tool results of one turn hold; counted when the agent then
    speaks to others and none of the figures occurs in any later text or argument. Exact where the
    recorded inputs of the others show that they never saw the results.
    """
    if trajectory.outcome == "success":
        return []
    shown = _shown(trajectory)
    steps = ordinary(trajectory)
    last_said: dict[float, int] | None = None
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
        others = {name: ids for name, ids in shown.items() if name != step.agent}
        seen = any(s.message_id and s.message_id in ids for s in found for ids in others.values())
        if seen:
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


def never_shown(trajectory: Trajectory) -> list[ModeFinding]:
    """A message went to an agent that acted afterwards and was never shown it (exact).

    Definition: MAST 2.5, "disregarding or failing to adequately consider input provided by other
    agents". Counted only for agents whose recorded inputs hold other messages that were sent to
    them: then the framework shows messages as they were sent, and this one is missing. What an
    agent's models were shown counts where it is recorded: a node may be given more than it uses.
    Where the recipient's next input lacks what it was shown before, too, that is mode 1.4 or 2.1.
    """
    calls: dict[str, list[Invocation]] = defaultdict(list)
    for call in _closest(trajectory):
        calls[call.agent].append(call)
    shown = {name: {i for call in made for i in call.input_ids} for name, made in calls.items()}
    sent = [step for step in trajectory.steps if is_said(step) and step.message_id]
    quoted: dict[str, str] = {}
    arrived = {
        name for step in sent for name in step.recipients if step.message_id in shown.get(name, ())
    }
    for step in sent:
        for name in step.recipients:
            if name not in arrived or name == step.agent or step.message_id in shown[name]:
                continue
            after = next((call for call in calls[name] if call.start > step.end), None)
            if after is None or _fell_back(calls[name], after):
                continue
            if name not in quoted:
                quoted[name] = _folded(trajectory, shown[name])
            if " ".join(step.text[:1000].lower().split()) in quoted[name]:
                continue
            return [
                finding(
                    "2.5",
                    0.85,
                    Evidence.EXACT,
                    f"{step.agent} wrote to {name}, and {name} was never shown it.",
                    [step],
                    [first_line(step)],
                )
            ]
    return []


def unchanged_after_correction(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent is corrected by another one and says the same again (heuristic).

    Definition: MAST 2.5; the two messages agree to 0.88 or more.
    """
    corrected: dict[str, tuple[Step, Step, re.Match[str]]] = {}
    previous: Step | None = None
    for step in trajectory.steps:
        if not is_said(step):
            continue
        if step.agent in corrected:
            own, correction, match = corrected.pop(step.agent)
            if len(step.text) >= 40 and alike(own.text, step.text, UNCHANGED):
                return [
                    finding(
                        "2.5",
                        0.65,
                        Evidence.HEURISTIC,
                        f"{step.agent} repeats itself although {correction.agent} corrected it.",
                        [own, correction, step],
                        [quote(correction.text, *match.span()), first_line(step)],
                    )
                ]
        found = _CORRECTS.search(step.text)
        if found and previous is not None and previous.agent != step.agent:
            corrected[previous.agent] = (previous, step, found)
        previous = step
    return []


def _shown(trajectory: Trajectory) -> dict[str, set[str]]:
    """Return the ids of all messages that each agent was ever shown."""
    shown: dict[str, set[str]] = defaultdict(set)
    for call in trajectory.invocations:
        if call.agent and call.input_ids:
            shown[call.agent].update(call.input_ids)
    return dict(shown)


def _fell_back(calls: list[Invocation], call: Invocation) -> bool:
    """Whether an earlier call was shown all that this one was, and more."""
    shown = set(call.input_ids)
    return any(set(each.input_ids) > shown for each in calls if each.start < call.start)


def _closest(trajectory: Trajectory) -> list[Invocation]:
    """Return each agent's calls of models, or its turns where no call says what it was shown."""
    told = [call for call in trajectory.invocations if call.agent and call.input_ids]
    models = {call.agent for call in told if call.kind != "agent"}
    return [call for call in told if (call.kind != "agent") == (call.agent in models)]


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


def _folded(trajectory: Trajectory, ids: set[str]) -> str:
    """Return all that an agent was shown as one text: frameworks may quote a message in another."""
    return "\n".join(
        " ".join(trajectory.texts[identity].content.lower().split())
        for identity in ids
        if identity in trajectory.texts
    )
