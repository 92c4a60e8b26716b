"""Methods of the benchmark: trivial baselines, the local layers, and recorded answers of models.

Joins a language model's opinion on the decisive step with the local distribution over steps.

Log-linear: each opinion multiplies the odds of the step that it names, of that step's neighbours,
and of the steps of the agent that it names. An opinion whose agent does not speak at its step
contradicts itself; on recorded answers of two models such opinions were right in 4 to 10 % of runs,
consistent ones in 36 to 40 %, so they count by weights of their own.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.attribution import UNTRAINED, attribute, summarise
from mast_trace_judge.local.attribution.cascade import cascade
from mast_trace_judge.local.attribution.profile import choose_profile
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.study.bench.scoring import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.datasets.labelled import LabelledRun

_OBJECT = re.compile(r"\{[^{}]*\}")
_SUFFIX = re.compile(r"\s*\(.*\)\s*$")
_STEP_KEYS = ("step", "step_number", "mistake_step", "step_id")
_AGENT_KEYS = ("agent", "agent_name", "mistake_agent")
_LEAST = 1e-6
"""Probability that a step keeps at least, so that a model can still name it."""


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
    return bool(opinion.agent) and plain(opinion.agent) != plain(speaker)


def evidence(
    trajectory: Trajectory, probabilities: Mapping[int, float], opinions: Iterable[Opinion]
) -> dict[int, FusionWeights]:
    """Return for each step the factors of the weights, field by field."""
    said = [(opinion, contradicts_itself(trajectory, opinion)) for opinion in opinions]
    rows = {}
    for step, probability in probabilities.items():
        agent = plain(trajectory.steps[step].agent)
        sound = [opinion for opinion, contradicted in said if not contradicted]
        unsound = [opinion for opinion, contradicted in said if contradicted]
        rows[step] = FusionWeights(
            local=math.log(max(probability, _LEAST)),
            step=sum(opinion.step == step for opinion in sound),
            neighbour=sum(
                opinion.step is not None and 1 <= abs(opinion.step - step) <= 2 for opinion in sound
            ),
            agent=sum(plain(opinion.agent) == agent for opinion in sound),
            contradicted_step=sum(opinion.step == step for opinion in unsound),
            contradicted_agent=sum(plain(opinion.agent) == agent for opinion in unsound),
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


def plain(name: str) -> str:
    """Return an agent's name in lower case, without a suffix in brackets."""
    return _SUFFIX.sub("", name).strip().lower()


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and (found := re.search(r"\d+", value)):
        return int(found[0])
    return None


def random_step(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict every step alike; scored as an expectation, not drawn."""
    result = []
    for run in runs:
        steps = run.trajectory.steps
        chance = min(1.0, 3 / len(steps)) if steps else 0.0
        result.append([Prediction((step.index,), step.agent, top_3=chance) for step in steps])
    return result


def fixed_step(runs: Sequence[LabelledRun], place: int) -> list[list[Prediction]]:
    """Predict the same step in every run, or the last where a run is shorter."""
    return [[_at(run, place)] for run in runs]


def best_fixed_step(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict the steps that are labelled most often in the runs of all other questions."""
    result = []
    for run in runs:
        seen = Counter(other.step for other in runs if other.group != run.group)
        places = [place for place, _ in seen.most_common(3) if place is not None]
        predictions = _at(run, places[0] if places else 0)
        last = len(run.trajectory.steps) - 1
        steps = tuple(dict.fromkeys(min(place, last) for place in places))
        result.append([Prediction(steps or predictions.steps, predictions.agent)])
    return result


def untrained(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict by the cascade alone, without findings and profiles."""
    return [[predict(run, *cascade(run.trajectory), name="cascade")] for run in runs]


def shipped(runs: Sequence[LabelledRun]) -> list[list[Prediction]]:
    """Predict as the product does: rules, and a shipped profile where one applies to the run."""
    return with_profiles(runs, ())


def with_profiles(
    runs: Sequence[LabelledRun], profiles: Sequence[Profile]
) -> list[list[Prediction]]:
    """Predict by rules, and by the first profile that applies to the run, the user's own before the shipped ones."""
    result = []
    for run in runs:
        found = attribute(run.trajectory, find_modes(run.trajectory), profiles)
        best = found.candidates[0] if found.candidates else None
        result.append(
            [
                Prediction(
                    tuple(candidate.step for candidate in found.candidates),
                    best.agent if best else "",
                    best.probability if best else None,
                )
            ]
        )
    return result


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


def model_alone(
    runs: Sequence[LabelledRun], answers: Mapping[tuple[str, str], Opinion | None]
) -> list[list[Prediction]]:
    """Predict the recorded answer of a model."""
    return [[said(answers.get((run.subset, run.name)))] for run in runs]


def profile_of(runs: Sequence[LabelledRun]) -> str:
    """Return the names of the shipped profiles, or the cascade, that apply to these runs, with counts."""
    chosen = (choose_profile(run.trajectory) for run in runs)
    counts = Counter(profile.name if profile else UNTRAINED for profile in chosen)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def predict(
    run: LabelledRun,
    probabilities: Mapping[int, float],
    reasons: Mapping[int, str],
    *,
    name: str,
) -> Prediction:
    """Predict the likeliest steps of a distribution, and the first one's agent."""
    found = summarise(run.trajectory, probabilities, reasons, profile=name)
    if not found.candidates:
        return Prediction((), "")
    best = found.candidates[0]
    steps = tuple(candidate.step for candidate in found.candidates)
    return Prediction(steps, best.agent, best.probability)


def said(opinion: Opinion | None) -> Prediction:
    """Predict the recorded answer of a model; nothing where it could not be read."""
    if opinion is None:
        return Prediction((), "")
    return Prediction(() if opinion.step is None else (opinion.step,), opinion.agent)


def _at(run: LabelledRun, place: int) -> Prediction:
    steps = run.trajectory.steps
    if not steps:
        return Prediction((), "")
    step = steps[min(place, len(steps) - 1)]
    return Prediction((step.index,), step.agent)
