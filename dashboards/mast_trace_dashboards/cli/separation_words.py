"""The reasons, in words, for which no action separates failed from successful runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NAMED: Final = 20


def nothing_separates(
    asked: Sequence[str], services: Sequence[str], counts: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the reasons: one for each situation that services are in.

    Args:
        asked: the services of the question; none means all.
        services: all that have runs.
        counts: rows of the query `known_outcomes`.
    """
    unknown = [name for name in asked if name not in services]
    reasons: list[str] = []
    if unknown:
        those = f"Those with runs: {_few(services)}" if services else "No service has runs yet"
        reasons.append(f"There is no service {_few(unknown)}. {those}.")
    if not asked or len(unknown) < len(asked):
        judged = {row["Service"] for row in counts}
        waiting = [name for name in asked if name in services and name not in judged]
        reasons += _of_known(waiting, counts)
    return reasons


def _of_known(waiting: Sequence[str], counts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if waiting or not counts:
        of = f" of {_few(waiting)}" if waiting else ""
        yield (
            f"There are no judged runs{of} in that time. The judge's worker adds runs as it judges them; "
            "`mast-trace patterns index` adds those that were judged without it."
        )
    same = [row for row in counts if row["Failed"] and row["Passed"]]
    alike = [row for row in counts if bool(row["Failed"]) != bool(row["Passed"])]
    silent = [row for row in counts if not row["Failed"] and not row["Passed"]]
    if same:
        yield (
            "Outcomes are recorded, and failed and successful runs do not differ in their agents and actions: "
            f"{_listed(same)}."
        )
    if alike:
        yield (
            f"Recorded outcomes are all the same, and there is nothing to compare: {_listed(alike)}."
        )
    if silent:
        runs = sum(row["Runs"] for row in silent)
        of = _few([_name(row) for row in silent])
        yield (
            f"No outcomes are recorded of {of} (judged runs: {runs:,}), and those of the judge do not count. "
            "Record outcomes by `mast_trace.record_outcome` or `mast-trace outcome`."
        )


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    return _few(
        [f"{_name(row)} ({row['Failed']:,} failed, {row['Passed']:,} successful)" for row in rows]
    )


def _name(row: Mapping[str, Any]) -> str:
    return row["Service"] or "runs without a service's name"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
