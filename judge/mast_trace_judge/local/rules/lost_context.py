"""Mode 1.4, loss of conversation history."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    call_key,
    finding,
    first_line,
    folded,
    is_said,
    is_tool,
    shown_together,
)
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.rules.reset import is_unheard
from mast_trace_judge.local.texts import quote, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_SENTENCE = re.compile(r"[^.?!\n]+\??")
_ASKS = Phrases(
    r"\b(?:what|which|where|when|who|could you|can you|please|remind)\b",
    *("wh", "could you", "can you", "please", "remind"),
)
_LACKS = Phrases(
    r"\b(?:please (?:provide|share|tell)|i (?:do not|don't) (?:have|know|see))\b",
    *("please ", "i do"),
)
_SHARED = 4
"""Number of words that a question must share with a lost message to be a question for it."""
_SOUGHT = 50
"""Number of lost messages of an agent, the first ones, that its questions are compared with."""


@rule("1.4", Reach.BACK)
def asked_again(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent had a result in its context, lost it, and makes the same call again.

    Definition: MAST 1.4, "unexpected context truncation, disregarding recent interaction history
    and reverting to an antecedent conversational state". The ids of the messages that each turn
    was shown prove that the result was there and is gone; that it is back after the second call
    changes nothing, and a result that is quoted in another message is not gone. Heuristic where the agent is shown
    just what it was shown first, and nobody has said anything to it since: it may be asked anew on purpose.
    """
    losses: Mapping[tuple[str, str], list[Invocation]] | None = None
    calls = _Calls(trajectory)
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
        last = _last_without(gone, calls, earlier.message_id, step.start)
        if last is not None and not _quotes(trajectory, last, earlier.text):
            anew = calls.begins_anew(last, earlier.message_id)
            return [
                finding(
                    "1.4",
                    0.5 if anew else 0.85,
                    Evidence.HEURISTIC if anew else Evidence.EXACT,
                    f"The result of {step.tool} dropped out of what {step.agent} was shown, and "
                    f"{step.agent} made the call again.",
                    [earlier, step],
                    [first_line(earlier)],
                )
            ]
    return []


@rule("1.4")
def asks_for_what_it_had(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent asks for the content of a message that it was shown and lost (heuristic).

    Definition: MAST 1.4. The loss of the message is recorded; the question's relation to it is
    inferred from shared words.
    """
    lost: dict[str, list[tuple[int, set[str], str]]] = defaultdict(list)
    for (agent, identity), gone in _lost(trajectory).items():
        if identity in trajectory.texts and len(lost[agent]) < _SOUGHT:
            text = trajectory.texts[identity].content
            lost[agent].append((gone, words(text[:4000]), quote(text)))
    for step in trajectory.steps:
        if not is_said(step) or not lost.get(step.agent):
            continue
        for question in _questions(step.text[-1500:]):
            asked = words(question)
            for gone, known, said in lost[step.agent]:
                if gone <= step.end and len(asked & known) >= _SHARED:
                    return [
                        finding(
                            "1.4",
                            0.5,
                            Evidence.HEURISTIC,
                            f"{step.agent} asks in words of a message that it was shown and lost: {said!r}.",
                            [step],
                            [question.strip()[:160]],
                        )
                    ]
    return []


def _questions(text: str) -> Iterator[str]:
    """Yield the sentences that ask for something, or say that it is not there."""
    for match in _SENTENCE.finditer(text):
        sentence = match[0]
        if sentence.endswith("?") and _ASKS.search(sentence):
            yield sentence
        elif _LACKS.search(sentence):
            yield sentence.removesuffix("?")


def _lost(trajectory: Trajectory) -> Mapping[tuple[str, str], int]:
    """Return the time at which an agent last lacked a message, by agent and message id.

    A message that came back in a later turn, or a later call of its model, is not lost.
    """
    latest: dict[tuple[str, str, str], int] = {}
    for call in trajectory.invocations:
        for identity in call.input_ids:
            latest[call.kind, call.agent, identity] = call.start
    lost: dict[tuple[str, str], int] = {}
    for turns in _sequences(trajectory):
        had: set[str] = set()
        # Inputs of each reader, by the time at which it last had them.
        until: dict[tuple[str, str], list[tuple[int, str]]] = {
            (turn.kind, turn.agent): [] for turn in turns
        }
        for turn in (turn for turn in turns if turn.input_ids):
            passing = until[turn.kind, turn.agent]
            while passing and passing[0][0] < turn.start:
                lost.setdefault((turn.agent, heappop(passing)[1]), turn.start)
            new = [identity for identity in dict.fromkeys(turn.input_ids) if identity not in had]
            had.update(new)
            # Turns may hold calls of other agents, which were never shown it.
            for (kind, agent), each in until.items():
                for identity in new:
                    if (kind, agent, identity) in latest:
                        heappush(each, (latest[kind, agent, identity], identity))
    return lost


def _losses(trajectory: Trajectory) -> Mapping[tuple[str, str], list[Invocation]]:
    """Return the turns, or model calls, that were not shown a message which was there before.

    By agent and message id. `_last_without` handles messages that come back later.
    """
    losses: dict[tuple[str, str], list[Invocation]] = defaultdict(list)
    for turns in _sequences(trajectory):
        # Turns may hold calls of other agents: what was shown to these is nobody else's loss.
        last: dict[str, set[str]] = defaultdict(set)
        for turn in turns:
            if not turn.input_ids:
                continue
            now = set(turn.input_ids)
            for identity in last[turn.agent] - now:
                losses[turn.agent, identity].append(turn)
            last[turn.agent] = now
    return losses


class _Calls:
    """The inputs of each agent's turns and calls, indexed by time."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory

    @cached_property
    def _made(self) -> Mapping[tuple[str, str], list[Invocation]]:
        made: dict[tuple[str, str], list[Invocation]] = defaultdict(list)
        for call in self._trajectory.invocations:
            if call.input_ids:
                made[call.kind, call.agent].append(call)
        return made

    @cached_property
    def _shown(self) -> Mapping[tuple[str, str, str], list[int]]:
        shown: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for (kind, agent), calls in self._made.items():
            for call in calls:
                for identity in call.input_ids:
                    shown[kind, agent, identity].append(call.start)
        return shown

    def last(self, like: Invocation, time: int) -> Invocation:
        """Return the last one of the kind and agent of one that began until ``time``."""
        made = self._made[like.kind, like.agent]
        return made[bisect_right(made, time, key=_start) - 1]

    def shows(self, like: Invocation, identity: str, time: int) -> bool:
        """Return whether one of the same kind and agent, from one on until ``time``, showed a message."""
        shown = self._shown[like.kind, like.agent, identity]
        place = bisect_left(shown, like.start)
        return place < len(shown) and shown[place] <= time

    def begins_anew(self, call: Invocation, lost: str) -> bool:
        """Return whether one is shown what the first one was, and nobody has spoken to the agent since a message was lost."""
        made = self._made[call.kind, call.agent]
        had = [each for each in made if each.start < call.start and lost in each.input_ids]
        first = made[0].input_ids == call.input_ids
        return first and bool(had) and not is_unheard(self._trajectory, had[-1], call)


def _start(call: Invocation) -> int:
    return call.start


def _last_without(
    losses: Iterable[Invocation], calls: _Calls, identity: str, time: int
) -> Invocation | None:
    """Return the agent's last input until ``time``, if a message had gone by then."""
    for gone in losses:
        if gone.start <= time and not calls.shows(gone, identity, time):
            return calls.last(gone, time)
    return None


def _quotes(trajectory: Trajectory, call: Invocation, text: str) -> bool:
    """Return whether a text is part of what an agent was shown, in whichever message."""
    wanted = " ".join(text.lower().split())
    return bool(wanted) and wanted in folded(trajectory, call.input_ids)


def _sequences(trajectory: Trajectory) -> list[list[Invocation]]:
    """Return the sequences of an agent's turns and calls in which nothing shown should get lost."""
    return [*shown_together(trajectory), *_continued(trajectory)]


def _continued(trajectory: Trajectory) -> list[list[Invocation]]:
    """Return the model calls of each turn, followed by the first call of a turn that continues it.

    The continuing turn is the agent's next one, if its input has the end of this one: then the tool
    results in between should be in it as well.
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
        if before is not None and before.output_id and before.output_id in made[0].input_ids:
            found.append([*calls[before.span_id], made[0]])
    return found
