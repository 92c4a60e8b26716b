"""Comparison of the rates of new runs with those of a baseline: worse, not worse, or undecided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.gate.fisher import Counts, corrected, could_fail, smallest, worse
from mast_trace_judge.gate.sizes import new_runs_needed, noticed_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Compared = Literal["all", "failures", "modes"]
Status = Literal["not worse", "worse", "undecided"]
Finding = Literal["worse", "not worse", "too few", "not compared"]

FAILURES: Final = "failures"
"""Key of the failure rate; other measures have the code of their failure mode."""


@dataclass(frozen=True)
class Side:
    """The runs of one side, in counts.

    Attributes:
        runs: all of them.
        states: of these the number in each state; only those that are ``judged`` have a verdict on their
            present content.
        known: runs whose outcome is known.
        failures: of these those that failed.
        examined: runs that were examined for a failure mode, by code.
        shown: of these those that show it.
        other_judge: judged runs whose verdict is of another version of the judge, and counts in no rate.
        examples: ids of some runs of a measure, by key.
    """

    runs: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    known: int = 0
    failures: int = 0
    examined: Mapping[str, int] = field(default_factory=dict)
    shown: Mapping[str, int] = field(default_factory=dict)
    other_judge: int = 0
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Runs with a verdict on their present content, of the judge's version that is compared."""
        return self.states.get("judged", 0) - self.other_judge


@dataclass(frozen=True)
class Measure:
    """One rate on both sides.

    Attributes:
        key: `FAILURES`, or the code of a failure mode.
        counts: on both sides.
        p: probability of so high a rate without a change; None where nothing could be compared.
        corrected: likewise, corrected for the number of rates; None where no result could have been worse.
        finding: what it shows.
        noticed: about the share from which a rise would have been noticed in four of five cases.
        needed: about the number of new runs that notice a rise by ``rise``; None if none does beside this
            baseline.
        examples: ids of new runs that show it.
    """

    key: str
    counts: Counts
    p: float | None
    corrected: float | None
    finding: Finding
    noticed: float | None = None
    needed: int | None = None
    examples: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name for people."""
        return (
            "failed runs" if self.key == FAILURES else f"{self.key} {FAILURE_MODES[self.key].name}"
        )


@dataclass(frozen=True)
class Comparison:
    """The result.

    Attributes:
        status: ``undecided`` where nothing could have been found worse.
        reasons: why it is worse or undecided.
        measures: the failure rate first, then failure modes by code.
        old: the baseline.
        new: the new runs.
        level: probability of calling any unchanged rate worse, at most.
        rise: the rise of a share that ``needed`` is about.
    """

    status: Status
    reasons: tuple[str, ...]
    measures: tuple[Measure, ...]
    old: Side
    new: Side
    level: float
    rise: float


def compare(
    old: Side,
    new: Side,
    *,
    compared: Compared = "all",
    modes: Sequence[str] = (),
    level: float = 0.05,
    rise: float = 0.1,
) -> Comparison:
    """Compare new runs with a baseline by exact tests.

    Args:
        old: the baseline.
        new: the new runs.
        compared: the rates: of failures, of failure modes, or both.
        modes: codes of the failure modes; all without any.
        level: probability of calling any unchanged rate worse, at most.
        rise: the rise of a share, from 0 to 1, for which the needed number of runs is said.
    """
    tests = dict(_tests(old, new, compared, modes or tuple(FAILURE_MODES)))
    able = corrected(tests, level)
    family = sum(smallest(counts) <= level for counts in tests.values()) or 1
    measures = tuple(
        _measure(key, counts, able[key], level=level, share=level / family, rise=rise, new=new)
        for key, counts in tests.items()
    )
    bad = [each for each in measures if each.finding == "worse"]
    if bad:
        status: Status = "worse"
        reasons = tuple(f"the share of {each.name} is higher" for each in bad)
    else:
        reasons = tuple(_undecided(old, new, measures, compared))
        status = "undecided" if reasons else "not worse"
    return Comparison(status, reasons, measures, old, new, level, rise)


def _tests(
    old: Side, new: Side, compared: Compared, modes: Sequence[str]
) -> Iterator[tuple[str, Counts]]:
    if compared != "modes":
        yield FAILURES, Counts(old.failures, old.known, new.failures, new.known)
    if compared != "failures":
        for code in FAILURE_MODES:
            if code in modes:
                yield (
                    code,
                    Counts(
                        old.shown.get(code, 0),
                        old.examined.get(code, 0),
                        new.shown.get(code, 0),
                        new.examined.get(code, 0),
                    ),
                )


def _measure(
    key: str, counts: Counts, adjusted: float, *, level: float, share: float, rise: float, new: Side
) -> Measure:
    """Return one rate with its finding.

    Args:
        key: of the measure.
        counts: on both sides.
        adjusted: its corrected probability.
        level: of the comparison.
        share: the part of the level that one test has at least.
        rise: see `compare`.
        new: the new runs.
    """
    if not counts.of_old or not counts.of_new:
        return Measure(key, counts, None, None, "not compared")
    before = counts.old / counts.of_old
    needed = new_runs_needed(before, min(1.0, before + rise), share, counts.of_old)
    noticed = noticed_from(before, share, counts.of_old, counts.of_new)
    able = could_fail(counts, share)
    finding: Finding = "worse" if adjusted <= level else "not worse" if able else "too few"
    return Measure(
        key,
        counts,
        worse(counts),
        adjusted if able or adjusted < 1 else None,
        finding,
        noticed,
        needed,
        tuple(new.examples.get(key, ())) if finding == "worse" else (),
    )


def _undecided(
    old: Side, new: Side, measures: Sequence[Measure], compared: Compared
) -> Iterator[str]:
    """Yield the reasons for which this comparison could not have found anything worse."""
    if not new.runs:
        yield "there are no new runs"
        return
    if not new.judged:
        yield f"none of the {new.runs:,} new runs was judged" + _other_judge(new)
        return
    if not old.runs:
        yield "the baseline has no runs"
        return
    failures = next((each for each in measures if each.key == FAILURES), None)
    if failures is not None and failures.finding == "not compared":
        side = "new runs" if not new.known else "runs of the baseline"
        yield f"no outcome is known of the {side}, so that failures cannot be compared"
    elif failures is not None and failures.finding == "too few":
        yield "even if every new run had failed, so few runs would not show a rise of failures"
    if compared == "modes" and not any(each.finding == "not worse" for each in measures):
        yield "no failure mode was examined in enough runs of both sides"


def _other_judge(side: Side) -> str:
    if not side.other_judge:
        return ""
    return f" by the version of the judge that judged the others ({side.other_judge:,} were by another)"
