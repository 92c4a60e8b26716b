"""Recorded answers of models, alone and joined with the local distribution over steps as verdicts join them.

A model's agent is the one that it names, else the one that acts at its step; the joined agent acts at the joined step.
Joined distributions are calibrated on the folds that are not scored.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.assembly import joined
from mast_trace_judge.llm.verification import ModelReading, Suggestion
from mast_trace_judge.local.attribution import summarise
from mast_trace_judge.local.attribution.calibration import fit_calibration, ranked
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.study.bench.methods import Distribution, HeldOut, predicted
from mast_trace_judge.study.bench.scoring import Prediction
from mast_trace_judge.study.labelled import same_agent

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_judge.study.labelled import LabelledRun

_OBJECT = re.compile(r"\{[^{}]*\}")
_STEP_KEYS = ("step", "step_number", "mistake_step", "step_id")
_AGENT_KEYS = ("agent", "agent_name", "mistake_agent")
_ANSWERED = {"agentrx": "hand-crafted"}
"""Sets whose runs are those of another one, labelled by others."""
Answers = Mapping[tuple[str, str], "Opinion | None"]
"""A model's answers, by subset and name of the run."""
_RULES: dict[tuple[str, str], LocalFindings] = {}
"""The findings of rules in a failed run, by subset and name."""


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
    heading = "model, runs, right, profile, model, joined, against the profile, against the model"
    rows = [heading.split(", ")]
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
                first, last = (ranked(each)[0] for each in (local, join(run, local, opinion)))
                blamed = same_agent(run.agent, _said(run, opinion).agent)
                found["steps"].append(
                    tuple(each == run.step for each in (first, opinion.step, last))
                )
                found["agents"].append((_speaks(run, first), blamed, _speaks(run, last)))
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


def _speaks(run: LabelledRun, step: int) -> bool:
    return same_agent(run.agent, run.trajectory.steps[step].agent)


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

    def both(place: int, local: Distribution) -> Distribution:
        run = runs[place]
        return join(run, local, said.get((run.subset, run.name)))

    found = []
    for fold in folds:
        samples = [(both(place, local), runs[place].step) for place, local in fold.others.items()]
        calibration = fit_calibration(samples)
        found += [
            (place, calibration.apply(both(place, local))) for place, local in fold.own.items()
        ]
    return predicted(runs, found)


def join(run: LabelledRun, local: Distribution, opinion: Opinion | None) -> Distribution:
    """Join as verdicts of failed runs do."""
    if opinion is None:
        return local
    named = dict.fromkeys([opinion.step, *opinion.ranking])
    suggestions = tuple(Suggestion(step, "") for step in named if step is not None)
    trajectory = replace(run.trajectory, outcome="failure")
    key = run.subset, run.name
    if key not in _RULES:
        _RULES[key] = judge_by_rules(trajectory)
    found = replace(_RULES[key], attribution=summarise(trajectory, local, {}, profile=""))
    reading = ModelReading("failure", 1.0, suggestions)
    return dict(joined(trajectory, found, reading, failed=True).probabilities)
