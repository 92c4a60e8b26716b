"""The results of a self-test in words, the same in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.document import DataTable, Heading, Part, Sentence
from mast_trace_lab.selftest.store import ALL, ENVIRONMENT, FEW, Measured, SelfTest

COLUMNS: Final = (
    "Planted faults of",
    "Mode found",
    "Step right, before fitting",
    "after",
    "Wrong step named, before",
    "after",
)
_RUNS: Final = frozenset({"accused", "survived"})
"""Measures of whole runs, which stand below the table."""
_NOT_MEASURED: Final = "not measured"


def share_text(share: Measured | None) -> str:
    """Return a share as people read it: hits of runs, and the interval; no percentage of a few runs."""
    if share is None or not share.runs or share.low is None or share.high is None:
        return _NOT_MEASURED
    counted = f"{share.hits} of {share.runs}"
    around = f"{100 * share.low:.0f} to {100 * share.high:.0f} %"
    if share.runs < FEW:
        return f"{counted} (too few: {around})"
    return f"{counted}, {100 * share.hits / share.runs:.0f} % ({around})"


def said_of(test: SelfTest) -> list[Part]:
    """Return the result of a self-test."""
    operators = f"{len(test.operators)} {'operator' if len(test.operators) == 1 else 'operators'}"
    named = f": {', '.join(test.operators)}" if test.operators else ""
    runs = f"{test.originals} different {'run' if test.originals == 1 else 'runs'}"
    measured = (
        f"{test.measured_at:%Y-%m-%d %H:%M} UTC, judge version {test.judge_version}. Counts, shares and 95 % intervals; "
        f"faults were planted in {runs}, by {operators}{named}."
    )
    service = test.service or "your program"
    return [
        Heading(f"The judge on {service}"),
        Sentence(measured, "muted"),
        DataTable(f"Self-test of {service}", COLUMNS, rows_of(test)),
        *map(Sentence, sentences_of(test)),
    ]


def rows_of(test: SelfTest) -> list[tuple[str, ...]]:
    """Return the rows of the table, those over all modes last; the first cell is the title."""
    seen = {each.mode for each in test.shares if each.measure not in _RUNS} - {ALL}
    modes = [*sorted(seen - {ENVIRONMENT}), *sorted(seen & {ENVIRONMENT}), ALL]
    return [(title_of(mode), *_cells(test, mode)) for mode in modes]


def title_of(mode: str) -> str:
    """Return the title of a row."""
    if mode == ENVIRONMENT:
        return "tools (nobody to blame)"
    if mode == ALL:
        return "all together"
    return f"{mode} {FAILURE_MODES[mode].name}" if mode in FAILURE_MODES else mode


def _cells(test: SelfTest, mode: str) -> tuple[str, ...]:
    found = "-" if mode == ENVIRONMENT else share_text(test.share("found", mode))
    return (
        found,
        share_text(test.share("step", mode, "before")),
        share_text(test.share("step", mode, "after")),
        share_text(test.share("named", mode, "before")),
        share_text(test.share("named", mode, "after")),
    )


def planted_steps(test: SelfTest) -> str:
    """Return the sentence on the steps of planted faults, which say nothing of natural failures."""
    return (
        f"Planted faults of {test.service}, judge {test.judge_version}: likeliest step right in "
        f"{share_text(test.share('step', ALL))}. They earn a model nothing."
    )


def sentences_of(test: SelfTest) -> list[str]:
    """Return what is said below the table: healthy runs, what was not measured, and what is too small."""
    before, after = test.share("accused", ALL), test.share("accused", ALL, "after")
    said = [
        (
            "Untouched healthy runs that are accused of a failure or a mode: "
            f"{share_text(before)} before fitting, {share_text(after)} after."
        )
    ]
    if before is not None and before.runs < FEW:
        said.append(
            f"Only {before.runs} healthy {'run differs' if before.runs == 1 else 'runs differ'} from each other; "
            "more come from --set tasks=FILE, or from more runs of a model that varies."
        )
    if (survived := test.share("survived", ALL)) is not None:
        said.append(
            "Faulty runs that succeeded and are said to have failed, outcome hidden: "
            f"{share_text(survived)} before fitting, {share_text(test.share('survived', ALL, 'after'))} after."
        )
    fitted, plain = test.share("step", ALL, "after"), test.share("step", ALL)
    if fitted is not None and fitted.note:
        said.append(f"After fitting no step was measured: {fitted.note}.")
    if any(0 < each.runs < FEW for each in test.shares if each.measure not in _RUNS):
        said.append(
            f"Rows with fewer than {FEW} faults say little: read their interval, or plant more with --count."
        )
    if fitted is not None and fitted.runs:
        said.append(
            "Each step after fitting comes from a fit that has seen neither the fault's operator nor its original run."
        )
        if plain is not None and (fitted.low or 0.0) <= (plain.high or 0.0):
            said.append(
                "This shows no gain from fitting: the interval after it does not lie above."
            )
    return said


def planted_sentences(verdicts: Mapping[str, int]) -> list[str]:
    """Return what became of the planted faults: those in no row of the table would be missed otherwise.

    Args:
        verdicts: number of decided faults by decision.
    """
    kept, survived = verdicts.get("kept", 0), verdicts.get("survived", 0)
    said = [
        f"{sum(verdicts.values())} faults: {kept} made the run fail, {survived} did not; the table counts these."
    ]
    if repaired := verdicts.get("repaired", 0):
        said.append(
            f"{repaired} more caused failures, but their agents recovered from the fault, and the runs failed by a later error; "
            "they are in no row."
        )
    if unproved := verdicts.get("unproved", 0):
        said.append(
            f"{unproved} more failed without proof that the fault is the cause, and are in no row."
        )
    if censored := verdicts.get("censored", 0):
        said.append(
            f"{censored} more had no outcome in most replays, and are in no row. Often the program called a tool with "
            "arguments that the record does not hold: --set live_tools=NAME with --set reset=COMMAND executes it."
        )
    return said
