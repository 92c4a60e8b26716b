"""Measures the gain of a profile that `judge fit` would fit to the labels of a store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.cascade import weigh
from mast_trace_judge.local.attribution.mode_votes import votes
from mast_trace_judge.local.attribution.profile import Profile, run_hash, shipped_profiles
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.study.agreement import Interval
from mast_trace_judge.study.labelled import LabelledRun, labelled_runs, named_steps
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_judge.study.training import (
    FEWEST_LABELS,
    constant_hits,
    cross_validate,
    divisions,
    in_groups,
    to_example,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.labels import HumanLabel
    from mast_trace_judge.study.logit import LogitExample
    from mast_trace_judge.verdict import ModeFinding

MOST_READ = 100
"""Largest number of labelled runs on which the gain is measured; reading thousands takes too long."""
_REPEATS = 3
_RESAMPLES = 2000
_TAIL = 0.025

COMMAND: Final = "mast-trace judge fit --name own"
LABEL: Final = "mast-trace label RUN --step N"
ELSEWHERE: Final = (
    "On two sets of other people's runs the likeliest step was right in 42 % with a profile and in 26 % without "
    "one (70 labels), and in 23 % and 24 % (37 labels)."
)
"""From benchmarks/judge/report.md: cross-validated profiles beside the untrained cascade."""


@dataclass(frozen=True)
class FitGain:
    """Step accuracy of the judge with a fitted profile and without: likeliest step against label.

    Attributes:
        runs: number of runs on which it was measured.
        shipped: share of the runs in which the judge as it ships names the labelled step.
        fitted: share in which it does with a profile fitted to the labels of other runs.
        difference: bootstrap interval of ``fitted`` - ``shipped``, over groups of runs (95 %).
        folded_by: unit of the folds of cross-validation: ``task`` or ``run``.
        constant: share in which one step that is always named is the labelled one, the best of other folds.
    """

    runs: int
    shipped: float
    fitted: float
    difference: Interval
    folded_by: str
    constant: float

    @property
    def helps(self) -> bool:
        """True if the gain can be told from chance, and naming one step always is worse."""
        return self.difference.low > 0 and self.fitted > self.constant


@dataclass(frozen=True)
class FitOffer:
    """Number of labels of decisive steps in a store, and the gain of a profile fitted to them.

    Attributes:
        labels: number of runs whose decisive step people named.
        missing: number of further labels that a profile needs.
        gain: the measured gain; None if it could not be measured.
        why_unknown: reason why it could not, though there are enough labels.
        learned: number of the labelled runs read that the user's own profiles were fitted to.
    """

    labels: int
    missing: int
    gain: FitGain | None = None
    why_unknown: str = ""
    learned: int = 0


def fit_offer(
    store: Store, labels: Sequence[HumanLabel], profiles: Sequence[Profile] = ()
) -> FitOffer:
    """Count the labels, and measure the gain of a profile fitted to them; takes seconds.

    Args:
        store: the store of the labelled runs.
        labels: people's labels.
        profiles: the user's own profiles.

    Raises:
        StorageError: the database does not answer.
    """
    named = named_steps(labels)
    missing = max(0, FEWEST_LABELS - len(named))
    if missing:
        return FitOffer(len(named), missing)
    runs = labelled_runs(store, named, most=MOST_READ)
    known = {each for profile in profiles for each in profile.runs}
    learned = sum(run_hash(run.trajectory) in known for run in runs) if known else 0
    try:
        gain = measured_gain(runs)
    except ConfigurationError as error:
        return FitOffer(len(named), 0, why_unknown=str(error), learned=learned)
    few = "" if gain else "too few of the runs failed and were in no shipped profile's training"
    return FitOffer(len(named), 0, gain, few, learned)


def measured_gain(labelled: Sequence[LabelledRun]) -> FitGain | None:
    """Measure the gain by cross-validation; None where fewer than `FEWEST_LABELS` runs are left.

    Runs that a shipped profile was trained on are left out, because its figures on them are in sample.
    Runs that succeeded are left out, because the judge looks for no decisive step in them.

    Raises:
        ConfigurationError: numpy or scipy is not installed.
    """
    known = {each for profile in shipped_profiles() for each in profile.runs}
    usable = [
        (run, example)
        for run in labelled
        if run.trajectory.outcome != "success"
        and run_hash(run.trajectory) not in known
        and (example := to_example(run)) is not None
    ]
    if len(usable) < FEWEST_LABELS:
        return None
    runs = [run for run, _ in usable]
    examples, folded_by = in_groups([example for _, example in usable])
    partitions = [cross_validate(examples, repeat) for repeat in range(_REPEATS)]
    shipped, fitted = [], []
    for i, (run, example) in enumerate(zip(runs, examples, strict=True)):
        modes = find_modes(run.trajectory)
        first = attribute(run.trajectory, modes).candidates[:1]
        shipped.append(float(any(candidate.step == run.step for candidate in first)))
        fitted.append(fmean(_is_right(run, modes, example, each[i]) for each in partitions))
    gains = [new - old for new, old in zip(fitted, shipped, strict=True)]
    groups = [example.group for example in examples]
    around = _interval(gains, groups)
    constant = fmean(
        fmean(constant_hits(examples, divisions(examples, repeat)).values())
        for repeat in range(_REPEATS)
    )
    return FitGain(len(runs), fmean(shipped), fmean(fitted), around, folded_by, constant)


def _is_right(
    run: LabelledRun,
    modes: Sequence[ModeFinding],
    example: LogitExample,
    probabilities: Sequence[float],
) -> bool:
    """Return whether the judge would name the labelled step, from its findings' votes and a profile."""
    mass = dict(zip(example.steps, probabilities, strict=True))
    joined, _ = weigh(mass, {}, votes(modes, run.trajectory, mass))
    return max(joined, key=lambda step: (joined[step], -step)) == run.step


def _interval(gains: Sequence[float], groups: Sequence[str]) -> Interval:
    """Return the bootstrap percentile interval of the mean gain, with groups of runs resampled."""
    np = numpy_module()
    by_group: dict[str, list[float]] = defaultdict(list)
    for gain, group in zip(gains, groups, strict=True):
        by_group[group].append(gain)
    sums = np.array([sum(each) for each in by_group.values()])
    sizes = np.array([len(each) for each in by_group.values()])
    # NumPy guarantees the numbers of this legacy generator, so equal labels give equal intervals.
    drawn = np.random.RandomState(0).randint(0, len(sums), size=(_RESAMPLES, len(sums)))
    means = np.sort(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    last = _RESAMPLES - 1
    return Interval(float(means[round(_TAIL * last)]), float(means[round((1 - _TAIL) * last)]))


def fit_words(offer: FitOffer) -> Iterator[str]:
    """Yield sentences on what labels are worth to the judge: what was measured, and what is missing."""
    if offer.missing:
        yield (
            f"{_runs(offer.labels)} a label with a decisive step; with {offer.missing} more the judge can "
            "learn from them which step decides your failures."
        )
        yield f"{ELSEWHERE} What it is worth on your runs is measured from the tenth label on."
        return
    yield f"{_runs(offer.labels)} a label with a decisive step: enough for a profile of your own."
    if offer.gain is None:
        yield f"Its worth on your runs could not be measured: {offer.why_unknown}."
        yield ELSEWHERE
    else:
        yield from _measured(offer.gain, offer.labels)
    if offer.learned:
        yield f"A profile of yours was fitted to {offer.learned} of them."


def _measured(gain: FitGain, labels: int) -> Iterator[str]:
    low, high = gain.difference.low, gain.difference.high
    kept = "of other tasks" if gain.folded_by == "task" else "of other runs of nearly the same task"
    yield (
        f"Measured on {gain.runs} of these runs: the likeliest step is the labelled one in "
        f"{_percent(gain.fitted)} with a profile fitted to labels {kept}, in {_percent(gain.shipped)} as the judge "
        f"ships ({_points(gain.fitted - gain.shipped)} points, 95 %: {_points(low)} to {_points(high)}), in "
        f"{_percent(gain.constant)} where always the same step is named."
    )
    if gain.runs < labels:
        yield (
            f"Not used for that: runs that succeeded or were in a shipped profile's training, and all beyond "
            f"{MOST_READ}."
        )
    if not gain.helps:
        worse = (
            "It would do harm"
            if high < 0
            else "That cannot be told from chance"
            if low <= 0
            else "That is no more than one step, always named"
        )
        yield f"{worse}: give more labels before you use one."


def _runs(count: int) -> str:
    return f"{count:,} run has" if count == 1 else f"{count:,} runs have"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.0f}"
