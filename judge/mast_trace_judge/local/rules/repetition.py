"""Mode 1.3, step repetition."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from mast_trace_judge.local.rules._evidence import (
    by_user,
    call_key,
    failed,
    finding,
    first_line,
    is_said,
    is_tool,
    name_words,
    result_key,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import alike, fold
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

NEAR_IDENTICAL = 0.92
"""Character 4-gram similarity from which two messages count as the same one."""
_SHORTEST = 60
"""Shorter messages ("Continue.", "Thanks!") recur in any conversation."""
_FEW = 4
"""An agent that speaks more often may repeat itself once; people do not call that a failure."""
_LOOKED_BACK = 12
"""Messages of an agent that each new one is compared with; keeps the cost linear."""

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
    ]
)
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
_ACKNOWLEDGED = re.compile(
    r"[\s\"'{}\[\]:.!]*(?:ok|okay|done|success|true|null|none|status)?", re.IGNORECASE
)


@rule("1.3", Reach.BACK)
def repeated_calls(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent makes the very tool call again and gets the very same result (exact).

    Definition: MAST 1.3, "unnecessary reiteration of previously completed steps". Counted only
    when between the two nothing happened that could change the answer: no word of the user, no new
    call of a tool that does more than look something up (tests that run again after an edit are no
    repetition). Calls that wait, page or only acknowledge are left out, and a failing call must
    come three times, since trying once more is sound.
    """
    made: dict[tuple[str, str, str, str], list[Step]] = defaultdict(list)
    repeats: dict[tuple[str, str, str, str], list[Step]] = {}
    for step in trajectory.steps:
        if by_user(step):
            made.clear()
        if not (is_tool(step) and step.arguments and result_key(step)):
            continue
        key = (*call_key(step), result_key(step))
        if key not in made and not _LOOKS_UP & name_words(step.tool):
            made.clear()
        made[key].append(step)
        if len(made[key]) >= (3 if failed(step) else 2) and not _harmless(step):
            repeats[key] = made[key]
    return [_repeated(steps) for steps in repeats.values()]


def _harmless(step: Step) -> bool:
    if _WAITING & name_words(step.tool):
        return True
    return bool(_ACKNOWLEDGED.fullmatch(step.text[:40])) and not step.error


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

    Definition: MAST 1.3. Two messages of one agent whose character 4-grams agree to 0.92 or more.
    What it is worth: `benchmarks/judge/rules.md`.
    """
    said: dict[str, deque[Step]] = defaultdict(lambda: deque(maxlen=_LOOKED_BACK))
    earliest: dict[tuple[str, str], Step] = {}
    pairs: dict[str, list[Step]] = defaultdict(list)
    spoken: dict[str, int] = defaultdict(int)
    for step in trajectory.steps:
        if not is_said(step) or len(step.text) < _SHORTEST:
            continue
        spoken[step.agent] += 1
        same = earliest.setdefault((step.agent, fold(step.text)), step)
        if same is step:
            near = (old for old in said[step.agent] if alike(old.text, step.text, NEAR_IDENTICAL))
            same = next(near, step)
        if same is not step:
            pairs[step.agent] += [same, step]
        said[step.agent].append(step)
    return [
        _near_identical(agent, steps, spoken[agent])
        for agent, steps in pairs.items()
        if len(steps) > 2 or spoken[agent] <= _FEW
    ]


def _near_identical(agent: str, steps: list[Step], spoken: int) -> ModeFinding:
    repeats = len({step.index for step in steps[1::2]})
    return finding(
        "1.3",
        min(0.9, 0.55 + 0.1 * (repeats - 1) + 0.2 * repeats / spoken),
        Evidence.HEURISTIC,
        f"{agent} repeated itself almost word for word ({repeats} of {spoken} messages).",
        steps,
        [first_line(steps[0]), first_line(steps[1])],
    )
