"""AgenTracer's multi-granular reward (arXiv 2509.03312): format gate, distance of the step, right agent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, StrictInt

from mast_trace.exceptions import ConfigurationError, VerdictUnreadable
from mast_trace_judge.llm.answers import Reading, parse_answer
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.verification import Verifier
from mast_trace_judge.study.datasets.labelled import same_agent

if TYPE_CHECKING:
    from mast_trace_lab.train.examples import Example

_WIDTH = 20
"""A run's number of steps for each step of sigma, where sigma is not set."""


class StepAnswer(BaseModel):
    """The answer to the question ``step``, to the letter: training is to teach the format."""

    model_config = ConfigDict(extra="forbid")

    step: StrictInt


def named_step(text: str, example: Example) -> int | None:
    """Return the step that an answer names; None if the format gate is closed.

    The gate is open to an answer that has the shape that its question asks for, and a step that the
    run has. An answer to ``read`` names the step that it puts first, and only steps with a quote that is in
    the run count: the judge drops the others.
    """
    try:
        if example.question == "step":
            step = parse_answer(text, StepAnswer, repair=False).step
            return step if 0 <= step < example.steps else None
        reading = parse_answer(text, Reading, repair=False)
    except VerdictUnreadable:
        return None
    suggested = Verifier(QuoteCheck(example.run), example.steps).suggestions(reading)
    return suggested[0].step if suggested else None


@dataclass(frozen=True)
class Reward:
    """The settings of the reward.

    Attributes:
        step_weight: lambda, the weight of the step's distance; the rest is that of the agent, 0 to 1.
        sigma: width of the Gaussian in steps; None: a twentieth of the run's steps, at least 1.
    """

    step_weight: float = 0.5
    sigma: float | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigurationError: the weight is no share, or the width is not above 0.
        """
        if not 0.0 <= self.step_weight <= 1.0:
            raise ConfigurationError(f"lambda is a number from 0 to 1, not {self.step_weight:g}")
        if self.sigma is not None and not (0.0 < self.sigma < math.inf):
            raise ConfigurationError(f"sigma is a number of steps above 0, not {self.sigma:g}")

    def of_text(self, text: str, example: Example) -> float:
        """Return the reward of an answer, 0 to 1; 0 where the format gate is closed."""
        step = named_step(text, example)
        return 0.0 if step is None else self.of_step(step, example)

    def of_step(self, step: int, example: Example) -> float:
        """Return ``lambda * exp(-(t - t*)^2 / (2 sigma^2)) + (1 - lambda) * right agent``.

        The agent is that of the step in the run. Where the label blames no agent, the distance alone
        counts.
        """
        sigma = self.sigma or max(1.0, example.steps / _WIDTH)
        near = math.exp(-((step - example.step) ** 2) / (2 * sigma**2))
        if not example.agent:
            return near
        agent = same_agent(example.run.steps[step].agent, example.agent)
        return self.step_weight * near + (1.0 - self.step_weight) * agent
