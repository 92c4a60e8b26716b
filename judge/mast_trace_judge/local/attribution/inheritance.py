"""Finds steps that only pass the final answer on; the step that introduced it answers for the error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.local.attribution.cascade import introduces_answer
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.rules._answer import final_answer, holds
from mast_trace_judge.local.rules._evidence import is_said
from mast_trace_judge.local.texts import code_blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.attribution.cascade import Vote

_A_FIGURE = 30
"""Length up to which an answer that holds one figure counts as that figure."""


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
        """Return the votes, with those for a relay moved to the origin."""
        return [
            dataclasses.replace(vote, step=self.origin)
            if self.origin is not None and vote.step in self.relays
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
