"""Rules of a team's own, as the configuration file declares them: `[[rules]]`.

A rule selects steps by patterns, and says how many of them a run may have, must have, or what has to
come before them. A rule in Python (`mast_trace_judge.plugins`) can say more.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self


SURE: Final = 0.9
"""Probability of what such a rule finds: whoever has written it has decided that it is a failure."""
_MOST_STEPS: Final = 20
_LONGEST_QUOTE: Final = 200


class StepPattern(BaseModel):
    """Steps of a run; every part that is given has to fit.

    Attributes:
        agent: name of the agent that acts, or that asked for the tool; ``*`` and ``?`` as in file names,
            in any case.
        tool: likewise, name of the tool; selects tool calls alone.
        argument: regular expression, searched in the arguments of a tool call, which are JSON text.
        text: regular expression, searched in a message or a tool's result.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str = ""
    tool: str = ""
    argument: str = ""
    text: str = ""

    @field_validator("argument", "text")
    @classmethod
    def _is_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is no regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if not (self.agent or self.tool or self.argument or self.text):
            raise ValueError("it selects every step: give agent, tool, argument or text")
        return self

    def fits(self, step: Step) -> bool:
        """Return whether a step is one of these."""
        of_tool = step.kind is StepKind.TOOL
        return (
            (of_tool or not (self.tool or self.argument))
            and _named(self.agent, step.requested_by or step.agent)
            and _named(self.tool, step.tool)
            and re.search(self.argument, step.arguments) is not None
            and re.search(self.text, step.text) is not None
        )


class RunRule(StepPattern):
    """A rule: its pattern, and what is wrong with the steps that fit.

    Attributes:
        name: unique among rules.
        mode: code of the failure mode, such as ``1.1``.
        says: one sentence on what went wrong.
        at_most: steps that a run may have; the later ones are findings. 0, which forbids them, if neither this
            nor ``at_least`` nor ``before`` is given.
        at_least: steps that a finished run must have.
        before: steps before which one that fits has to come; those without are findings.
    """

    name: str = Field(min_length=1)
    mode: str
    says: str = Field(min_length=1)
    at_most: int | None = Field(None, ge=0)
    at_least: int | None = Field(None, ge=1)
    before: StepPattern | None = None

    @field_validator("mode")
    @classmethod
    def _is_mode(cls, value: str) -> str:
        if value not in FAILURE_MODES:
            raise ValueError(f"{value} is no failure mode: {', '.join(FAILURE_MODES)}")
        return value

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        if sum(each is not None for each in (self.at_most, self.at_least, self.before)) > 1:
            raise ValueError("give one of at_most, at_least and before")
        return self

    def find(self, run: Trajectory) -> list[ModeFinding]:
        """Return the finding on a run, if there is one.

        It is exact where it follows from agents, tools and arguments, and heuristic where texts were searched. A step that
        was not read may be the one that is missing, and so may one that is still to come.
        """
        fitting = [step for step in run.steps if self.fits(step)]
        if self.before is not None:
            first = fitting[0].index if fitting else len(run.steps)
            return self._finding(
                step for step in run.steps if self.before.fits(step) and step.index <= first
            )
        if self.at_least is None:
            return self._finding(fitting[self.at_most or 0 :])
        if len(fitting) >= self.at_least or not run.finished or run.is_partial:
            return []
        return [self._mode()]

    def _finding(self, steps: Iterable[Step]) -> list[ModeFinding]:
        wrong = list(steps)[:_MOST_STEPS]
        quotes = dict.fromkeys(_words(step) for step in wrong)
        told = {"steps": tuple(step.index for step in wrong), "quotes": tuple(filter(None, quotes))}
        return [self._mode(**told)] if wrong else []

    def _mode(self, **more: Any) -> ModeFinding:
        searched = self.text or (self.before and self.before.text)
        evidence = Evidence.HEURISTIC if searched else Evidence.EXACT
        return ModeFinding(
            code=self.mode, probability=SURE, evidence=evidence, reason=self.says, **more
        )


def _named(pattern: str, name: str) -> bool:
    return not pattern or fnmatchcase(name.lower(), pattern.lower())


def _words(step: Step) -> str:
    """Return the words of a step that show what it does."""
    return (step.arguments if step.kind is StepKind.TOOL else step.text)[:_LONGEST_QUOTE]
