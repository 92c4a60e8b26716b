"""A detector of planted steps: can a step be told from natural ones by its looks, whatever the fault?

Natural counterparts of a planted step are the steps at the same place, of the same agent and kind, in other faulty
runs of the same original: recorded ones before their fault, answers of the model anew after it. A detector is trained
on the pairs of all other operators. Where it recognises the steps of an operator that it has not seen, they carry a
mark of their making (a replay's missing tokens or ids, a phrasing), and the operator is uncertain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.texts import numbers, words
from mast_trace_judge.study.logit import Example, Stack, minimise
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_lab.fit.labels import INJECTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step
    from mast_trace_lab.fit.labels import Label

MOST_AUC: Final = 0.6
"""The area under the curve above which an operator is uncertain."""
FEWEST_PAIRS: Final = 5
"""Planted steps with natural counterparts below which nothing is said of an operator."""
_RIDGE: Final = 0.3
_READ: Final = 6000


@dataclass(frozen=True)
class Detected:
    """The result for one operator.

    Attributes:
        operator: its name.
        pairs: planted steps with natural counterparts.
        auc: chance that a planted step looks more planted than a natural one; None if not examined.
    """

    operator: str
    pairs: int
    auc: float | None

    @property
    def uncertain(self) -> bool:
        """True if the operator's steps can be told from natural ones."""
        return self.auc is not None and self.auc > MOST_AUC


def detect(labels: Sequence[Label]) -> list[Detected]:
    """Examine each operator with a detector that has not seen it.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    pairs = _pairs([label for label in labels if label.source == INJECTION])
    found = []
    for operator, own in sorted(pairs.items()):
        others = [each for other, all_of in pairs.items() if other != operator for each in all_of]
        known = len(own) >= FEWEST_PAIRS and len(others) >= FEWEST_PAIRS
        found.append(Detected(operator, len(own), _auc(own, others) if known else None))
    return found


def looks(step: Step) -> list[float]:
    """Return the looks of a step: measures of its record and its writing, none of its meaning."""
    text = step.text[:_READ]
    letters = sum(c.isalpha() for c in text)
    figures = len(numbers(text))
    seconds = max(0, step.end - step.start) / 1e9
    return [
        float(step.input_tokens == 0),
        float(step.output_tokens == 0),
        float(not step.message_id),
        float(not step.call_id),
        float(not step.span_id),
        math.log1p(1000 * seconds),
        math.log1p(len(step.text)),
        math.log1p(len(words(text))),
        letters / max(1, len(text)),
        math.log1p(figures),
        float(text.rstrip().endswith((".", "!"))),
        float("\n" in text),
        float(step.error is not None),
        math.log1p(len(step.arguments)),
    ]


def _pairs(labels: Sequence[Label]) -> dict[str, list[list[Step]]]:
    """Return for each operator the planted steps, each followed by its natural counterparts."""
    by_origin: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_origin[label.origin].append(label)
    found: dict[str, list[list[Step]]] = defaultdict(list)
    for label in labels:
        planted = _step_at(label, label.run.step)
        if planted is None:
            continue
        natural = [
            step
            for other in by_origin[label.origin]
            if other.run.step != label.run.step
            and (step := _step_at(other, label.run.step)) is not None
            and (step.agent, _is_tool(step)) == (planted.agent, _is_tool(planted))
        ]
        found[label.operator] += [[planted, *natural]] if natural else []
    return dict(found)


def _step_at(label: Label, index: int | None) -> Step | None:
    steps = label.run.trajectory.steps
    return None if index is None or index >= len(steps) else steps[index]


def _is_tool(step: Step) -> bool:
    return step.kind is StepKind.TOOL


def _auc(own: Sequence[Sequence[Step]], others: Sequence[Sequence[Step]]) -> float:
    """Train on the other operators' pairs, and return the area under the curve on the operator's own."""
    np = numpy_module()
    stack = Stack.of([_example(each) for each in others])
    weights = minimise(stack, _RIDGE, 0.0) / stack.scale
    wins = []
    for planted, *natural in own:
        score = np.array(looks(planted)) @ weights
        against = [np.array(looks(step)) @ weights for step in natural]
        wins.append(
            sum(
                1.0 if score > s + 1e-9 else 0.5 if abs(score - s) <= 1e-9 else 0.0 for s in against
            )
            / len(against)
        )
    return float(sum(wins) / len(wins))


def _example(steps: Sequence[Step]) -> Example:
    rows: Any = numpy_module().array([looks(step) for step in steps])
    return Example(rows, tuple(range(len(steps))), ("",) * len(steps), 0, (), "")
