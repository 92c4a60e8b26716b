"""Patterns in words, the same in the terminal, in the web view and for assistants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SURE: Final = 0.05
_TEXT: Final = 160
_REASON: Final = 300


def title(row: Mapping[str, Any]) -> str:
    """Return a pattern's place in a few words: failure mode, agent or edge, tool."""
    mode = FAILURE_MODES.get(row["Code"])
    what = f"{row['Code']} {mode.name}" if mode else "Decisive error without a failure mode"
    agent = row["Agent"] or "unknown agent"
    where = f"{agent} to {row['Peer']}" if row["Peer"] else agent
    return f"{what}: {where}, tool {row['Tool']}" if row["Tool"] else f"{what}: {where}"


def named(row: Mapping[str, Any]) -> str:
    """Return a model's sentence on a pattern, with the model; empty without one."""
    if row["Sentence"]:
        return f"{row['Sentence']} (named by {row['NamedBy']})"
    return ""


def nameless(row: Mapping[str, Any]) -> str:
    """Return why a pattern that a model was asked about has no sentence; empty for all others."""
    if row["Sentence"] or not row["NamedBy"]:
        return ""
    when = f", {row['NamedAt']:%Y-%m-%d %H:%M} UTC" if row["NamedAt"] else ""
    return (
        f"No name: {row['NamedBy']} gave no sentence that holds; its answer could not be read, rested on no quote "
        f"of the runs, or said more than they do{when}"
    )


def naming_problems(
    problems: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return why patterns among some are not named, where a model's last call for a name failed.

    Args:
        problems: rows of the query `pattern_naming`.
        rows: of the query `patterns`.
    """
    waiting = {row["Project"] for row in rows if not row["Sentence"]}
    return [
        f"Patterns{_of(problem['Project'])} without a sentence wait for {problem['NamedBy']}: "
        f"{clip(problem['Reason'], _REASON)} ({problem['AskedAt']:%Y-%m-%d %H:%M} UTC)."
        for problem in problems
        if problem["Project"] in waiting
    ]


def share(row: Mapping[str, Any]) -> str:
    """Return the share of the examined runs with its interval."""
    counts = f"{row['Runs']:,} of {row['Examined']:,} runs"
    if row["Low"] is None or row["High"] is None:
        return counts
    ends = f"{_percent(row['Low'])} to {_percent(row['High'])}"
    return f"{counts}, {_percent(row['Share'])} % ({ends} %)"


def contrast(row: Mapping[str, Any]) -> str:
    """Return how its runs differ from the others in their recorded outcomes."""
    if row["PValue"] is None:
        return "unknown: the outcomes of runs with and without it, failed and successful, are not recorded"
    failed, known = row["Failed"], row["Failed"] + row["Succeeded"]
    rest_failed = row["KnownFailed"] - failed
    rest = row["KnownFailed"] + row["KnownSucceeded"] - known
    others = f"{rest_failed:,} of {rest:,} others" if rest else "there are no others"
    p = row["Corrected"]
    judged = "more often than by chance" if p <= _SURE else "no difference shown"
    return f"{failed:,} of {known:,} failed, {others}: {judged} (p = {p:.2g}, corrected)"


def trend(row: Mapping[str, Any], days: int = 7) -> str:
    """Return the last days' rate beside the rate before."""
    before = row["Examined"] - row["RecentExamined"]
    if row["Trend"] == "unknown":
        return f"unknown: the last {days} days and the time before are not both known"
    late = f"{row['RecentRuns']:,} of {row['RecentExamined']:,} in the last {days} days"
    return f"{row['Trend']}: {late}, {row['Runs'] - row['RecentRuns']:,} of {before:,} before"


def state(row: Mapping[str, Any]) -> str:
    """Return the state with its version and person."""
    named = row["State"]
    if row["StateVersion"]:
        named += f" (in version {row['StateVersion']})" if named == "resolved" else ""
        named += f" after version {row['StateVersion']}" if named == "reopened" else ""
    return f"{named}, by {row['StateBy']}" if row["StateBy"] else named


def decisive(row: Mapping[str, Any]) -> str:
    """Return the typical step, and how often the decisive error is just there."""
    where = f"step {row['TypicalStep']} of {row['TypicalSteps']}"
    if not row["Decided"]:
        return f"{where}; no run has a decisive step"
    return f"{where}; it is the decisive step in {row['DecidedHere']:,} of {row['Decided']:,} runs with one"


def confirmed(row: Mapping[str, Any]) -> str:
    """Return how many of its runs were replayed, and how many of these were confirmed."""
    if not row["Replayed"]:
        return "no run was replayed"
    return f"{row['Confirmed']:,} of {row['Replayed']:,} replayed runs"


def cost(row: Mapping[str, Any], found: Mapping[str, Any], priced: int) -> str:
    """Return the cost of its newest runs.

    Args:
        row: of the query `patterns`.
        found: the row of `cost_totals` on these runs; empty if unknown.
        priced: number of these runs.
    """
    if not found.get("Calls"):
        return "unknown: its newest runs record no tokens of model calls"
    whose = f"the newest {priced:,} of its runs" if row["Runs"] > priced else "its runs"
    return f"{cost_words(found['Cost'], found['UnpricedCalls'])} in {whose}"


def text(row: Mapping[str, Any]) -> str:
    """Return the template of its texts, clipped."""
    return clip(row["Text"], _TEXT)


def _of(project: str) -> str:
    return f" of {project}" if project else ""


def _percent(value: float) -> str:
    percent = 100 * value
    return f"{percent:.0f}" if percent >= 10 or percent == 0 else f"{percent:.2g}"
