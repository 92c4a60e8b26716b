"""Measures the judge on planted faults of a system: found modes, right steps, accused healthy runs.

Everything is counted on runs whose operator no fit has seen: the judge as it is was never fitted to them, and
the fitted one is asked about an operator only after it has learned from the others.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.study.agreement import wilson
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.verdict import SHOWN_FROM, Verdict
from mast_trace_lab.fit.fit_on import fit_on
from mast_trace_lab.selftest.store import ALL, ENVIRONMENT, Measure, Measured, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.store.injections import Injection

LABELLED: Final = frozenset({"kept", "survived"})
"""Decisions after which a faulty run surely holds its fault."""


@dataclass(frozen=True)
class JudgeOpinion:
    """An answer of the judge on one run.

    Attributes:
        modes: codes of the failure modes that it shows.
        first: the likeliest step; None if it gives none.
        named: the step that it calls decisive; None if it names none.
        failed: whether it says that the run failed.
    """

    modes: frozenset[str]
    first: int | None
    named: int | None
    failed: bool

    @property
    def accuses(self) -> bool:
        """True if something is wrong with the run by this answer."""
        return bool(self.modes) or self.named is not None or self.failed


@dataclass(frozen=True)
class Fitted:
    """The answers after fitting.

    Attributes:
        opinions: on faulty runs, by id of the fault; each from a fit without its operator and original run.
        profile: fitted to all of them, for healthy runs; None if there is none.
        note: the reason why there are no answers; empty otherwise.
    """

    opinions: Mapping[str, JudgeOpinion]
    profile: Profile | None
    note: str


def opinion_of(verdict: Verdict) -> JudgeOpinion:
    """Return the answer that a verdict gives."""
    first = verdict.decisive or next(iter(verdict.candidates), None)
    return JudgeOpinion(
        modes=frozenset(each.code for each in verdict.modes if each.probability >= SHOWN_FROM),
        first=first.step if first else None,
        named=verdict.decisive.step if verdict.decisive else None,
        failed=verdict.outcome == "failure",
    )


def without_outcome(run: Trajectory) -> Trajectory:
    """Return a run that does not tell how it ended, so that the judge has to find out."""
    return dataclasses.replace(run, outcome="", outcome_reason="", expected="")


def fitted_opinion(run: Trajectory, profile: Profile) -> JudgeOpinion:
    """Return the answer of the local layers with a profile, outcome unknown.

    A profile changes the steps; outcome and modes are found by rules.
    """
    local = judge_by_rules(without_outcome(run), (profile,))
    named = local.attribution.decisive if local.names_a_step else None
    candidates = local.attribution.candidates
    return JudgeOpinion(
        modes=frozenset(each.code for each in local.modes if each.probability >= SHOWN_FROM),
        first=candidates[0].step if candidates else None,
        named=named.step if named else None,
        failed=local.outcome.outcome == "failure",
    )


def labelled_run(each: Injection) -> LabelledRun:
    """Return a kept fault as a labelled run.

    Raises:
        ValueError: its run was not recorded.
    """
    if each.run is None:
        raise ValueError(f"fault {each.fault_id} has no run")
    return LabelledRun(
        subset="injection",
        name=each.fault_id,
        trajectory=each.run,
        group=each.original,
        step=each.step,
        agent=each.agent if each.mode else "",
        modes={each.mode: True} if each.mode else {},
        success=False,
        extra={"operator": each.operator, "decisive": each.decisive},
    )


def fitted(
    faults: Sequence[Injection],
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> Fitted:
    """Fit to the kept faults, with operator and original run of each held out together.

    Args:
        faults: of one system.
        progress: called with a stage's name, steps done, and steps in all.
    """
    kept = [each for each in faults if each.verdict == "kept" and each.run is not None]
    try:
        report = fit_on([labelled_run(each) for each in kept], name="selftest", progress=progress)
    except ConfigurationError as error:
        return Fitted({}, None, str(error))
    known = {
        each.name: JudgeOpinion(
            modes=frozenset(each.modes_found),
            first=each.after,
            named=each.after if each.after_named else None,
            failed=True,
        )
        for each in report.held_out
        if each.after is not None
    }
    if not known:
        return Fitted(
            {},
            report.profile,
            "no fault could be held out: that takes faults of several operators in several different runs",
        )
    return Fitted(known, report.profile, "")


def measured(
    faults: Sequence[Injection],
    healthy: Sequence[Trajectory],
    before: Mapping[str, JudgeOpinion],
    accused: Sequence[JudgeOpinion],
    after: Fitted,
    blind: Mapping[str, JudgeOpinion],
) -> tuple[Measured, ...]:
    """Return the shares of a self-test, by mode and over all.

    Args:
        faults: the decided faults.
        healthy: untouched runs that succeeded, no two alike.
        before: answers of the judge as it is, by id of the fault.
        accused: its answers on the healthy runs.
        after: the answers after fitting.
        blind: answers of the judge as it is on runs that succeeded with their fault and do not tell their outcome,
            by id of the fault.
    """
    shares: list[Measured] = []
    planted = [each for each in faults if each.verdict in LABELLED and each.fault_id in before]
    with_mode = [each for each in planted if each.mode]
    shares += _by_mode(
        "found", "before", with_mode, lambda each: each.mode in before[each.fault_id].modes
    )
    decisive = [each for each in planted if each.verdict == "kept" and each.decisive]
    stages: tuple[tuple[Stage, Mapping[str, JudgeOpinion]], ...] = (
        ("before", before),
        ("after", after.opinions),
    )
    for stage, told in stages:
        known = [each for each in decisive if each.fault_id in told]
        if stage == "after" and not known:
            note = after.note or "no decisive step could be held out"
            shares += [Measured("step", stage, ALL, 0, 0, note=note)]
            continue
        shares += _by_mode("step", stage, known, _right(told))
        shares += _by_mode("named", stage, known, _wrongly_named(told))
    shares.append(_share("accused", "before", ALL, sum(e.accuses for e in accused), len(accused)))
    if after.profile is None:
        shares.append(Measured("accused", "after", ALL, 0, 0, note=after.note))
    else:
        profile = after.profile
        again = sum(fitted_opinion(run, profile).accuses for run in healthy)
        shares.append(_share("accused", "after", ALL, again, len(healthy)))
    return (*shares, *_survived(survivors_of(faults), blind, after))


def survivors_of(faults: Iterable[Injection]) -> dict[str, Trajectory]:
    """Return the runs that succeeded with their fault, by its id, without their outcome.

    They are negatives for the failure: the judge should not say that they failed.
    """
    return {
        each.fault_id: without_outcome(each.run)
        for each in faults
        if each.verdict == "survived" and each.run is not None
    }


def _survived(
    runs: Mapping[str, Trajectory], blind: Mapping[str, JudgeOpinion], after: Fitted
) -> tuple[Measured, Measured]:
    """Return the shares of the runs that succeeded with their fault and are said to have failed."""
    known = [each for each in runs if each in blind]
    before = _share("survived", "before", ALL, sum(blind[e].failed for e in known), len(known))
    if after.profile is None:
        return before, Measured("survived", "after", ALL, 0, 0, note=after.note)
    # Nothing need be held out: no fit changes which runs are said to have failed.
    profile = after.profile
    again = sum(fitted_opinion(runs[each], profile).failed for each in known)
    return before, _share("survived", "after", ALL, again, len(known))


def _right(told: Mapping[str, JudgeOpinion]) -> Callable[[Injection], bool]:
    return lambda each: told[each.fault_id].first == each.step


def _wrongly_named(told: Mapping[str, JudgeOpinion]) -> Callable[[Injection], bool]:
    return lambda each: told[each.fault_id].named not in {None, each.step}


def _by_mode(
    measure: Measure, stage: Stage, faults: Iterable[Injection], hit: Callable[[Injection], bool]
) -> list[Measured]:
    counts: dict[str, list[bool]] = defaultdict(list)
    for each in faults:
        is_hit = hit(each)
        counts[each.mode or ENVIRONMENT].append(is_hit)
        counts[ALL].append(is_hit)
    if not counts:
        return [_share(measure, stage, ALL, 0, 0)]
    return [
        _share(measure, stage, mode, sum(hits), len(hits)) for mode, hits in sorted(counts.items())
    ]


def _share(measure: Measure, stage: Stage, mode: str, hits: int, runs: int) -> Measured:
    if not runs:
        return Measured(measure, stage, mode, 0, 0, note="there were no such runs")
    interval = wilson(hits, runs)
    return Measured(measure, stage, mode, hits, runs, interval.low, interval.high)
