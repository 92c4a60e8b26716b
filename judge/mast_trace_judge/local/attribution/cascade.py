"""The untrained attribution: evidence for each step from the structure of a run.

Each matching rule names a step and a strength. The cascade's own rules have a fixed order, and a
match weakens the rules after it: the step before the first failed tool run; the step that
introduces the final answer; the first writer of the code that survives; the first actor.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.acts import (
    by_user,
    failed,
    final_answer,
    holds,
    introduced,
    is_handoff,
    is_said,
)
from mast_trace_judge.local.attribution.calibration import cascade_calibration
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.texts import code_blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


_BACKGROUND = 0.8
"""Weight that all steps share, beside the rules' votes: the frequency with which all rules are
wrong.
"""
_WEAKENED = 0.45
"""Factor of a rule's strength after an earlier rule of the cascade has matched."""


FAILS_FROM_HERE = "tool runs fail from here on"

_A_FIGURE = 30
"""Length up to which an answer that holds one figure counts as that figure."""


@dataclass(frozen=True)
class Vote:
    """A rule's vote: a step, with a strength and a reason."""

    step: int
    strength: float
    rule: str


def cascade(trajectory: Trajectory) -> tuple[dict[int, float], dict[int, str]]:
    """Return the probability of each attributable step, and the reason for it.

    Empty where nobody acted.
    """
    probabilities, told = uncalibrated(trajectory)
    return cascade_calibration().apply(probabilities), told


def uncalibrated(trajectory: Trajectory) -> tuple[dict[int, float], dict[int, str]]:
    """Return the distribution by the rules' strengths, before calibration."""
    actors = answerable(trajectory.steps)
    if not actors:
        return {}, {}
    background = dict.fromkeys(actors, _BACKGROUND / len(actors))
    return weigh(background, {}, _votes(trajectory, actors))


def weigh(
    mass: Mapping[int, float], reasons: Mapping[int, str], votes: Iterable[Vote]
) -> tuple[dict[int, float], dict[int, str]]:
    """Add votes to the steps' weights, and normalise them."""
    weights, told = dict(mass), dict(reasons)
    spoken = set()
    for vote in sorted(votes, key=lambda vote: -vote.strength):
        weights[vote.step] += vote.strength
        if vote.step not in spoken:
            told[vote.step] = vote.rule
        spoken.add(vote.step)
    total = sum(weights.values())
    return {step: weight / total for step, weight in weights.items()}, told


def answerable(steps: Sequence[Step]) -> list[int]:
    """Return the steps that are an agent's own act: no executor's output, no user, no hand-off."""
    executors = _executors(steps)
    return [
        step.index
        for step in steps
        if not by_user(step)
        and not step.synthetic
        and not (step.kind is StepKind.MESSAGE and step.role == "tool")
        and not (step.kind is StepKind.TOOL and (is_handoff(step) or step.agent in executors))
    ] or [step.index for step in steps if not by_user(step)]


def _executors(steps: Sequence[Step]) -> set[str]:
    """Return the names of agents that only ever run the code of others."""
    tools = {step.agent for step in steps if step.kind is StepKind.TOOL and step.agent == step.tool}
    return tools - {step.agent for step in steps if step.kind is not StepKind.TOOL}


def _votes(trajectory: Trajectory, actors: Sequence[int]) -> list[Vote]:
    found = [
        (fails_from_here(trajectory.steps), 0.9, FAILS_FROM_HERE),
        (
            before_first_failure(trajectory.steps, actors),
            0.4,
            "the first failed tool run, or the act before it",
        ),
        (
            introduces_answer(trajectory, actors),
            0.25,
            "first mention of the value on which the run ends, or the act before it",
        ),
        (writes_surviving_code(trajectory.steps), 0.2, "first writer of the code that survives"),
        (actors[0], 0.15, "first actor"),
    ]
    votes, factor = [], 1.0
    for step, strength, rule in found:
        if step is not None and step in actors:
            votes.append(Vote(step, strength * factor, rule))
            factor = min(factor, _WEAKENED)
    return votes


def fails_from_here(steps: Sequence[Step]) -> int | None:
    """Return the first failed tool run where at least half of the runs from there on fail, too.

    Only tool runs whose spans are marked as failed count, and at least two of them. Where a person
    speaks after the first one, the run may have taken another course.
    """
    runs = [step for step in steps if step.kind is StepKind.TOOL and not is_handoff(step)]
    bad = [step.index for step in runs if step.error is not None and step.span_id]
    if len(bad) < 2:
        return None
    rest = [step for step in runs if step.index >= bad[0]]
    if 2 * len(bad) < len(rest) or any(by_user(step) for step in steps[bad[0] :]):
        return None
    return bad[0]


def before_first_failure(steps: Sequence[Step], actors: Sequence[int]) -> int | None:
    """Return the step that caused the first failed tool run: the caller's, or that of the code's author."""
    acting = set(actors)
    previous = None
    for step in steps:
        if step.kind is StepKind.TOOL and failed(step):
            return step.index if step.index in acting else previous
        if step.index in acting and step.kind is not StepKind.TOOL:
            previous = step.index
    return None


def introduces_answer(trajectory: Trajectory, actors: Sequence[int]) -> int | None:
    """Return the step that first mentioned the final answer."""
    index = introduced(trajectory, final_answer(trajectory.steps))
    if index is None:
        return None
    return max((step for step in actors if step <= index), default=None)


def writes_surviving_code(steps: Sequence[Step]) -> int | None:
    """Return the first step that holds half of the lines of the last code in the run."""
    blocks = [(step, block) for step in steps if is_said(step) for block in code_blocks(step.text)]
    if not blocks:
        return None
    wanted = _lines(blocks[-1][1])
    for step, block in blocks:
        if wanted and 2 * len(wanted & _lines(block)) >= len(wanted):
            return step.index
    return None


def _lines(code: str) -> set[str]:
    return {line.strip() for line in code.splitlines() if len(line.strip()) > 8}


@dataclass(frozen=True)
class Inheritance:
    """The steps that only pass the final answer on, and the step that introduced it.

    Attributes:
        origin: the step that introduced the answer; None if no step did, or the answer is no figure.
        relays: later messages that hold the answer, but no new figure and no code.
    """

    origin: int | None = None
    relays: frozenset[int] = field(default_factory=frozenset)

    def moved(self, votes: Iterable[Vote]) -> list[Vote]:
        """Return the votes, with those for a relay's figure moved to the origin; other slips are the relay's own."""
        return [
            dataclasses.replace(vote, step=self.origin)
            if self.origin is not None and vote.step in self.relays and vote.rule[:3] == "2.6"
            else vote
            for vote in votes
        ]

    def origin_first(
        self, probabilities: Mapping[int, float], shown: Collection[int]
    ) -> dict[int, float]:
        """Return the probabilities, exchanged between origin and likeliest relay if the relay's is higher.

        Args:
            probabilities: each step's probability of being decisive.
            shown: steps in which an exact finding shows an error of their own; they keep theirs.
        """
        ordered = dict(probabilities)
        relay = max(
            self.relays & ordered.keys() - set(shown), key=lambda step: ordered[step], default=None
        )
        if relay is not None and self.origin in ordered and self.origin is not None:
            pair = ordered[relay], ordered[self.origin]
            ordered[self.origin], ordered[relay] = max(pair), min(pair)
        return ordered


def inheritance(trajectory: Trajectory, actors: Collection[int]) -> Inheritance:
    """Find the origin and the relays of the figure that is the run's final answer.

    Args:
        trajectory: the run.
        actors: the attributable steps.
    """
    answer = final_answer(trajectory.steps)
    if len(answer) > _A_FIGURE or len(figures(answer)) != 1:
        return Inheritance()
    origin = introduces_answer(trajectory, sorted(actors))
    if origin is None:
        return Inheritance()
    known = known_values([trajectory.task])
    relays = set()
    for step in trajectory.steps:
        figures_said = known_values([step.text])
        if (
            step.index > origin
            and is_said(step)
            and holds(step.text, answer)
            and figures_said <= known
            and not code_blocks(step.text)
        ):
            relays.add(step.index)
        known |= figures_said | known_values([step.arguments])
    return Inheritance(origin, frozenset(relays))
