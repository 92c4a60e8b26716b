"""Mode 2.1, conversation reset."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._evidence import finding, first_line, is_said, shown_together
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import alike, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_EARLY = 0.25
"""Share of the run in which starting over loses nothing."""
_GROWTH = 1.5
"""Factor by which an input must exceed the agent's first one to count as grown."""
RESTART = Phrases(
    r"\b(?:(?:let'?s|let me|let us|we(?: will|'ll)?|i(?: will|'ll)?|to) (?:now )?"
    r"(?:start|begin) (?:all )?(?:over|again|afresh|anew|from scratch|from the beginning)"
    r"|(?:start|begin)(?:ing)? (?:over )?from (?:scratch|the (?:very )?beginning)"
    r"|restart(?:ing)? (?:the|our) (?:process|task|conversation|analysis|work)"
    r"|initialized \w*agent\w* instance)\b",
    *("start", "begin", "initialized "),
)
"""Words of whoever begins anew."""


@rule("2.1", Reach.BACK)
def lost_input(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent's input falls back to what it was at first, in the middle of the run.

    Definition: MAST 2.1, "unexpected or unwarranted restarting of a dialogue, potentially losing
    context and progress". Exact where the ids of the shown messages are recorded and are those of
    the agent's first turn in the conversation again, after a longer input in between: a new task
    would show a new message. Heuristic where only lengths are known.
    """
    found: dict[str, ModeFinding] = {}
    acts: dict[str, list[Step]] = defaultdict(list)
    for step in trajectory.steps:
        acts[step.agent].append(step)
    for shown in shown_together(trajectory):
        made = [call for call in shown if call.input_ids or call.input_length]
        if not made:
            continue
        agent, reset = made[0].agent, _reset(made)
        if reset is not None and agent not in found:
            found[agent] = _fell_back(trajectory, acts, agent, *reset)
    return list(found.values())


def _reset(calls: list[Invocation]) -> tuple[Invocation, Invocation, bool] | None:
    """Return the longest call so far, the one that fell back, and whether ids prove it."""
    first = peak = calls[0]
    for call in calls[1:]:
        if call.input_ids and first.input_ids:
            size = len(first.input_ids)
            grown = len(peak.input_ids) >= max(_GROWTH * size, size + 2)
            if grown and call.input_ids == first.input_ids:
                return peak, call, True
        elif not call.input_ids and call.input_length and first.input_length:
            grown = (peak.input_length or 0) >= 2 * _GROWTH * first.input_length
            if grown and abs(call.input_length - first.input_length) <= 0.05 * first.input_length:
                return peak, call, False
        if (len(call.input_ids), call.input_length or 0) > (
            len(peak.input_ids),
            peak.input_length or 0,
        ):
            peak = call
    return None


def _fell_back(
    trajectory: Trajectory,
    acts: Mapping[str, Sequence[Step]],
    agent: str,
    peak: Invocation,
    call: Invocation,
    exact: bool,
) -> ModeFinding:
    own = acts.get(agent, ())
    later = bisect_left(own, call.start, key=lambda step: step.start)
    after = own[later : later + 1] or trajectory.steps[-1:]
    shown = f"{len(call.input_ids)} instead of {len(peak.input_ids)} messages"
    return finding(
        "2.1",
        0.9 if exact else 0.5,
        Evidence.EXACT if exact else Evidence.HEURISTIC,
        f"{agent} was shown only what it saw at first ({shown})."
        if exact
        else f"The input of {agent} fell back to its first length.",
        after,
        [first_line(step) for step in after],
    )


@rule("2.1")
def restarted(trajectory: Trajectory) -> list[ModeFinding]:
    """After the first quarter, an agent speaks of starting over or returns to its first message.

    Definition: MAST 2.1 (heuristic). Its accuracy is in `benchmarks/judge/rules.md`.
    """
    first: dict[str, Step] = {}
    restarts: list[tuple[Step, str]] = []
    begin = _EARLY * len(trajectory.steps)
    for step in trajectory.steps:
        if not is_said(step):
            continue
        opening = first.setdefault(step.agent, step)
        if step.index < begin or opening is step:
            continue
        phrase = RESTART.search(step.text[:2000])
        if phrase:
            restarts.append((step, quote(step.text, *phrase.span())))
        elif step.index - opening.index > 4 and _returns(step, opening):
            restarts.append((step, first_line(step)))
    if not restarts:
        return []
    return [
        finding(
            "2.1",
            min(0.85, 0.6 + 0.1 * (len(restarts) - 1)),
            Evidence.HEURISTIC,
            f"{restarts[0][0].agent} starts over in the middle of the run.",
            [step for step, _ in restarts],
            [text for _, text in restarts[:3]],
        )
    ]


def _returns(step: Step, opening: Step) -> bool:
    """Return whether an agent is back at its first message, of a length that is no formula."""
    return len(step.text) >= 120 and alike(step.text, opening.text, 0.92)
