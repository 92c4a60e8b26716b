"""A detector of planted steps: can a step be told from natural ones by its looks, whatever the fault?

Natural counterparts of a planted step are the steps at the same place, of the same agent and kind, in other faulty
runs of the same original: recorded ones before their fault, answers of the model anew after it. A detector is trained
on the pairs of all other operators. Where it recognises the steps of an operator that it has not seen, they carry a
mark of their making (a replay's missing tokens or ids, a phrasing), and the operator is uncertain.

Features of words that recognise a single operator by its phrases, and no other failure.

An operator plants one of a few phrases, so a class of words may point at its step in every run. A fit would take that
for knowledge of failures. Such a feature is refused, and named with the operator.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from mast_trace.trajectory import Step, StepKind
from mast_trace_judge.local.texts import numbers, words
from mast_trace_judge.study.logit import LogitExample, Stack, minimise
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_lab.fit.labels import INJECTION, Label
from mast_trace_lab.fit.models import PLAIN, Mass, Recipe, cells, held_out

WORDS: Final = (
    "conclusion_words",
    "verification_words",
    "trouble_words",
    "plan_words",
    "log_new_words",
    "relative_length",
)
"""Features that see an agent's wording and length."""
_ONE_ALONE: Final = 0.8
"""Share of all gains from which one operator has them alone."""
_NOTICED: Final = 0.01
"""Mean gain, in units of log probability, below which a feature makes no difference."""

MOST_AUC: Final = 0.6
"""The area under the curve above which an operator is uncertain."""
FEWEST_PAIRS: Final = 5
"""Planted steps with natural counterparts below which nothing is said of an operator."""
_RIDGE: Final = 0.3
_READ: Final = 6000


@dataclass(frozen=True)
class Fingerprint:
    """A refused feature.

    Attributes:
        feature: its name.
        operator: the operator that it recognises.
        gain: mean gain of the log probability of that operator's steps by the feature.
        elsewhere: mean gain over all other operators.
    """

    feature: str
    operator: str
    gain: float
    elsewhere: float


def fingerprints(
    labels: Sequence[Label],
    units: Sequence[str],
    recipe: Recipe,
    advance: Callable[[], None] = lambda: None,
) -> list[Fingerprint]:
    """Return the features of words whose gain comes from one operator alone.

    Each feature is left out of a cross-validated fit in turn. With fewer than three operators nothing can be
    compared, and nothing is refused.

    Args:
        labels: the labelled runs.
        units: the unit of each that no fold divides.
        recipe: of the training, with all features.
        advance: called after each cell.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    planted = [i for i, label in enumerate(labels) if label.source == INJECTION]
    own = [labels[i] for i in planted]
    if len({label.operator for label in own}) < 3:
        return []
    found = cells(own, [units[i] for i in planted], PLAIN, recipe.seed)
    if not found:
        return []
    with_all = held_out(own, found, recipe, advance=advance)
    result = []
    for feature in WORDS:
        if feature not in recipe.names:
            continue
        fewer = replace(recipe, names=tuple(each for each in recipe.names if each != feature))
        without = held_out(own, found, fewer, advance=advance)
        told = _fingerprint(feature, own, with_all, without)
        if told is not None:
            result.append(told)
    return result


def _fingerprint(
    feature: str, labels: Sequence[Label], more: dict[int, Mass], fewer: dict[int, Mass]
) -> Fingerprint | None:
    by_operator: dict[str, list[float]] = defaultdict(list)
    for place in more.keys() & fewer.keys():
        label = labels[place]
        if label.example.gold is not None and label.run.step is not None:
            step = label.run.step
            gain = _log(more[place][step]) - _log(fewer[place][step])
            by_operator[label.operator].append(gain)
    gains = {operator: fmean(each) for operator, each in by_operator.items()}
    if len(gains) < 3:
        return None
    first = max(gains, key=lambda operator: (gains[operator], operator))
    others = [gain for operator, gain in gains.items() if operator != first]
    rises = sum(gain for gain in gains.values() if gain > 0)
    alone = gains[first] >= _ONE_ALONE * rises or fmean(others) <= 0 < gains[first] - _NOTICED
    if gains[first] < _NOTICED or not alone:
        return None
    return Fingerprint(feature, first, round(gains[first], 3), round(fmean(others), 3))


def _log(probability: float) -> float:
    return math.log(max(probability, 1e-9))


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


def _example(steps: Sequence[Step]) -> LogitExample:
    rows: Any = numpy_module().array([looks(step) for step in steps])
    return LogitExample(rows, tuple(range(len(steps))), ("",) * len(steps), 0, (), "")
