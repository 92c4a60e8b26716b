"""Mode 1.4, loss of conversation history."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.rules._evidence import (
    call_key,
    finding,
    first_line,
    folded,
    is_said,
    is_tool,
    shown_together,
)
from mast_trace_judge.texts import quote, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_ASKS = re.compile(
    r"[^.?!\n]*\b(?:what|which|where|when|who|could you|can you|please|remind)\b[^.?!\n]*\?"
    r"|[^.?!\n]*\b(?:please (?:provide|share|tell)|i (?:do not|don't) (?:have|know|see))\b[^.?!\n]*",
    re.IGNORECASE,
)
_SHARED = 4
"""Words that a question must share with a lost message to be a question for it."""


def asked_again(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent had a result in its context, lost it, and makes the same call again (exact).

    Definition: MAST 1.4, "unexpected context truncation, disregarding recent interaction history
    and reverting to an antecedent conversational state". The ids of the messages that each turn
    was shown prove that the result was there and is gone; that it is back after the second call
    changes nothing, and a result that is quoted in another message is not gone.
    """
    losses: Mapping[tuple[str, str], list[_Loss]] | None = None
    made: dict[tuple[str, str, str], Step] = {}
    for step in trajectory.steps:
        if not is_tool(step) or not step.arguments:
            continue
        earlier = made.get(call_key(step))
        made[call_key(step)] = step
        if earlier is None or not earlier.message_id:
            continue
        if losses is None:
            losses = _losses(trajectory)
        gone = losses.get((step.agent, earlier.message_id), ())
        last = _last_without(gone, trajectory, earlier.message_id, step.start)
        if last is not None and not _quotes(trajectory, last, earlier.text):
            return [
                finding(
                    "1.4",
                    0.85,
                    Evidence.EXACT,
                    f"The result of {step.tool} dropped out of what {step.agent} was shown, and "
                    f"{step.agent} asked for it again.",
                    [earlier, step],
                    [first_line(earlier)],
                )
            ]
    return []


def asks_for_what_it_had(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent asks for something that a message said which it was shown and lost (heuristic).

    Definition: MAST 1.4. That the message is gone is recorded; that the question is about it is
    read off the words that the two share.
    """
    lost: dict[str, list[tuple[int, set[str], str]]] = defaultdict(list)
    for (agent, identity), gone in _lost(trajectory).items():
        if identity in trajectory.texts:
            text = trajectory.texts[identity].content
            lost[agent].append((gone, words(text[:4000]), quote(text)))
    for step in trajectory.steps:
        if not is_said(step) or step.agent not in lost:
            continue
        for question in _ASKS.finditer(step.text[-1500:]):
            asked = words(question[0])
            for gone, known, said in lost[step.agent][:50]:
                if gone <= step.end and len(asked & known) >= _SHARED:
                    return [
                        finding(
                            "1.4",
                            0.5,
                            Evidence.HEURISTIC,
                            f"{step.agent} asks for what it had been shown before: {said!r}.",
                            [step],
                            [question[0].strip()[:160]],
                        )
                    ]
    return []


def _lost(trajectory: Trajectory) -> Mapping[tuple[str, str], int]:
    """Return when an agent was last shown less: by agent and message id, the time of the turn.

    What came back in a later turn, or a later call of its model, is not lost.
    """
    latest: dict[tuple[str, str, str], int] = {}
    for call in trajectory.invocations:
        for identity in call.input_ids:
            latest[call.kind, call.agent, identity] = call.start
    lost: dict[tuple[str, str], int] = {}
    for turns in _sequences(trajectory):
        had: set[str] = set()
        for turn in turns:
            shown = set(turn.input_ids)
            if not shown:
                continue
            for identity in had - shown:
                if latest[turn.kind, turn.agent, identity] < turn.start:
                    lost.setdefault((turn.agent, identity), turn.start)
            had |= shown
    return lost


@dataclass
class _Loss:
    """A message that dropped out of what an agent was shown.

    Attributes:
        gone: the first turn, or call of its model, without it.
        back: when the same conversation showed it again, in nanoseconds; None if it never did.
    """

    gone: Invocation
    back: int | None = None


def _losses(trajectory: Trajectory) -> Mapping[tuple[str, str], list[_Loss]]:
    """Return each loss, by agent and message id."""
    losses: dict[tuple[str, str], list[_Loss]] = defaultdict(list)
    for turns in _sequences(trajectory):
        shown: set[str] = set()
        lost: dict[str, _Loss] = {}
        for turn in turns:
            if not turn.input_ids:
                continue
            now = set(turn.input_ids)
            for identity in now & lost.keys():
                lost.pop(identity).back = turn.start
            for identity in shown - now:
                lost[identity] = _Loss(turn)
                losses[turn.agent, identity].append(lost[identity])
            shown = now
    return losses


def _last_without(
    losses: Iterable[_Loss], trajectory: Trajectory, identity: str, time: int
) -> Invocation | None:
    """Return what an agent was shown last until ``time``, if a message had gone by then."""
    for loss in losses:
        gone = loss.gone
        if gone.start > time or (loss.back is not None and loss.back <= time):
            continue
        later = [
            call
            for call in trajectory.invocations
            if (call.kind, call.agent) == (gone.kind, gone.agent)
            and call.input_ids
            and gone.start <= call.start <= time
        ]
        if not any(identity in call.input_ids for call in later):
            return later[-1]
    return None


def _quotes(trajectory: Trajectory, call: Invocation, text: str) -> bool:
    """Whether a text is part of what an agent was shown, in whichever message."""
    wanted = " ".join(text.lower().split())
    return bool(wanted) and wanted in folded(trajectory, call.input_ids)


def _sequences(trajectory: Trajectory) -> list[list[Invocation]]:
    """Return the sequences of an agent's turns and calls in which nothing shown should get lost."""
    return [*shown_together(trajectory), *_continued(trajectory)]


def _continued(trajectory: Trajectory) -> list[list[Invocation]]:
    """Return the model calls of each turn, followed by the first call of a turn that continues it.

    That is the agent's next turn, if it is shown what this one ended with: then what tools returned
    in between should be shown as well.
    """
    turns = {call.span_id: call for call in trajectory.invocations if call.kind == "agent"}
    calls: dict[str, list[Invocation]] = defaultdict(list)
    for call in trajectory.invocations:
        if call.kind != "agent" and call.parent_span_id in turns and call.input_ids:
            calls[call.parent_span_id].append(call)
    previous: dict[str, Invocation] = {}
    found = []
    for span_id, made in calls.items():
        turn = turns[span_id]
        before = previous.get(turn.agent)
        previous[turn.agent] = turn
        ended_with = before.output_id if before else ""
        if before is not None and ended_with and ended_with in made[0].input_ids:
            found.append([*calls[before.span_id], made[0]])
    return found
