"""Scores the judge on labelled runs, beside baselines that any judge has to beat."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.planted import left_out_words
from mast_trace_judge.study.agreement import Agreement, StepAgreement, agreement, step_agreement
from mast_trace_judge.study.bench import held_out, methods
from mast_trace_judge.study.bench.held_out import places_seen, scores_by_sample
from mast_trace_judge.study.bench.notes import notes_on
from mast_trace_judge.study.bench.planted import (
    RuleRecall,
    left_out_of,
    planted_runs,
    rule_recall,
)
from mast_trace_judge.study.bench.scoring import Score, score
from mast_trace_judge.study.datasets.agentrx import read_agentrx
from mast_trace_judge.study.datasets.mast import read_ag2_coding, read_mast_v0, read_mathchat
from mast_trace_judge.study.datasets.who_and_when import SUBSETS, read_who_and_when
from mast_trace_judge.study.healthy import HealthyRates, accused, healthy_runs
from mast_trace_judge.study.training import FEWEST_LABELS, REPEATS
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.bench.scoring import Prediction
    from mast_trace_judge.study.datasets.labelled import LabelledRun

LAYERS = ("rules", "local", "recorded")
"""The layers that can be measured without a model: rules, attribution, and recorded answers."""
_RULES = "rules"
_TOLD = "rules, outcome told"
_PEOPLE = "people"


@dataclass(frozen=True)
class OutcomeRates:
    """Number of right and wrong runs of known outcome in which the rules find a mode."""

    code: str
    in_wrong: float
    in_right: float


@dataclass(frozen=True)
class Report:
    """The results of a benchmark.

    Attributes:
        scores: of every method on every subset, baselines first.
        in_sample: number of runs of a subset that a shipped profile was trained on, by subset.
        ceilings: the agreement of two teams of people on the same runs, by subset.
        modes: the agreement of rules and recorded models with people on failure modes.
        outcomes: number of right and wrong runs with a finding.
        outcome_runs: the number of wrong and of right ones.
        healthy: number of healthy runs that are accused, outcome withheld, by set and shape.
        planted: planted faults that the rules find, by failure mode.
        left_out: number of labels that were left out because their operator is uncertain, by operator.
        milliseconds: median processor time per run, by layer; it depends on the machine.
        notes: remarks for the reader.
    """

    scores: tuple[Score, ...] = ()
    in_sample: Mapping[str, int] = field(default_factory=dict)
    ceilings: Mapping[str, StepAgreement] = field(default_factory=dict)
    modes: tuple[Agreement, ...] = ()
    outcomes: tuple[OutcomeRates, ...] = ()
    outcome_runs: tuple[int, int] = (0, 0)
    healthy: tuple[HealthyRates, ...] = ()
    planted: tuple[RuleRecall, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def run_bench(
    data: Path,
    layers: Collection[str] = LAYERS,
    judges: Mapping[str, Callable[[LabelledRun], Prediction]] | None = None,
    repeats: int = REPEATS,
    profiles: Sequence[Profile] = (),
    *,
    uncertain: bool = False,
) -> Report:
    """Score the layers on every set of labelled runs that the folder holds, or that it is.

    Published sets are in folders of their own; a set of `mast-trace dataset build` is a folder itself.

    Args:
        data: the folder.
        layers: some of `LAYERS`.
        judges: further methods by name, such as a judge on a language model.
        repeats: partitions into folds over which cross-validated figures are averaged.
        profiles: the user's own; they are scored beside the shipped ones, and the further methods use them.
        uncertain: whether planted faults of uncertain operators are scored as well.

    Raises:
        ConfigurationError: a layer is unknown, or the folder holds none of the sets.
    """
    unknown = set(layers) - set(LAYERS)
    if unknown:
        raise ConfigurationError(f"unknown layers {sorted(unknown)}; there are {list(LAYERS)}")
    attributed = attributed_runs(data, uncertain=uncertain)
    left_out = {} if uncertain else left_out_of(data)
    labelled = read_mast_v0(data) if (data / "mast-v0").is_dir() else []
    labelled += read_ag2_coding(data) if (data / "ag2-coding").is_dir() else []
    solved = read_mathchat(data) if (data / "ag2-mathchat").is_dir() else []
    if not attributed and not labelled:
        told = left_out_words(left_out)
        raise ConfigurationError(f"no labelled runs in {data}" + (f": {told}" if told else ""))
    scores = [
        found
        for subset, runs in attributed.items()
        for found in (
            *_scores(subset, runs, data, layers, repeats, profiles),
            *_scores_of_judges(runs, judges or {}, profiles),
        )
    ]
    seen = {subset: len(places_seen(runs)) for subset, runs in attributed.items()}
    rules = "rules" in layers
    rates, counts = _outcome_rates(solved) if rules and solved else ((), (0, 0))
    return Report(
        scores=tuple(scores),
        in_sample=seen,
        ceilings=_ceilings(attributed),
        modes=tuple(_mode_agreement(labelled)) if rules and labelled else (),
        outcomes=rates,
        outcome_runs=counts,
        healthy=tuple(accused(healthy_runs(data))) if rules else (),
        planted=tuple(rule_recall(data, uncertain=uncertain)) if rules else (),
        left_out=dict(left_out),
        milliseconds=_milliseconds([run for runs in attributed.values() for run in runs]),
        notes=(
            *notes_on(any_seen=any(seen.values())),
            *filter(None, (left_out_words(left_out),)),
        ),
    )


def attributed_runs(data: Path, *, uncertain: bool = False) -> dict[str, list[LabelledRun]]:
    """Read the runs of a folder whose decisive step is known, by set.

    Args:
        data: the folder.
        uncertain: whether planted faults of uncertain operators are read as well.

    Raises:
        ConfigurationError: a set of `mast-trace dataset build` is of another version, or cannot be read.
        ValueError: a file of a published set is no labelled run.
    """
    runs = {subset: read_who_and_when(data, subset) for subset in SUBSETS}
    if runs["hand-crafted"] and (data / "agentrx").is_dir():
        runs["agentrx"] = read_agentrx(data)
    runs.update(planted_runs(data, uncertain=uncertain))
    return {subset: found for subset, found in runs.items() if found}


def _scores(
    subset: str,
    runs: Sequence[LabelledRun],
    data: Path,
    layers: Collection[str],
    repeats: int,
    profiles: Sequence[Profile],
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
    answered = {}
    if "recorded" in layers and subset in SUBSETS and folds:
        answered = _with_answers(runs, methods.recorded_answers(data), folds)
    found = [score(method, subset, runs, given) for method, given in rows.items()]
    if "local" in layers:
        shipped = methods.shipped(runs)
        named = methods.profile_of
        found += scores_by_sample("as shipped", runs, shipped, places_seen(runs), of=named)
    if "local" in layers and profiles:
        own, seen = methods.with_profiles(runs, profiles), places_seen(runs, profiles)
        found += scores_by_sample("with profiles of your own", runs, own, seen)
    return found + [score(method, subset, runs, given) for method, given in answered.items()]


def _scores_of_judges(
    runs: Sequence[LabelledRun],
    judges: Mapping[str, Callable[[LabelledRun], Prediction]],
    profiles: Sequence[Profile],
) -> list[Score]:
    seen = places_seen(runs, profiles)
    given = {name: [[judge(run)] for run in runs] for name, judge in judges.items()}
    return [
        each for name, said in given.items() for each in scores_by_sample(name, runs, said, seen)
    ]


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
    """Compare people with the rules and with the recorded models, mode by mode.

    The rules judge each run twice: without its outcome, and with it where it is known.
    """
    ratings: dict[str, dict[str, Mapping[str, bool]]] = {_PEOPLE: {}, _RULES: {}, _TOLD: {}}
    for run in runs:
        name = f"{run.subset}/{run.name}"
        found = {m.code for m in find_modes(run.trajectory) if m.probability >= SHOWN_FROM}
        ratings[_PEOPLE][name] = run.modes
        ratings[_RULES][name] = {code: code in found for code in run.modes}
        if run.success is not None:
            outcome = "success" if run.success else "failure"
            told = find_modes(replace(run.trajectory, outcome=outcome))
            found = {m.code for m in told if m.probability >= SHOWN_FROM}
            ratings[_TOLD][name] = {code: code in found for code in run.modes}
        for annotator, answers in run.annotators.items():
            ratings.setdefault(annotator, {})[name] = answers
    return [found for found in agreement(ratings) if _PEOPLE in found.annotators]


def _outcome_rates(
    runs: Sequence[LabelledRun],
) -> tuple[tuple[OutcomeRates, ...], tuple[int, int]]:
    """Count each mode in right and wrong runs; the outcome is kept from the rules."""
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
    """Measure the processor time of the local layers, run by run."""
    rules, attribution = [], []
    for run in runs:
        begin = time.process_time()
        modes = find_modes(run.trajectory)
        middle = time.process_time()
        attribute(run.trajectory, modes)
        attribution.append(1000 * (time.process_time() - middle))
        rules.append(1000 * (middle - begin))
    if not runs:
        return {}
    return {"rules": median(rules), "attribution": median(attribution)}
