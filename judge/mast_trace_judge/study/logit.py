"""The conditional logit behind a profile: its loss over labelled runs, and the best weights.

The loss of a run is the negative logarithm of the labelled step's probability, plus a share of that
of the labelled agent's (the sum over the agent's steps). The whole loss is the mean over the runs, by their
weights, plus a ridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mast_trace_judge.study.numeric import numpy_module, optimize_module

_ITERATIONS = 150
_FLAT = 1e-4
"""Slope in every direction at which the search stops."""


@dataclass(frozen=True)
class LogitExample:
    """A labelled run as numbers.

    Attributes:
        rows: the features of each attributable step.
        steps: the index of each of them in the run.
        agents: the agent of each.
        gold: the index of the labelled step among them; None if it is missing.
        blamed: the places of the labelled agent's steps.
        group: runs of one group stay in one fold.
        weight: of the run in the loss, beside the others'.
    """

    rows: Any
    steps: tuple[int, ...]
    agents: tuple[str, ...]
    gold: int | None
    blamed: tuple[int, ...]
    group: str
    weight: float = 1.0


@dataclass(frozen=True)
class Stack:
    """All examples' rows, standardised, with the data that the loss needs of each row."""

    rows: Any
    scale: Any
    starts: Any
    run: Any
    gold: Any
    has_gold: Any
    blamed: Any
    has_blamed: Any
    weights: Any

    @classmethod
    def of(cls, examples: Sequence[LogitExample]) -> Stack:
        """Put the examples' rows under each other."""
        np = numpy_module()
        rows = np.concatenate([example.rows for example in examples])
        scale = rows.std(axis=0)
        scale[scale < 1e-9] = 1.0
        lengths = np.array([len(example.rows) for example in examples])
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        gold, blamed = np.zeros(len(rows)), np.zeros(len(rows))
        for start, example in zip(starts, examples, strict=True):
            if example.gold is not None:
                gold[start + example.gold] = 1.0
            blamed[[start + place for place in example.blamed]] = 1.0
        run = np.repeat(np.arange(len(examples)), lengths)
        return cls(
            rows=(rows - rows.mean(axis=0)) / scale,
            scale=scale,
            starts=starts,
            run=run,
            gold=gold,
            has_gold=np.add.reduceat(gold, starts)[run],
            blamed=blamed,
            has_blamed=(np.add.reduceat(blamed, starts) > 0).astype(float)[run],
            weights=_shares([example.weight for example in examples]),
        )

    def loss(self, weights: Any, ridge: float, share: float) -> tuple[float, Any]:
        """Return the loss and its gradient."""
        np = numpy_module()
        scores = self.rows @ weights
        powers = np.exp(scores - np.maximum.reduceat(scores, self.starts)[self.run])
        p = powers / np.add.reduceat(powers, self.starts)[self.run]
        mass = np.add.reduceat(p * self.blamed, self.starts)
        within = np.divide(p * self.blamed, np.maximum(mass[self.run], 1e-12))
        slope = (p * self.has_gold - self.gold) + share * (p * self.has_blamed - within)
        gradient = self.rows.T @ (slope * self.weights[self.run]) + ridge * weights
        agent_loss = -np.log(np.maximum(mass, 1e-12)) * self.has_blamed[self.starts]
        step_loss = -np.log(np.maximum(p[self.gold > 0], 1e-12))
        of_steps = step_loss @ self.weights[self.run[self.gold > 0]]
        loss = of_steps + share * (agent_loss @ self.weights)
        return float(loss + 0.5 * ridge * weights @ weights), gradient


def _shares(weights: Sequence[float]) -> Any:
    """Return the weights divided by their sum."""
    given = numpy_module().array(weights, dtype=float)
    return given / given.sum()


def minimise(stack: Stack, ridge: float, share: float, start: Any = None) -> Any:
    """Return the best weights for the standardised features, by BFGS.

    Args:
        stack: the labelled runs.
        ridge: weight of the squared weights in the loss.
        share: weight of the agent's term.
        start: initial weights of the search; zero if absent.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    first = numpy_module().zeros(stack.rows.shape[1]) if start is None else start
    found = optimize_module().minimize(
        stack.loss,
        first,
        args=(ridge, share),
        jac=True,
        method="BFGS",
        options={"gtol": _FLAT, "maxiter": _ITERATIONS},
    )
    return found.x
