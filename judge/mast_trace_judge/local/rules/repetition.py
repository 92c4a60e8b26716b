"""Mode 1.3, step repetition."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.acts import (
    by_user,
    call_key,
    failed,
    finding,
    first_line,
    has_failed,
    is_said,
    is_tool,
    name_words,
    result_key,
    speakers,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.rules.reset import RESTART, begins_again
from mast_trace_judge.local.stated import acts, stem
from mast_trace_judge.local.texts import alike, fold
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Invocation, Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

NEAR_IDENTICAL = 0.92
"""Character 4-gram similarity from which two messages count as the same one."""
_SHORTEST = 60
"""Shorter messages ("Continue.", "Thanks!") recur in any conversation."""
_START = 200
"""Characters of a message in which it says that the run starts over, if that is all it says."""
_FEW = 4
"""Number of messages from which an agent may repeat itself once; people do not call that a failure."""
_LOOKED_BACK = 12
"""Number of an agent's messages that each new one is compared with; keeps the cost linear."""

_LEAST = 3
"""Number of equal calls with equal results from which they are a loop; two are often sound."""

_WAITING = frozenset(
    [
        "wait",
        "sleep",
        "poll",
        "status",
        "progress",
        "time",
        "date",
        "now",
        "scroll",
        "next",
        "previous",
        "back",
        "page",
        "tick",
        *("heartbeat", "ping", "keepalive", "alive"),
        *("random", "toss", "flip", "roll", "dice", "coin", "draw", "spin", "shuffle"),
    ]
)
"""Words of tools that wait, turn pages, keep something alive or leave it to chance."""
_LOOKS_UP = frozenset(
    [
        "get",
        "search",
        "find",
        "look",
        "lookup",
        "read",
        "list",
        "fetch",
        "query",
        "retrieve",
        "calculate",
        "calculator",
        "calc",
        "browse",
        "show",
        "view",
        "count",
        "describe",
        "weather",
        "convert",
        "price",
        "info",
    ]
)
_PROXY = re.compile(r"proxy", re.IGNORECASE)
"""Programs in a person's place, which have a fixed text for "continue"."""
_ACKNOWLEDGED = re.compile(
    r"[\s\"'{}\[\]:.!]*(?:ok|okay|done|success|true|null|none|status)?", re.IGNORECASE
)

_DONE = re.compile(
    r"\W{0,3}(?:(?:has|have|is|was|were|successfully) )?([a-z]{2,}(?:ed|nt|id|ld|de|wn|en))\b",
    re.IGNORECASE,
)
"""Beginnings of results that say that something is done, such as "watered", "moved" and "sent"."""
_PENDING = re.compile(
    r"\b(?:pending|queued|running|in progress|processing|not (?:yet )?(?:ready|available|finished)"
    r"|no (?:new|unread)|nothing new|empty|waiting|still|try again|later)\b|^\s*(?:\[\s*\]|\{\s*\}|0)?\s*$",
    re.IGNORECASE,
)
"""Results after which a call is repeated: the requested data has not arrived yet."""


@rule("1.3", Reach.BACK)
def repeated_calls(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent makes the very tool call again and gets the very same result (exact).

    Definition: MAST 1.3, "unnecessary reiteration of previously completed steps". Counted only when
    between the two nothing happened that could change the answer: no word of the user, no new call
    of a tool that does more than look something up (tests that run again after an edit are no
    repetition), no other context in which the agent did not know the result. Calls that wait, page, only acknowledge or
    say that their act is done ("watered" of ``water``) are left out, and so is a call that brings something else later: it was
    worth asking again. Two equal calls are a fact, and no failure: a call must come three times, in
    a failed run twice. Failing calls that are tried again count in runs that failed.
    """
    turns = _Turns(trajectory)
    run_failed = has_failed(trajectory)
    least = 2 if run_failed else _LEAST
    made: dict[tuple[str, ...], list[Step]] = defaultdict(list)
    repeats: dict[tuple[str, ...], tuple[str, list[Step]]] = {}
    changing = _changing(trajectory.steps)
    for step in trajectory.steps:
        if by_user(step):
            made.clear()
        if not (is_tool(step) and step.arguments and result_key(step)):
            continue
        call, result = call_key(step), result_key(step)
        if call in repeats and repeats[call][0] != result:
            del repeats[call]  # it returns something else now: asking again was worth it
        key = (*call, result)
        if key not in made and not _LOOKS_UP & name_words(step.tool):
            made.clear()
        if made[key] and not turns.knows(step, made[key][-1]):
            made[key] = []
        made[key].append(step)
        if failed(step) and not run_failed:  # an agent that tries again may have been instructed to
            continue
        if len(made[key]) >= (_LEAST if failed(step) else least) and not _harmless(step):
            repeats[call] = (result, made[key])
    return [_repeated(steps) for call, (_, steps) in repeats.items() if call not in changing]


def _changing(steps: Sequence[Step]) -> set[tuple[str, ...]]:
    """Return the calls that returned something else though nothing else was done in between: they may be left to chance."""
    returned: dict[tuple[str, ...], tuple[str, int]] = {}
    found: set[tuple[str, ...]] = set()
    acted, total = Counter[tuple[str, str]](), 0
    for step in steps:
        if not is_tool(step) or failed(step) or not result_key(step):
            continue
        call, tool = call_key(step), (step.agent, step.tool)
        acted[tool] += acts(step)
        total += acts(step)
        result = result_key(step), total - acted[tool]
        before = returned.get(call)
        if before is not None and before[1] == result[1] and before[0] != result[0]:
            found.add(call)
        returned[call] = result
    return found


class _Turns:
    """Decides whether an agent knew the result of one call when it made another."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._calls = {call.span_id: call for call in trajectory.invocations}
        self._texts = trajectory.texts

    def knows(self, step: Step, earlier: Step) -> bool:
        """Return whether a call was made after another had ended, in its turn or in one that shows it."""
        if step.start < earlier.end:
            return False
        turn, before = self._turn(step), self._turn(earlier)
        if turn is None or before is None or turn is before:
            return True
        if not turn.input_ids or earlier.message_id in turn.input_ids:
            return True
        # The same result of another call may have that call's id.
        shown = (self._texts[identity] for identity in turn.input_ids if identity in self._texts)
        return any(message.content == earlier.text for message in shown)

    def _turn(self, step: Step) -> Invocation | None:
        """Return the agent's turn around a step, as far as its parents are turns and model calls."""
        call = self._calls.get(step.parent_span_id)
        while call is not None and call.kind != "agent":
            call = self._calls.get(call.parent_span_id)
        return call


def _harmless(step: Step) -> bool:
    if _WAITING & name_words(step.tool):
        return True
    if step.error:
        return False
    if _ACKNOWLEDGED.fullmatch(step.text[:40]) or _PENDING.search(step.text[:200]):
        return True
    done = _DONE.match(step.text)
    return done is not None and stem(done[1]) in {stem(each) for each in name_words(step.tool)}


def _repeated(steps: list[Step]) -> ModeFinding:
    first = steps[0]
    return finding(
        "1.3",
        min(0.97, 0.8 + 0.06 * (len(steps) - 1)),
        Evidence.EXACT,
        f"{first.agent or 'An agent'} called {first.tool} {len(steps)} times with the same "
        "arguments and got the same result each time.",
        steps,
        [first_line(first)],
    )


@rule("1.3")
def repeated_messages(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says almost the same again (heuristic).

    Definition: MAST 1.3. Two messages of one agent whose character 4-grams agree to 0.92 or more,
    in a run of several agents: one agent alone answers whoever asks it again. One that has all of
    the other's lines and more of them is no repetition, and lines with which the run starts
    over are mode 2.1. Its accuracy is in `benchmarks/judge/rules.md`.
    """
    if len(speakers(trajectory)) < 2:
        return []
    said: dict[str, deque[Step]] = defaultdict(lambda: deque(maxlen=_LOOKED_BACK))
    earliest: dict[tuple[str, str], Step] = {}
    pairs: dict[str, list[Step]] = defaultdict(list)
    spoken: dict[str, int] = defaultdict(int)
    restarts = begins_again([step for step in trajectory.steps if is_said(step)])
    for step in trajectory.steps:
        if not is_said(step) or len(step.text) < _SHORTEST or _PROXY.search(step.agent):
            continue
        if step.index in restarts or RESTART.search(step.text[:_START]):
            continue
        spoken[step.agent] += 1
        same = earliest.setdefault((step.agent, fold(step.text)), step)
        if same is step:
            near = (old for old in said[step.agent] if alike(old.text, step.text, NEAR_IDENTICAL))
            kept = (old for old in near if not _extends(step, old))
            same = next((old for old in kept if not _revised(trajectory, old, step)), step)
        if same is not step:
            pairs[step.agent] += [same, step]
        said[step.agent].append(step)
    return [
        _near_identical(agent, steps, spoken[agent])
        for agent, steps in pairs.items()
        if len(steps) > 4 or spoken[agent] <= _FEW
    ]


def _extends(new: Step, old: Step) -> bool:
    """Return whether a text keeps the lines of another one and adds to them."""
    lines, before = ({line.strip() for line in each.text.splitlines()} for each in (new, old))
    return lines > before


def _revised(trajectory: Trajectory, old: Step, new: Step) -> bool:
    """Return whether another agent's text is between two versions of a text: then it is a revision."""
    between = trajectory.steps[old.index + 1 : new.index]
    return any(
        step.agent != new.agent and step.kind is not StepKind.TOOL and len(step.text) >= _SHORTEST
        for step in between
    )


def _near_identical(agent: str, steps: list[Step], spoken: int) -> ModeFinding:
    repeats = len({step.index for step in steps[1::2]})
    return finding(
        "1.3",
        min(0.9, 0.5 + 0.1 * (repeats - 1) + 0.2 * repeats / spoken),
        Evidence.HEURISTIC,
        f"{agent} repeated itself almost word for word ({repeats} of {spoken} messages).",
        steps,
        [first_line(steps[0]), first_line(steps[1])],
    )
