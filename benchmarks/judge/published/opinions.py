"""Recorded answers of models, alone and joined with the local distribution over steps as verdicts join them.

An answer whose agent does not speak at its step contradicts itself: on recorded answers of two models such ones were
right in 4 to 10 % of runs, consistent ones in 36 to 40 %, so they are left out. Joined distributions are calibrated
on the folds that are not scored.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.assembly import pool
from mast_trace_judge.local.attribution.calibration import fit_calibration
from mast_trace_judge.study.bench.held_out import Distribution, HeldOut, predicted
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.datasets.labelled import same_agent

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.study.datasets.labelled import LabelledRun

_OBJECT = re.compile(r"\{[^{}]*\}")
_STEP_KEYS = ("step", "step_number", "mistake_step", "step_id")
_AGENT_KEYS = ("agent", "agent_name", "mistake_agent")
_ANSWERED = {"agentrx": "hand-crafted"}
"""Sets whose runs are those of another one, labelled by others."""
Answers = Mapping[tuple[str, str], "Opinion | None"]
"""A model's answers, by subset and name of the run."""


@dataclass(frozen=True)
class Opinion:
    """A model's answer about the step and the agent that decided a failure; ``ranking`` has further steps."""

    step: int | None
    agent: str = ""
    ranking: tuple[int, ...] = ()


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
    """Predict by the answers of each model that has read all runs, and by cross-validated profiles joined with them."""
    rows = {}
    for model, said in answers.items():
        if all((run.subset, run.name) in said for run in runs):
            rows[f"{model} alone"] = [[_said(run, said[run.subset, run.name])] for run in runs]
            rows[f"profile + {model}"] = _fused(runs, said, folds)
    return rows


def paired_rows(
    runs: Sequence[LabelledRun], answers: Mapping[str, Answers], folds: Sequence[HeldOut]
) -> list[list[str]]:
    """Compare first places of joined distributions with each opinion alone, run by run.

    Returns:
        A heading, and a row for each model: right ones of the profile, of the model and of both, and how many the
        joined ones give and take against each, as means over the partitions; steps, then agents.
    """
    rows = [
        [
            "model",
            "runs",
            "right",
            "profile",
            "model",
            "joined",
            "against the profile",
            "against the model",
        ]
    ]
    for model, said in answers.items():
        found: dict[str, list[tuple[bool, ...]]] = {"steps": [], "agents": []}
        read: set[int] = set()
        for fold in folds:
            for place, local in fold.own.items():
                run = runs[place]
                opinion = said.get((_ANSWERED.get(run.subset, run.subset), run.name))
                if run.step is None or opinion is None:
                    continue
                read.add(place)
                joined = join(run, local, opinion)
                firsts = [
                    max(each, key=lambda step: (each[step], -step)) for each in (local, joined)
                ]
                named = (firsts[0], opinion.step, firsts[1])
                found["steps"].append(tuple(step == run.step for step in named))
                found["agents"].append(tuple(_speaks(run, step) for step in named))
        share = len(read) / max(1, len(found["steps"]))
        for kind, tried in found.items():
            right = [f"{share * sum(each[i] for each in tried):.1f}" for i in range(3)]
            against = [
                f"+{share * sum(each[2] > each[i] for each in tried):.1f} "
                f"-{share * sum(each[2] < each[i] for each in tried):.1f}"
                for i in (0, 1)
            ]
            rows.append([model, str(len(read)), kind, *right, *against])
    return rows


def _speaks(run: LabelledRun, step: int | None) -> bool:
    steps = run.trajectory.steps
    return step is not None and 0 <= step < len(steps) and same_agent(run.agent, steps[step].agent)


def recorded_answers(data: Path) -> dict[str, dict[tuple[str, str], Opinion | None]]:
    """Read the recorded answers of models, by model and by subset and name of the run."""
    folder = data / "recorded-judge"
    answers: dict[str, dict[tuple[str, str], Opinion | None]] = defaultdict(dict)
    path = folder / "who-and-when-all-at-once.json"
    if path.is_file():
        records: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        for record in records:
            key = (str(record["split"]).lower(), str(record["file"]).removesuffix(".json"))
            answers[str(record["model"])][key] = read_opinion(str(record["response"]))
    path = folder / "whole-record-reader.jsonl"
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            said = record["answer"]
            opinion = Opinion(said["decisive"]["step"], ranking=tuple(said["ranking"]))
            answers["a strong reader of whole records"][record["subset"], record["name"]] = opinion
    return dict(answers)


def _said(run: LabelledRun, opinion: Opinion | None) -> Prediction:
    """Predict the recorded answer of a model, and the agent of its step where it names none; nothing for no answer."""
    if opinion is None or opinion.step is None:
        return Prediction((), opinion.agent if opinion else "")
    spoke = (each.agent for each in run.trajectory.steps if each.index == opinion.step)
    return Prediction((opinion.step,), opinion.agent or next(spoke, ""))


def _fused(
    runs: Sequence[LabelledRun], said: Answers, folds: Sequence[HeldOut]
) -> list[list[Prediction]]:
    """Predict by cross-validated profiles joined with answers, calibrated without the run."""

    def joined(place: int, local: Distribution) -> Distribution:
        run = runs[place]
        return join(run, local, said.get((run.subset, run.name)))

    found = []
    for fold in folds:
        samples = [(joined(place, local), runs[place].step) for place, local in fold.others.items()]
        calibration = fit_calibration(samples)
        found += [
            (place, calibration.apply(joined(place, local))) for place, local in fold.own.items()
        ]
    return predicted(runs, found)


def join(run: LabelledRun, local: Distribution, opinion: Opinion | None) -> Distribution:
    """Join as verdicts do; an answer that contradicts itself counts as none."""
    if opinion is None or contradicts_itself(run.trajectory, opinion):
        return local
    named = dict.fromkeys([opinion.step, *opinion.ranking])
    ranked = enumerate((step for step in named if step is not None), 1)
    return pool(local, {step: 1 / rank for rank, step in ranked})
