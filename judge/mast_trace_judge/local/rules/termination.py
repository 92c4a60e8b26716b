"""Mode 1.5, unaware of termination conditions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace.semconv import Termination
from mast_trace_judge.local.acts import (
    Conversations,
    by_user,
    finding,
    first_line,
    is_said,
)
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.stated import COUNT_WORDS
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_SIGNAL = re.compile(r"(?:^|\n|[.!?)\]}*`\d])[\s*_`(]*TERMINATE[\s*_`.!)]*$")
"""The word on its own behind a sentence; "reply TERMINATE" tells somebody else to give the signal."""
_DONE = Phrases(
    r"\b(?:task|request|conversation|problem|everything) (?:is|has been|was) (?:now )?"
    r"(?:complete[d]?|solved|satisfied|finished|done|over|concluded)\b",
    *("task ", "request ", "conversation ", "problem ", "everything "),
)
_PLAIN = 0.6
_UNSAID = 0.4
"""Probability for a limit of turns in a run without a recorded failure."""
_ROUNDS = re.compile(
    rf"\b(?:\d+|{'|'.join(COUNT_WORDS)})[ -](?:rounds?|turns?|exchanges|messages|iterations|runden|beitr[\u00e4a]ge|rondas|turnos)\b",
    re.IGNORECASE,
)
"""A number of turns that a task sets."""
_LIMITS = {
    Termination.MAX_TURNS: ("the limit of turns", _PLAIN),
    Termination.RECURSION_LIMIT: ("the recursion limit", 0.95),
    Termination.BUDGET: ("the budget", 0.7),
}


@rule("1.5", Reach.END, of_failures=True)
def ended_by_limit(trajectory: Trajectory) -> list[ModeFinding]:
    """A limit of turns, steps or budget ended the run, not the agents (exact).

    Definition: MAST 1.5, "lack of recognition or understanding of the criteria that should trigger
    the termination of the agents' interaction". A limit of turns is also an ordinary way to bound
    a chat: it speaks for the mode less than a recursion limit does, and not at all after a success, or where the task sets
    a number of rounds or turns.
    """
    limit = _LIMITS.get(trajectory.termination_reason)
    if limit is None or trajectory.outcome == "success":
        return []
    if limit[1] == _PLAIN and _ROUNDS.search(trajectory.task[:4000]):
        return []
    last = trajectory.steps[-1:]
    return [
        finding(
            "1.5",
            limit[1] if trajectory.outcome or limit[1] > _PLAIN else _UNSAID,
            Evidence.EXACT,
            f"The run was stopped by {limit[0]}, not by its agents.",
            last,
            [first_line(step) for step in last],
        )
    ]


@rule("1.5")
def went_on_after_signal(trajectory: Trajectory) -> list[ModeFinding]:
    """The same conversation goes on after an agent gave the signal to end it.

    Definition: MAST 1.5. Exact where the recorded recipients and parents show that those who got
    the signal answered it in the same conversation; heuristic, and no more than possible, in transcripts,
    which do not say where a nested conversation ends.
    """
    around = Conversations(trajectory)
    conversation = [around.of(step.parent_span_id) for step in trajectory.steps]
    for position, signal in enumerate(trajectory.steps):
        if not is_said(signal) or not _SIGNAL.search(signal.text[-60:]):
            continue
        later = [
            step
            for step in trajectory.steps[position + 1 :]
            if not step.synthetic
            and not by_user(step)
            and conversation[step.index] == conversation[signal.index]
        ]
        if not later:
            return []
        answers = [step for step in later if _answers(step, signal)]
        exact = bool(answers) and bool(signal.span_id)
        return [
            finding(
                "1.5",
                0.9 if exact else 0.45,
                Evidence.EXACT if exact else Evidence.HEURISTIC,
                f"{signal.agent} gave the signal to end, and {len(later)} more step{'s' * (len(later) > 1)} followed"
                f"{' in the same conversation' if exact else ''}.",
                [signal, *(answers or later)[:5]],
                [quote(signal.text, max(0, len(signal.text.rstrip()) - 60), len(signal.text))],
            )
        ]
    return []


@rule("1.5", of_failures=True)
def went_on_after_done(trajectory: Trajectory) -> list[ModeFinding]:
    """Agents declare the task done at least twice and carry on (heuristic).

    Definition: MAST 1.5. One "the task is complete" may be meant of a part; several agents or turns
    that say so, with more than a quarter of the run still to come, do not know when to stop.
    """
    said = [
        (step, match)
        for step in trajectory.steps
        if not by_user(step) and not step.tool and (match := _DONE.search(step.text[-600:]))
    ]
    early = [pair for pair in said if pair[0].index < 0.75 * len(trajectory.steps)]
    if len(early) < 2 or len(trajectory.steps) - early[0][0].index < 6:
        return []
    return [
        finding(
            "1.5",
            0.45,
            Evidence.HEURISTIC,
            f"The task was declared done {len(said)} times, first long before the end.",
            [step for step, _ in said[:5]],
            [match[0] for _, match in said[:2]],
        )
    ]


def _answers(step: Step, signal: Step) -> bool:
    """Return whether a step goes on in the exchange that the signal was to end."""
    if step.agent == signal.agent:
        return bool(set(step.recipients) & set(signal.recipients))
    return step.agent in signal.recipients and signal.agent in step.recipients
