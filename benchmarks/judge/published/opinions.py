"""Recorded answers of models, alone and joined with the local distribution over steps.

Log-linear: each opinion multiplies the odds of the step that it names, of that step's neighbours,
and of the steps of the agent that it names. An opinion whose agent does not speak at its step
contradicts itself; on recorded answers of two models such opinions were right in 4 to 10 % of runs,
consistent ones in 36 to 40 %, so they count by weights of their own. Joined distributions are calibrated
on the folds that are not scored.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.layer_fusion import pool
from mast_trace_judge.local.attribution.calibration import fit_calibration
from mast_trace_judge.study.bench.held_out import Distribution, HeldOut, predicted, trained
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.datasets.labelled import same_agent

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.study.datasets.labelled import LabelledRun

_OBJECT = re.compile(r"\{[^{}]*\}")
_STEP_KEYS = ("step", "step_number", "mistake_step", "step_id")
_AGENT_KEYS = ("agent", "agent_name", "mistake_agent")
_LEAST = 1e-6
"""Probability that a step keeps at least, so that a model can still name it."""
Answers = Mapping[tuple[str, str], "Opinion | None"]
"""A model's answers, by subset and name of the run."""
Joins = Callable[["LabelledRun", Distribution], Distribution]
"""Changes a run's distribution by models' answers."""
_FLIP = 0.8
"""Weight of a counterfactual that stands for a recorded answer, which names a step outright."""


@dataclass(frozen=True)
class Opinion:
    """A model's answer about the step and the agent that decided a failure."""

    step: int | None
    agent: str = ""


@dataclass(frozen=True)
class FusionWeights:
    """Exponents of e by which opinions change a step's odds; ``local`` scales the local ones."""

    local: float = 0.85
    step: float = 1.0
    neighbour: float = 0.2
    agent: float = 0.4
    contradicted_step: float = 0.0
    contradicted_agent: float = 0.25


def read_opinion(text: str) -> Opinion | None:
    """Read an answer that should be a JSON object; the last object with a step counts.

    Text around it, fences and a step given as text are accepted; anything else is None, which
    means unscored and never an opinion.
    """
    for found in reversed(_OBJECT.findall(text)):
        answer = loaded(found)
        if answer is None:
            continue
        step = _integer(next((answer[key] for key in _STEP_KEYS if key in answer), None))
        agent = next((answer[key] for key in _AGENT_KEYS if key in answer), "")
        if step is not None or (isinstance(agent, str) and agent):
            return Opinion(step, agent if isinstance(agent, str) else "")
    return None


def contradicts_itself(trajectory: Trajectory, opinion: Opinion) -> bool:
    """Return whether the named agent does not speak at the named step, or there is no such step."""
    if opinion.step is None:
        return False
    if not 0 <= opinion.step < len(trajectory.steps):
        return True
    speaker = trajectory.steps[opinion.step].agent
    return bool(opinion.agent) and not same_agent(opinion.agent, speaker)


def evidence(
    trajectory: Trajectory, probabilities: Mapping[int, float], opinions: Iterable[Opinion]
) -> dict[int, FusionWeights]:
    """Return for each step the factors of the weights, field by field."""
    said = [(opinion, contradicts_itself(trajectory, opinion)) for opinion in opinions]
    rows = {}
    for step, probability in probabilities.items():
        agent = trajectory.steps[step].agent
        sound = [opinion for opinion, contradicted in said if not contradicted]
        unsound = [opinion for opinion, contradicted in said if contradicted]
        rows[step] = FusionWeights(
            local=math.log(max(probability, _LEAST)),
            step=sum(opinion.step == step for opinion in sound),
            neighbour=sum(
                opinion.step is not None and 1 <= abs(opinion.step - step) <= 2 for opinion in sound
            ),
            agent=sum(same_agent(opinion.agent, agent) for opinion in sound),
            contradicted_step=sum(opinion.step == step for opinion in unsound),
            contradicted_agent=sum(same_agent(opinion.agent, agent) for opinion in unsound),
        )
    return rows


def fuse(
    trajectory: Trajectory,
    probabilities: Mapping[int, float],
    opinions: Iterable[Opinion],
    weights: FusionWeights | None = None,
) -> dict[int, float]:
    """Return the probabilities of the steps after the opinions were joined."""
    factors = vars(weights or FusionWeights())
    scores = {
        step: sum(factors[name] * value for name, value in vars(row).items())
        for step, row in evidence(trajectory, probabilities, opinions).items()
    }
    highest = max(scores.values(), default=0.0)
    powers = {step: math.exp(score - highest) for step, score in scores.items()}
    total = sum(powers.values())
    return {step: power / total for step, power in powers.items()}


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and (found := re.search(r"\d+", value)):
        return int(found[0])
    return None


def predictions(
    runs: Sequence[LabelledRun], answers: Mapping[str, Answers], folds: Sequence[HeldOut]
) -> dict[str, list[list[Prediction]]]:
    """Predict by each model's answers, and by what joins them with cross-validated profiles."""
    rows = {}
    for model, said in answers.items():
        rows[f"{model} alone"] = [[_said(said.get((run.subset, run.name)))] for run in runs]
        rows[f"{model}, profile where it contradicts itself"] = _gated(runs, said, folds)
        rows[f"profile + {model}"] = _fused(runs, by_opinion(said), folds)
    if len(answers) > 1:
        both, all_said = " + ".join(["profile", *answers]), list(answers.values())
        rows[both] = _fused(runs, by_opinion(*all_said), folds)
        joins = by_counterfactual(*all_said)
        rows[f"{both}, as counterfactuals"] = _fused(runs, joins, folds)
    return rows


def recorded_answers(data: Path) -> dict[str, dict[tuple[str, str], Opinion | None]]:
    """Read the recorded answers of models, by model and by subset and name of the run."""
    path = data / "recorded-judge" / "who-and-when-all-at-once.json"
    answers: dict[str, dict[tuple[str, str], Opinion | None]] = defaultdict(dict)
    if path.is_file():
        records: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        for record in records:
            key = (str(record["split"]).lower(), str(record["file"]).removesuffix(".json"))
            answers[str(record["model"])][key] = read_opinion(str(record["response"]))
    return dict(answers)


def _said(opinion: Opinion | None) -> Prediction:
    """Predict the recorded answer of a model; nothing where it could not be read."""
    if opinion is None:
        return Prediction((), "")
    return Prediction(() if opinion.step is None else (opinion.step,), opinion.agent)


def _gated(
    runs: Sequence[LabelledRun], answers: Answers, folds: Sequence[HeldOut]
) -> list[list[Prediction]]:
    """Predict a model's answer unless it contradicts itself, else the local judge's."""
    result = []
    for run, local in zip(runs, trained(runs, folds), strict=True):
        opinion = answers.get((run.subset, run.name))
        sound = opinion is not None and not contradicts_itself(run.trajectory, opinion)
        result.append([_said(opinion)] if sound else local)
    return result


def _fused(
    runs: Sequence[LabelledRun], joins: Joins, folds: Sequence[HeldOut]
) -> list[list[Prediction]]:
    """Predict by cross-validated profiles joined with answers, calibrated without the run."""
    found = []
    for fold in folds:
        calibration = fit_calibration(_samples(runs, joins, fold.others))
        found += [
            (place, calibration.apply(joins(runs[place], local)))
            for place, local in fold.own.items()
        ]
    return predicted(runs, found)


def fusions(
    runs: Sequence[LabelledRun], joins: Joins, folds: Sequence[HeldOut]
) -> list[tuple[Distribution, int | None]]:
    """Return each run's joined distributions, not calibrated, with its decisive step."""
    return [sample for fold in folds for sample in _samples(runs, joins, fold.own)]


def by_opinion(*answers: Answers) -> Joins:
    """Join as `opinions` does, where a model names step and agent outright."""
    return lambda run, local: fuse(run.trajectory, local, _opinions(run, answers))


def by_counterfactual(*answers: Answers) -> Joins:
    """Join as verdicts do, with a counterfactual for each step that a sound answer names."""

    def join(run: LabelledRun, local: Distribution) -> Distribution:
        named = {
            opinion.step: _FLIP
            for opinion in _opinions(run, answers)
            if opinion.step is not None and not contradicts_itself(run.trajectory, opinion)
        }
        return pool(local, named)

    return join


def _opinions(run: LabelledRun, answers: Sequence[Answers]) -> list[Opinion]:
    key = (run.subset, run.name)
    return [opinion for each in answers if (opinion := each.get(key)) is not None]


def _samples(
    runs: Sequence[LabelledRun], joins: Joins, found: Mapping[int, Distribution]
) -> list[tuple[Distribution, int | None]]:
    return [(joins(runs[place], local), runs[place].step) for place, local in found.items()]
