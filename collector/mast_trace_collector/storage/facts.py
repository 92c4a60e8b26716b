"""The facts of runs, such as their model calls: ``mast_run_facts``, written once no more of a run comes.

Readers take the row of each run that has one for all of its spans, and for the others the same from the
spans (`FACTS`), so that no run is ever missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.moments import around
from mast_trace_collector.storage.removal.tombstones import keys_params
from mast_trace_collector.storage.schema_templates import SchemaOptions, facts_of_stored_spans
from mast_trace_collector.storage.store import WRITE_SETTINGS, Store

if TYPE_CHECKING:
    Row = Mapping[str, Any]

_COLUMNS: Final = "Version, Actions, Calls, Tools, Team"
_LEFT_OUT: Final = "RunKey GLOBAL IN (SELECT RunKey FROM mast_left_out)"
WRITTEN: Final = f"""SELECT * FROM (
      SELECT Project, TraceId, RunKey, {_COLUMNS} FROM mast_run_facts
      WHERE RunKey IN (SELECT arrayJoin(asked.2)) ORDER BY Seen DESC LIMIT 1 BY RunKey
    )"""  # noqa: S608
"""The facts of those of these runs that have a row for all of their spans."""
FACTS: Final = f"""{WRITTEN}
    UNION ALL
    SELECT Project, TraceId, RunKey, {_COLUMNS} FROM mast_span_facts
    WHERE notEmpty(asked.3) AND (Project, TraceId) IN (SELECT arrayJoin(asked.3))"""  # noqa: S608
"""The facts of the runs that the SELECT around it has `asked` for."""
PLANNED: Final = "RunKey GLOBAL IN (SELECT RunKey FROM mast_left_out WHERE NOT Done)"
"""A condition on runs: their spans are to be left out."""
RECENT: Final = (
    f"NOT {_LEFT_OUT} AND RunKey GLOBAL IN "  # noqa: S608
    "(SELECT RunKey FROM mast_run_states WHERE LastSeen >= {since:DateTime64(3)})"
)
"""A condition on runs: something of them has come since a time."""
_DUE: Final = """
SELECT toString(any(Project)) AS OfProject, any(TraceId) AS OfTrace, toUnixTimestamp64Milli(max(LastSeen)) AS Seen,
    toUnixTimestamp64Nano(min(Start)) AS Begin, toUnixTimestamp64Nano(max(End)) AS End
FROM mast_run_states
WHERE {which} AND (Project, TraceId) GLOBAL NOT IN (SELECT Project, TraceId FROM mast_tombstones)
GROUP BY RunKey
HAVING max(LastSeen) <= now64(3) - toIntervalMillisecond({quiet_ms:UInt64})
  AND (RunKey, max(LastSeen)) GLOBAL NOT IN (SELECT RunKey, Seen FROM mast_run_facts)
ORDER BY Seen DESC, OfTrace
LIMIT {limit:UInt64}"""
_INSERT: Final = f"""
INSERT INTO mast_run_facts (Project, TraceId, Seen, RunEnd, {_COLUMNS})
SELECT run.1, run.2, fromUnixTimestamp64Milli(run.3), fromUnixTimestamp64Nano(run.4), {_COLUMNS}
FROM (SELECT arrayJoin(arrayZip({{projects:Array(String)}}, {{ids:Array(String)}},
    {{seen:Array(Int64)}}, {{ends:Array(Int64)}})) AS run) AS r
LEFT JOIN ({{facts}}) AS f ON f.Project = run.1 AND f.TraceId = run.2"""  # noqa: S608
_ALL: Final = 2**32


def asked(runs: str) -> str:
    """Return the definition of ``asked``: the keys of runs, of those with facts, and project and id of the others.

    A run whose spans were left out is not counted anew, whatever comes later.

    Args:
        runs: a SELECT of RunKey, Project, TraceId and LastSeen.
    """
    return f"""(SELECT (groupArray(RunKey), groupArrayIf(RunKey, Known), groupArrayIf((toString(Project), TraceId), NOT Known))
  FROM (
    SELECT RunKey, Project, TraceId, (RunKey, LastSeen) GLOBAL IN (SELECT RunKey, Seen FROM mast_run_facts)
      OR RunKey GLOBAL IN (SELECT RunKey FROM mast_run_facts WHERE {_LEFT_OUT}) AS Known
    FROM ({runs})
  )) AS asked"""  # noqa: S608


def states_of(which: str) -> str:
    """Return the SELECT for `asked` of the runs whose states meet a condition."""
    return f"""SELECT RunKey, Project, TraceId, max(LastSeen) AS LastSeen FROM mast_run_states
    WHERE {which} GROUP BY RunKey, Project, TraceId"""  # noqa: S608


def runs_without_facts(
    store: Store, which: str, *, limit: int = _ALL, quiet: float = 0.0, **given: Any
) -> Sequence[Row]:
    """Return runs for `write_facts`, the newest first.

    Args:
        store: the database.
        which: `RECENT`, whose ``since`` is given, or `PLANNED`.
        limit: most runs.
        quiet: seconds in which nothing of them may have come.
        given: parameters of the condition.
    """
    return store.query(
        _DUE.replace("{which}", which),
        {"limit": limit, "quiet_ms": round(quiet * 1000), **given},
    )


def write_facts(store: Store, runs: Sequence[Row]) -> None:
    """Write the facts of some of `runs_without_facts`, in one statement.

    Raises:
        StorageError: the database does not answer, or it is too much at once.
    """
    then, bounds = around((row["Begin"], row["End"]) for row in runs)
    of = f"TraceId IN {{ids:Array(String)}} AND {then}"
    facts = facts_of_stored_spans(SchemaOptions(database=store.database), of)
    store.command(
        _INSERT.replace("{facts}", facts),
        {
            **keys_params([(row["OfProject"], row["OfTrace"]) for row in runs]),
            "seen": [row["Seen"] for row in runs],
            "ends": [row["End"] for row in runs],
            **bounds,
        },
        settings=WRITE_SETTINGS,
    )
