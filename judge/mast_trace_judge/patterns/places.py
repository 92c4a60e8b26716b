"""SQL of the patterns: the places of judged runs' findings, each with the id of its pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.store.records import utc

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

RECURS: Final = 3
"""Runs from which a text counts as recurring; texts of fewer runs are one pattern of their place together."""

NEWEST: Final = "SELECT * FROM mast_pattern_runs FINAL WHERE ExaminedBits != 0"
"""The judged runs, each once: the row of its newest verdict."""

PLACE: Final = "Project, Code, Agent, Peer, Tool"
"""The columns of a place."""
PATTERN: Final = f"{PLACE}, Kept"
"""The columns of a pattern: its place, and the number of the text that recurs, or 0."""
PATTERN_ID: Final = f"lower(leftPad(hex(halfMD5({PATTERN})), 16, '0'))"
"""The id of a pattern. To group by the columns first costs a tenth of making an id for each finding."""

_HIT: Final = "`Hits.Code`, `Hits.Agent`, `Hits.Peer`, `Hits.Tool`"
_HITS: Final = (
    "`Hits.Code` AS Code, `Hits.Agent` AS Agent, `Hits.Peer` AS Peer, `Hits.Tool` AS Tool"
)

TABLE: Final = "mast_pattern_names"
STAGE: Final = "name pattern"
"""The name of the question for a name in the ledger of the judge's calls."""
_TRIED: Final = 6
"""Runs of a pattern that are looked up: some may have no texts any more."""
_AGAIN_DAYS: Final = 1
"""Days after which a model is asked again for a name of which it gave none that held."""
_LAPSED_AT_ONCE: Final = 200
_NAMES: Final = """SELECT toString(Project) AS NamedProject, PatternId AS NamedPattern, NamedAt, Sentence, TraceIds,
    toString(Model) AS NamedBy, RunEnd AS NamedEnd
  FROM mast_pattern_names
  ORDER BY NamedAt DESC
  LIMIT 1 BY Project, PatternId"""
_READ: Final = f"SELECT arrayJoin(TraceIds) FROM ({_NAMES}) WHERE notEmpty(Sentence)"  # noqa: S608  # made of constants
# Counting by text and then by place needs no window, and so less than half of the time of `PLACES`.
_TEXTS: Final = f"""SELECT {PLACE}, Template, uniqExactState(RunKey) AS Keys,
    groupUniqArrayIf(TraceId, TraceId GLOBAL IN ({_READ})) AS Read
  FROM ({NEWEST})
  ARRAY JOIN {_HITS}, `Hits.Template` AS Template
  WHERE notEmpty(Code)
  GROUP BY {PLACE}, Template"""  # noqa: S608  # likewise
_KEPT: Final = f"""SELECT *, if(Template != 0 AND finalizeAggregation(Keys) >= {RECURS}, Template, toUInt64(0)) AS Kept
  FROM ({_TEXTS})"""  # noqa: S608  # likewise
_FOUND: Final = f"""SELECT toString(Project) AS OfProject, toString(Code) AS OfCode, toString(Agent) AS OfAgent,
    toString(Peer) AS OfPeer, toString(Tool) AS OfTool, halfMD5({PLACE}) AS PlaceKey,
    lower(leftPad(hex(halfMD5({PLACE}, Kept)), 16, '0')) AS Id,
    uniqExactMerge(Keys) AS Runs, groupUniqArrayArray(Read) AS ShownBy
  FROM ({_KEPT})
  GROUP BY {PLACE}, Kept"""  # noqa: S608  # likewise
# A run that was judged again may not show the pattern any more, and perhaps no run does.
_WITH_NAMES: Final = f"""SELECT *,
    notEmpty(Sentence) AND length(arrayIntersect(ShownBy, TraceIds)) < length(TraceIds) AS Lapsed
  FROM (SELECT * FROM ({_FOUND}) AS p
    FULL JOIN ({_NAMES}) AS n ON n.NamedProject = p.OfProject AND n.NamedPattern = p.Id)"""  # noqa: S608  # likewise
_DUE: Final = f"""SELECT * FROM (
  SELECT *, Runs >= {RECURS} AND NOT has({{without:Array(String)}}, Id) AND (Lapsed OR (empty(Sentence)
    AND (NamedBy != {{model:String}} OR NamedAt < now64(6) - toIntervalDay({_AGAIN_DAYS})))) AS Waiting
  FROM ({_WITH_NAMES})
)
WHERE Lapsed OR Waiting
ORDER BY Runs DESC, Id
LIMIT {{limit:UInt64}} BY Lapsed, Waiting"""  # noqa: S608  # likewise


def places(hits: str = "true") -> str:
    """Return a SELECT of each pattern of each judged run, once, at the first step that shows it.

    A text that recurs makes a pattern of its own; the others of its place are one.

    Args:
        hits: condition on the findings. It may leave out places only as a whole: the runs of a text are counted.
    """
    # The indexer writes each text of a place once for a run, so that rows are runs; and places by their steps.
    recurring = f"""SELECT cityHash64({PLACE}, Template)
      FROM ({NEWEST})
      ARRAY JOIN {_HITS}, `Hits.Template` AS Template
      WHERE Template != 0 AND {hits}
      GROUP BY {PLACE}, Template
      HAVING count() >= {RECURS}"""  # noqa: S608  # made of constants
    return f"""SELECT *, {PATTERN_ID} AS PatternId
  FROM (
    SELECT RunKey, TraceId, Fingerprint, RunStart, RunEnd, Project, ServiceName, Framework, Version, Outcome,
      Steps, DecisiveStep, Tokens, Code, Agent, Peer, Tool, Text, Step, Kept
    FROM (
      SELECT *, arrayMap((c, a, p, t, text) -> if(text != 0 AND cityHash64(Project, c, a, p, t, text) GLOBAL IN ({recurring}),
        text, toUInt64(0)), {_HIT}, `Hits.Template`) AS Texts
      FROM ({NEWEST})
    )
    ARRAY JOIN {_HITS}, Texts AS Kept, `Hits.Text` AS Text, `Hits.Step` AS Step,
      arrayEnumerateUniq({_HIT}, Texts) AS Nth
    WHERE Nth = 1 AND {hits}
  )"""  # noqa: S608  # likewise


PLACES: Final = places()
"""Each pattern of each judged run, once; see `places`."""


_RUNS: Final = f"""SELECT PatternId, TraceId, RunEnd, Step
FROM ({places(f"halfMD5({PLACE}) IN {{places:Array(UInt64)}}")})
WHERE has({{patterns:Array(String)}}, PatternId)
ORDER BY Outcome = 'failure' DESC, RunStart DESC, TraceId
LIMIT {_TRIED} BY PatternId"""  # noqa: S608  # likewise


@dataclass(frozen=True)
class ShowingRun:
    """A run that shows a pattern.

    Attributes:
        trace_id: of the run.
        end: of the run.
        step: the first step that shows it.
    """

    trace_id: str
    end: datetime
    step: int


@dataclass(frozen=True)
class Unnamed:
    """A pattern without a name, by its place; ``runs`` are some of its runs, known failures first."""

    project: str
    pattern: str
    code: str
    agent: str
    peer: str
    tool: str
    runs: tuple[ShowingRun, ...]


@dataclass(frozen=True)
class Lapsed:
    """A name of which a run no longer shows the pattern; ``end`` is that of the runs that it was made from."""

    project: str
    pattern: str
    end: datetime


@dataclass(frozen=True)
class Due:
    """The patterns that a model is to be asked about, the most frequent first, and names to take back."""

    waiting: tuple[Unnamed, ...] = ()
    lapsed: tuple[Lapsed, ...] = ()


def due(store: Store, model: str, *, without: Collection[str], limit: int) -> Due:
    """Return patterns that recur and have no name that holds, and names that hold no longer.

    A pattern is left out for a day after this model gave no sentence for it that held.

    Args:
        store: of all projects.
        model: that will be asked.
        without: ids of patterns to leave out.
        limit: most patterns without a name; of the other names come some hundreds at a time.

    Raises:
        StorageError: the database does not answer.
    """
    if not limit and not store.query(f"SELECT 1 FROM {TABLE} WHERE notEmpty(Sentence) LIMIT 1"):  # noqa: S608
        return Due()
    given = {"model": model, "without": sorted(without), "limit": max(limit, _LAPSED_AT_ONCE)}
    found = store.query(_DUE, given)
    lapsed = [
        Lapsed(row["NamedProject"], row["NamedPattern"], utc(row["NamedEnd"]))
        for row in found
        if row["Lapsed"]
    ]
    waiting = [row for row in found if row["Waiting"]][:limit]
    runs: dict[str, list[ShowingRun]] = {row["Id"]: [] for row in waiting}
    given = {"patterns": sorted(runs), "places": sorted({row["PlaceKey"] for row in waiting})}
    for row in store.query(_RUNS, given) if runs else ():
        run = ShowingRun(row["TraceId"], utc(row["RunEnd"]), row["Step"])
        runs[row["PatternId"]].append(run)
    return Due(tuple(_unnamed(row, runs[row["Id"]]) for row in waiting), tuple(lapsed))


def _unnamed(row: Mapping[str, Any], runs: Sequence[ShowingRun]) -> Unnamed:
    return Unnamed(
        project=row["OfProject"],
        pattern=row["Id"],
        code=row["OfCode"],
        agent=row["OfAgent"],
        peer=row["OfPeer"],
        tool=row["OfTool"],
        runs=tuple(runs),
    )
