"""The features of a step from which a trained profile estimates the decisive one.

They are few and plain on purpose: structure and provenance carry over between runs of one system;
word counts are kept to a handful of classes. All are computed in one pass.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.acts import failed
from mast_trace_judge.local.attribution.cascade import (
    answerable,
    before_first_failure,
    introduces_answer,
    writes_surviving_code,
)
from mast_trace_judge.local.phrases import Phrases
from mast_trace_judge.local.texts import alike, code_blocks, numbers, words

if TYPE_CHECKING:
    from collections.abc import Sequence


FEATURES = (
    "first_actor",
    "log_position",
    "last_actor",
    "first_turn",
    "log_turn",
    "after_tool",
    "before_tool",
    "tool_fails_next",
    "before_first_failure",
    "introduces_answer",
    "surviving_code",
    "first_code",
    "log_numbers",
    "log_new_words",
    "relative_length",
    "conclusion_words",
    "verification_words",
    "trouble_words",
    "plan_words",
    "worker",
    "early_reply",
    "instructs",
    "repeats",
)
"""The names of the features, in the order of a profile's weights."""

_READ = 6000
"""Characters of a step that are read; bounds the cost of a step."""
_EARLY = 2.5
"""The reply of a worker, counted from 1, at which `early_reply` peaks."""
_REPEATS = 0.8
_TROUBLE = Phrases(
    r"\b(?:sorry|apolog|unfortunately|unable|cannot|can't|could not|couldn't|failed|error|not found"
    r"|no results|issue|problem|mistake|incorrect|wrong)",
    *("sorry", "apolog", "unfortunately", "unable", "can", "could", "failed", "error"),
    *("not found", "no results", "issue", "problem", "mistake", "incorrect", "wrong"),
)
_VERIFICATION = Phrases(
    r"\b(?:verif|confirm|check|validat|double-check|cross-check)",
    *("verif", "confirm", "check", "validat"),
)
_CONCLUSION = Phrases(
    r"\b(?:therefore|thus|in conclusion|final answer|conclude|the answer is|in summary)\b|\*\*",
    *("therefore", "thus", "in conclusion", "final answer", "conclude", "the answer is"),
    *("in summary", "**"),
)
_PLAN = Phrases(
    r"\b(?:plan|step 1|first,|let's|we need to|next)\b",
    *("plan", "step 1", "first,", "let's", "we need to", "next"),
)


def features(
    trajectory: Trajectory, actors: Sequence[int] | None = None
) -> tuple[list[int], list[list[float]]]:
    """Return the attributable steps, and the features of each.

    Args:
        trajectory: the run.
        actors: the attributable steps, if they are others than the `answerable` ones.
    """
    chosen = answerable(trajectory.steps) if actors is None else list(actors)
    return chosen, _Reader(trajectory, chosen).rows()


@dataclass
class _Reader:
    """Computes the features of a run from its first step to its last."""

    trajectory: Trajectory
    actors: Sequence[int]
    turns: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    replies: int = 0
    coded: bool = False
    previous: str = ""

    def rows(self) -> list[list[float]]:
        steps = self.trajectory.steps
        self.seen = words(self.trajectory.task)
        self.director = _director([steps[index] for index in self.actors])
        self.failure = before_first_failure(steps, self.actors)
        self.answer = introduces_answer(self.trajectory, self.actors)
        self.code = writes_surviving_code(steps)
        lengths = [math.log1p(len(steps[index].text)) for index in self.actors]
        mean = sum(lengths) / max(1, len(lengths))
        spread = math.sqrt(sum((x - mean) ** 2 for x in lengths) / max(1, len(lengths))) or 1.0
        return [
            self._row(place, index, (lengths[place] - mean) / spread)
            for place, index in enumerate(self.actors)
        ]

    def _row(self, place: int, index: int, relative_length: float) -> list[float]:
        steps = self.trajectory.steps
        step = steps[index]
        text = step.text[:_READ]
        self.turns[step.agent] += 1
        turn = self.turns[step.agent]
        worker = bool(self.director) and step.agent != self.director
        self.replies += worker
        following = steps[index + 1] if index + 1 < len(steps) else None
        before_tool = following is not None and following.kind is StepKind.TOOL
        code = bool(code_blocks(step.text))
        first_code, self.coded = code and not self.coded, self.coded or code
        said = words(text)
        new = len(said - self.seen)
        self.seen |= said
        repeats = bool(self.previous) and alike(self.previous, step.text, _REPEATS)
        self.previous = step.text
        return [
            float(place == 0),
            math.log1p(place),
            float(place == len(self.actors) - 1),
            float(turn == 1),
            math.log(turn),
            float(index > 0 and steps[index - 1].kind is StepKind.TOOL),
            float(before_tool),
            float(following is not None and before_tool and failed(following)),
            float(index == self.failure),
            float(index == self.answer),
            float(index == self.code),
            float(first_code),
            math.log1p(len(numbers(text))),
            math.log1p(new),
            relative_length,
            _count(_CONCLUSION, step.text[-_READ // 2 :]),
            _count(_VERIFICATION, text),
            _count(_TROUBLE, text),
            _count(_PLAN, text[: _READ // 2]),
            float(worker),
            math.exp(-abs(math.log(self.replies / _EARLY))) if worker else 0.0,
            float(bool(step.recipients)),
            float(repeats),
        ]


def _director(steps: Sequence[Step]) -> str:
    """Return the agent that instructs the others; empty if no agent addresses another."""
    addressed = Counter(step.agent for step in steps if step.recipients)
    return addressed.most_common(1)[0][0] if addressed else ""


def _count(pattern: Phrases, text: str) -> float:
    """Return the frequency of a class of words, from 0 to 1 at three occurrences."""
    return pattern.count(text, 3) / 3
