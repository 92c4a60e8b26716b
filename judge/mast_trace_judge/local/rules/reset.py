"""Mode 2.1, conversation reset."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.acts import (
    by_user,
    doubted,
    finding,
    first_line,
    is_said,
    shown_together,
)
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import alike, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_EARLY = 0.25
"""Share of the run in which words about starting over are of no work that is lost."""
_SAME = 0.92
_SAID_ONLY = 0.45
"""Probability for words alone, which may be meant of a part of the work."""
_GROWTH = 1.5
"""Factor by which an input must exceed the agent's first one to count as grown."""
RESTART = Phrases(
    r"\b(?:(?:let'?s|let me|let us|we(?: will|'ll)?|i(?: will|'ll)?|to) (?:now )?"
    r"(?:start|begin) (?:all )?(?:over|again|afresh|anew|from scratch|from the beginning)"
    r"|(?:start|begin)(?:ing)? (?:over )?from (?:scratch|the (?:very )?beginning)"
    r"|restart(?:ing)? (?:the|our) (?:process|task|conversation|analysis|work))\b",
    *("start", "begin"),
)
"""Words of whoever begins anew."""
_ASKED = Phrases(
    r"(?<!not )(?<!n't )(?<!never )(?<!without )\b(?:(?:start|begin)(?:ing)? (?:all )?"
    r"(?:over|again|afresh|anew|from scratch|from the (?:very )?beginning)"
    r"|restart (?:the|our|your|this) (?:process|task|conversation|analysis|work|game))\b",
    *("start", "begin"),
)
"""Words of whoever asks others to begin anew."""


@rule("2.1", Reach.BACK)
def lost_input(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent's input falls back to what it was at first, in the middle of the run.

    Definition: MAST 2.1, "unexpected or unwarranted restarting of a dialogue, potentially losing
    context and progress". Exact where the ids of the shown messages are recorded and are those of
    the agent's first turn in the conversation again, after a longer input in between, and what another one
    has said to it since is not among them: a new task would show a new message. Heuristic where nobody has, for a
    program may ask an agent anew on purpose, and where only lengths are known.
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
    """Return the longest call so far, the one that fell back, and whether their ids are known."""
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


def is_unheard(trajectory: Trajectory, peak: Invocation, call: Invocation) -> bool:
    """Return whether another one has said something to an agent since a call, or to all, that a later call was not shown."""
    texts = trajectory.texts
    shown = {texts[each].content for each in call.input_ids if each in texts}
    return any(
        (is_said(step) or by_user(step))
        and step.agent != call.agent
        and (not step.recipients or call.agent in step.recipients)
        and step.message_id not in call.input_ids
        and step.text not in shown
        for step in trajectory.steps
        if peak.start <= step.start <= call.start
    )


def _fell_back(
    trajectory: Trajectory,
    acts: Mapping[str, Sequence[Step]],
    agent: str,
    peak: Invocation,
    call: Invocation,
    known: bool,
) -> ModeFinding:
    exact = known and is_unheard(trajectory, peak, call)
    own = acts.get(agent, ())
    later = bisect_left(own, call.start, key=lambda step: step.start)
    after = own[later : later + 1]  # nobody else is to blame where it did nothing more
    shown = f"{len(call.input_ids)} instead of {len(peak.input_ids)} messages"
    return finding(
        "2.1",
        0.9 if exact else 0.6 if known else 0.5,
        Evidence.EXACT if exact else Evidence.HEURISTIC,
        f"The input of {agent} was cut to what it saw at first ({shown})."
        if known
        else f"The input of {agent} fell back to its first length.",
        after,
        [first_line(step) for step in after],
    )


@rule("2.1")
def restarted(trajectory: Trajectory) -> list[ModeFinding]:
    """The run's first two messages come again, in their order (heuristic).

    Definition: MAST 2.1. One message that comes again is no restart, and neither is one in a form that
    an agent's messages have anyway: the two must differ, and something else must lie in between. Words
    about starting over, after the first quarter, make the mode possible. Where the task or somebody else asked
    for it before, it is neither. Its accuracy is in `benchmarks/judge/rules.md`.
    """
    said = [step for step in trajectory.steps if is_said(step)]
    begin = _EARLY * len(trajectory.steps)
    again: list[tuple[Step, str]] = []
    phrases: list[tuple[Step, str]] = []
    beginnings = begins_again(said)
    askers = _askers(trajectory)
    for step in said:
        if any(at < step.index and agent != step.agent for agent, at in askers.items()):
            continue
        phrase = RESTART.search(step.text[:2000]) if step.index >= begin else None
        if step.index in beginnings:
            again.append((step, first_line(step)))
        elif phrase and not doubted(step.text, *phrase.span()):
            phrases.append((step, quote(step.text, *phrase.span())))
    found = again or phrases
    if not found:
        return []
    return [
        finding(
            "2.1",
            min(0.85, 0.6 + 0.1 * (len(again) - 1)) if again else _SAID_ONLY,
            Evidence.HEURISTIC,
            "The run's first two messages come again later in it."
            if again
            else f"{found[0][0].agent} speaks of starting over in the middle of the run.",
            [step for step, _ in found],
            [text for _, text in found[:3]],
        )
    ]


def _askers(trajectory: Trajectory) -> dict[str, int]:
    """Return the first step in which each one asks for a new beginning; that of a task is before all steps."""
    found: dict[str, int] = {}
    for step in trajectory.steps:
        if step.kind is not StepKind.TOOL and _ASKED.search(step.text[:2000]):
            found.setdefault(step.agent, step.index)
    return {**found, "user": -1} if _ASKED.search(trajectory.task[:2000]) else found


def begins_again(said: Sequence[Step]) -> frozenset[int]:
    """Return the steps at which a run's first two messages come again, after another one."""
    if len(said) < 2 or alike(said[0].text, said[1].text, _SAME):
        return frozenset()
    between = False
    found = []
    for step, following in pairwise(said[2:]):
        if between and _same(said[0], step) and _same(said[1], following):
            found.append(step.index)
        between = between or not any(alike(one.text, step.text, _SAME) for one in said[:2])
    return frozenset(found)


def _same(one: Step, other: Step) -> bool:
    return one.agent == other.agent and alike(one.text, other.text, _SAME)
