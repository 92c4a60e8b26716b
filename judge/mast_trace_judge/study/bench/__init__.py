"""Scores the judge on labelled runs, beside the baselines that any judge has to beat."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.study.agreement import Agreement, StepAgreement, agreement, step_agreement
from mast_trace_judge.study.bench import held_out, methods
from mast_trace_judge.study.bench.notes import NOTES
from mast_trace_judge.study.bench.scoring import Score, score
from mast_trace_judge.study.datasets.agentrx import read_agentrx
from mast_trace_judge.study.datasets.mast import read_mast_v0, read_mathchat
from mast_trace_judge.study.datasets.who_and_when import SUBSETS, read_who_and_when
from mast_trace_judge.study.training import FEWEST_LABELS, REPEATS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from mast_trace_judge.study.bench.scoring import Prediction
    from mast_trace_judge.study.datasets.labelled import LabelledRun

LAYERS = ("rules", "local", "recorded")
"""What can be measured without a model: rules, attribution, and recorded answers of models."""
SHOWN_FROM = 0.5
"""A finding counts as the rules' yes from this probability on."""
_RULES = "rules"
_PEOPLE = "people"


@dataclass(frozen=True)
class OutcomeRates:
    """In how many right and wrong runs of known outcome the rules find a mode."""

    code: str
    in_wrong: float
    in_right: float


@dataclass(frozen=True)
class Report:
    """What a benchmark found.

    Attributes:
        scores: of every method on every subset, baselines first.
        ceilings: how two teams of people agree on the same runs, by subset.
        modes: how rules and recorded models agree with people on failure modes.
        outcomes: how often rules fire in right and in wrong runs.
        outcome_runs: the number of wrong and of right ones.
        milliseconds: median per run, by layer; it depends on the machine.
        notes: what a reader has to know.
    """

    scores: tuple[Score, ...] = ()
    ceilings: Mapping[str, StepAgreement] = field(default_factory=dict)
    modes: tuple[Agreement, ...] = ()
    outcomes: tuple[OutcomeRates, ...] = ()
    outcome_runs: tuple[int, int] = (0, 0)
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def run_bench(
    data: Path,
    layers: Collection[str] = LAYERS,
    judges: Mapping[str, Callable[[LabelledRun], Prediction]] | None = None,
    repeats: int = REPEATS,
) -> Report:
    """Score the layers on every set of labelled runs that the folder holds.

    Args:
        data: the folder.
        layers: some of `LAYERS`.
        judges: further methods by name, such as a judge on a language model.
        repeats: partitions into folds over which cross-validated figures are averaged.

    Raises:
        ConfigurationError: a layer is unknown, or the folder holds none of the sets.
    """
    unknown = set(layers) - set(LAYERS)
    if unknown:
        raise ConfigurationError(f"unknown layers {sorted(unknown)}; there are {list(LAYERS)}")
    attributed = _attributed_runs(data)
    labelled = read_mast_v0(data) if (data / "mast-v0").is_dir() else []
    solved = read_mathchat(data) if (data / "ag2-mathchat").is_dir() else []
    if not attributed and not labelled:
        raise ConfigurationError(f"no labelled runs in {data}")
    scores = [
        found
        for subset, runs in attributed.items()
        for found in _scores(subset, runs, data, layers, judges or {}, repeats)
    ]
    rules = "rules" in layers
    rates, counts = _outcome_rates(solved) if rules and solved else ((), (0, 0))
    return Report(
        scores=tuple(scores),
        ceilings=_ceilings(attributed),
        modes=tuple(_mode_agreement(labelled)) if rules and labelled else (),
        outcomes=rates,
        outcome_runs=counts,
        milliseconds=_milliseconds([run for runs in attributed.values() for run in runs]),
        notes=NOTES,
    )


def _attributed_runs(data: Path) -> dict[str, list[LabelledRun]]:
    runs = {subset: read_who_and_when(data, subset) for subset in SUBSETS}
    if runs["hand-crafted"] and (data / "agentrx").is_dir():
        runs["agentrx"] = read_agentrx(data)
    return {subset: found for subset, found in runs.items() if found}


def _scores(
    subset: str,
    runs: Sequence[LabelledRun],
    data: Path,
    layers: Collection[str],
    judges: Mapping[str, Callable[[LabelledRun], Prediction]],
    repeats: int,
) -> list[Score]:
    rows = {
        "random step": methods.random_step(runs),
        "always step 0": methods.fixed_step(runs, 0),
        "always step 1": methods.fixed_step(runs, 1),
        "most frequent step, cross-validated": methods.best_fixed_step(runs),
    }
    local = {"local", "recorded"} & set(layers)
    folds = held_out.held_out(runs, repeats) if local and len(runs) >= FEWEST_LABELS else []
    if "local" in layers:
        rows["cascade, untrained"] = methods.untrained(runs)
        if folds:
            rows["profile, cross-validated"] = held_out.trained(runs, folds)
        rows[f"as shipped, in-sample ({methods.profile_of(runs) or 'no profile'})"] = (
            methods.shipped(runs)
        )
    if "recorded" in layers and subset in SUBSETS and folds:
        rows |= _with_answers(runs, methods.recorded_answers(data), folds)
    for name, judge in judges.items():
        rows[name] = [[judge(run)] for run in runs]
    return [score(method, subset, runs, predictions) for method, predictions in rows.items()]


def _with_answers(
    runs: Sequence[LabelledRun],
    answers: Mapping[str, held_out.Answers],
    folds: Sequence[held_out.HeldOut],
) -> dict[str, list[list[Prediction]]]:
    rows = {}
    for model, said in answers.items():
        rows[f"{model} alone"] = methods.model_alone(runs, said)
        rows[f"{model}, profile where it contradicts itself"] = held_out.gated(runs, said, folds)
        rows[f"profile + {model}"] = held_out.fused(runs, held_out.by_opinion(said), folds)
    if len(answers) > 1:
        both, all_said = " + ".join(["profile", *answers]), list(answers.values())
        rows[both] = held_out.fused(runs, held_out.by_opinion(*all_said), folds)
        joins = held_out.by_counterfactual(*all_said)
        rows[f"{both}, as counterfactuals"] = held_out.fused(runs, joins, folds)
    return rows


def _ceilings(attributed: Mapping[str, Sequence[LabelledRun]]) -> dict[str, StepAgreement]:
    """Compare the two teams that labelled the hand-crafted runs."""
    first = {run.name: run for run in attributed.get("hand-crafted", ())}
    pairs = [
        ((first[run.name].step, first[run.name].agent), (run.step, run.agent))
        for run in attributed.get("agentrx", ())
        if run.name in first
    ]
    labels = [
        ((a[0], a[1]), (b[0], b[1])) for a, b in pairs if a[0] is not None and b[0] is not None
    ]
    if not labels:
        return {}
    return {
        "hand-crafted, Who&When and AgentRx": step_agreement(
            [(int(a[0]), a[1]) for a, _ in labels], [(int(b[0]), b[1]) for _, b in labels]
        )
    }


def _mode_agreement(runs: Sequence[LabelledRun]) -> list[Agreement]:
    """Compare people with the rules and with the recorded models, mode by mode."""
    ratings: dict[str, dict[str, Mapping[str, bool]]] = {_PEOPLE: {}, _RULES: {}}
    for run in runs:
        name = f"{run.subset}/{run.name}"
        found = {m.code for m in find_modes(run.trajectory) if m.probability >= SHOWN_FROM}
        ratings[_PEOPLE][name] = run.modes
        ratings[_RULES][name] = {code: code in found for code in run.modes}
        for rater, answers in run.raters.items():
            ratings.setdefault(rater, {})[name] = answers
    return [found for found in agreement(ratings) if _PEOPLE in found.raters]


def _outcome_rates(
    runs: Sequence[LabelledRun],
) -> tuple[tuple[OutcomeRates, ...], tuple[int, int]]:
    """Say how often each mode is found in right and wrong runs; the outcome is kept from the rules."""
    fired: dict[bool, list[set[str]]] = {True: [], False: []}
    for run in runs:
        found = {m.code for m in find_modes(run.trajectory) if m.probability >= SHOWN_FROM}
        fired[bool(run.success)].append(found)
    right, wrong = fired[True], fired[False]
    codes = sorted(set().union(*right, *wrong))
    rates = tuple(
        OutcomeRates(
            code,
            sum(code in found for found in wrong) / max(1, len(wrong)),
            sum(code in found for found in right) / max(1, len(right)),
        )
        for code in codes
    )
    return rates, (len(wrong), len(right))


def _milliseconds(runs: Sequence[LabelledRun]) -> dict[str, float]:
    """Measure the local layers, run by run."""
    rules, attribution = [], []
    for run in runs:
        begin = time.perf_counter()
        modes = find_modes(run.trajectory)
        middle = time.perf_counter()
        attribute(run.trajectory, modes)
        attribution.append(1000 * (time.perf_counter() - middle))
        rules.append(1000 * (middle - begin))
    if not runs:
        return {}
    return {"rules": median(rules), "attribution": median(attribution)}
