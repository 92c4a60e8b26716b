"""Features of hand-overs, tool runs and their results, for profiles of recorded runs.

A recorded run tells messages, tool runs and hand-overs apart, so a profile can learn from faults that leave no
trace in an agent's words. A transcript cannot: there these features are 0. Profiles that have none of them
attribute a failure to messages and tool runs alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import (
    by_user,
    call_key,
    checks,
    failed,
    is_handoff,
    is_said,
    is_tool,
)
from mast_trace_judge.local.attribution.cascade import answerable
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.figures import known_values
from mast_trace_judge.local.texts import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory

RECORDED = (
    "tool_run",
    "tool_failed",
    "empty_result",
    "stale_result",
    "contradicted_result",
    "unused_result",
    "call_again",
    "unseen_figures",
    "dropped_figures",
    "lost_figures",
    "corrected_figures",
    "turn_without_tool",
    "check_without_tool",
    "shown_less",
    "hand_over",
    "receiver_idle",
    "receiver_again",
    "other_fits_better",
    "irregular",
    "first_irregular",
)
"""The names of the features, in the order of their columns."""
ALL_FEATURES = (*FEATURES, *RECORDED)
"""The names of the features of a profile of recorded runs, in the order of their columns."""
_READ = 6000
"""Characters of a step that are read; bounds the cost of a step."""
_EMPTY = frozenset({"", "[]", "{}", "none", "null", '""', "no results", "no results.", "not found"})
_IRREGULAR = (
    "tool_failed",
    "empty_result",
    "stale_result",
    "contradicted_result",
    "call_again",
    "check_without_tool",
    "shown_less",
    "receiver_idle",
)
"""Features that no step of a sound run needs to have. The first step with one of them stands out in failures of any
kind, those that a fit has not seen included."""
_SMALL = 20
"""Size up to which a new figure in a call's arguments is ordinary: a page, a count, a limit."""
_MOST = 0.9
"""Share of the figures of a result just read from which leaving them out is irregular."""
_FITS = 1.5
"""Factor by which another agent's words must be nearer to a sub-task than the receiver's."""


def decisions(steps: Sequence[Step]) -> list[int]:
    """Return the steps that may be decisive for a profile of recorded runs: hand-overs as well."""
    acting = set(answerable(steps))
    return [
        step.index
        for step in steps
        if step.index in acting or (is_handoff(step) and not by_user(step) and not step.synthetic)
    ]


def hands_over(step: Step) -> bool:
    """Return whether a step only passes control on, so that only a profile of recorded runs can blame it."""
    return is_handoff(step)


def all_features(trajectory: Trajectory) -> tuple[list[int], list[list[float]]]:
    """Return the steps that may be decisive, and all features of each, as `ALL_FEATURES` names them."""
    actors, rows = features(trajectory, decisions(trajectory.steps))
    seen = recorded_features(trajectory, actors)
    return actors, [[*row, *more] for row, more in zip(rows, seen, strict=True)]


def recorded_features(trajectory: Trajectory, actors: Sequence[int]) -> list[list[float]]:
    """Return the features of each of these steps."""
    reader = _Reader(trajectory)
    wanted = set(actors)
    found = {step.index: reader.row(step) for step in trajectory.steps}
    return [row for index, row in found.items() if index in wanted]


@dataclass
class _Reader:
    """Reads a run from its first step to its last."""

    trajectory: Trajectory
    seen: set[float] = field(default_factory=set)
    calls: set[tuple[str, str, str]] = field(default_factory=set)
    results: dict[str, dict[str, str]] = field(default_factory=dict)
    acted: set[str] = field(default_factory=set)
    since_tool: dict[str, bool] = field(default_factory=dict)
    read: set[float] = field(default_factory=set)
    irregular: bool = False

    def __post_init__(self) -> None:
        steps = self.trajectory.steps
        self.figures = [known_values([step.text[:_READ]]) for step in steps]
        self.seen = known_values([self.trajectory.task])
        self.asked = [known_values([step.arguments[:_READ]]) for step in steps]
        self.last = {
            figure: step.index
            for step in steps
            for figure in self.figures[step.index] | self.asked[step.index]
        }
        self.answers: dict[tuple[str, str], set[str]] = {}
        for step in filter(is_tool, steps):
            self.answers.setdefault(call_key(step)[1:], set()).add(step.text.strip())
        self.with_tools = {step.agent for step in steps if is_tool(step)}
        self.lengths = _input_lengths(self.trajectory)
        self.said: dict[str, set[str]] = {}
        for step in steps:
            if is_said(step) or is_tool(step):
                text = f"{step.tool} {step.text[:_READ]}"
                self.said.setdefault(step.agent, set()).update(words(text))

    def row(self, step: Step) -> list[float]:
        """Return a step's features, and remember what the next steps need."""
        tool, handing = is_tool(step), is_handoff(step)
        said = is_said(step)
        own, asked = self.figures[step.index], self.asked[step.index]
        stated = asked if tool or handing else own if said else set()
        new = stated - self.seen
        quiet = said and not self.since_tool.get(step.agent, False)
        found = [
            float(tool),
            float(tool and failed(step)),
            float(tool and not failed(step) and step.text.strip().lower() in _EMPTY),
            float(tool and self._stale(step)),
            float(tool and len(self.answers[call_key(step)[1:]]) > 1),
            _share(self._dead(own, step), own) if tool else 0.0,
            float(tool and call_key(step) in self.calls),
            _share(new, stated),
            _share(self.read - own, self.read) if said else 0.0,
            _share(self._dead(new, step), new) if said else 0.0,
            float(said and bool(new) and self._corrected(step, new)),
            float(quiet and bool(self.with_tools)),
            float(quiet and checks(step.agent)),
            self._shown_less(step),
            float(handing),
            float(handing and self._idle(step)),
            float(handing and step.handoff_to in self.acted),
            float(handing and self._other_fits(step)),
        ]
        invented = (tool or handing) and any(abs(figure) > _SMALL for figure in new)
        odd = self._is_irregular(dict(zip(RECORDED, found, strict=False)), invented=invented)
        first = odd and not self.irregular
        self.irregular = self.irregular or odd
        self._remember(step, own | asked)
        return [*found, float(odd), float(first)]

    @staticmethod
    def _is_irregular(found: dict[str, float], *, invented: bool) -> bool:
        """Return whether the step has a feature that no step of a sound run needs to have."""
        withheld = found["dropped_figures"] > _MOST
        return invented or withheld or any(found[name] for name in _IRREGULAR)

    def _remember(self, step: Step, figures: set[float]) -> None:
        self.seen |= figures
        self.acted.add(step.agent)
        if is_tool(step):
            self.calls.add(call_key(step))
            self.results.setdefault(step.tool, {})[call_key(step)[2]] = step.text.strip()
            self.since_tool[step.requested_by or step.agent] = True
            self.read = self.figures[step.index]
        elif is_said(step):
            self.since_tool[step.agent] = False
            self.read = set()

    def _stale(self, step: Step) -> bool:
        """Return whether a new call gave a result that the tool gave before, for other arguments."""
        before = self.results.get(step.tool, {})
        text = step.text.strip()
        return bool(text) and call_key(step)[2] not in before and text in before.values()

    def _dead(self, figures: set[float], step: Step) -> set[float]:
        """Return the figures that no later step holds."""
        return {figure for figure in figures if self.last[figure] == step.index}

    def _corrected(self, step: Step, new: set[float]) -> bool:
        """Return whether the next message of another agent names a new figure and none of these."""
        known = self.seen | self.figures[step.index]
        for other in self.trajectory.steps[step.index + 1 :]:
            if is_said(other) and other.agent != step.agent:
                figures = self.figures[other.index]
                return bool(figures - known) and not figures & new
        return False

    def _shown_less(self, step: Step) -> float:
        """Return the share of the agent's earlier input that the model was not shown here."""
        before, now = self.lengths.get(step.message_id, (0, 0))
        return max(0.0, (before - now) / before) if before else 0.0

    def _idle(self, step: Step) -> bool:
        """Return whether the receiver runs no tool before control passes on, though others run some."""
        for other in self.trajectory.steps[step.index + 1 :]:
            if is_handoff(other):
                break
            if is_tool(other):
                return False
        return bool(self.with_tools)

    def _other_fits(self, step: Step) -> bool:
        """Return whether another agent's words are clearly nearer to the task than the receiver's."""
        task = words(f"{self.trajectory.task} {step.arguments[:_READ]}")
        nearness = {agent: _nearness(task, said) for agent, said in self.said.items()}
        receiver = nearness.pop(step.handoff_to, 0.0)
        nearness.pop(step.agent, None)
        return any(other > _FITS * receiver for other in nearness.values())


def _input_lengths(trajectory: Trajectory) -> dict[str, tuple[int, int]]:
    """Return for each answer the most messages that its agent's model had been shown, and those of the call."""
    most: dict[str, int] = {}
    found = {}
    for call in trajectory.invocations:
        if call.kind != "model" or not call.input_ids:
            continue
        count = len(call.input_ids)
        if call.output_id:
            found[call.output_id] = (most.get(call.agent, 0), count)
        most[call.agent] = max(most.get(call.agent, 0), count)
    return found


def _share(part: set[float], whole: set[float]) -> float:
    return len(part) / len(whole) if whole else 0.0


def _nearness(one: set[str], other: set[str]) -> float:
    return len(one & other) / math.sqrt(len(other)) if other else 0.0
