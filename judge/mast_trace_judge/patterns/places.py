"""SQL of the patterns: the places of judged runs' findings, each with the id of its pattern."""

from __future__ import annotations

from typing import Final

RECURS: Final = 3
"""Runs from which a text counts as recurring; texts of fewer runs are one pattern of their place together."""

# Sorted keys show which come twice in a third of the time of grouping them.
_TWICE: Final = """(SELECT arrayDistinct(arrayFilter((key, last) -> key = last, keys,
      arraySlice(arrayPushFront(keys, 0), 1, length(keys))))
    FROM (SELECT arraySort(groupArray(RunKey)) AS keys FROM mast_pattern_runs))"""
NEWEST: Final = f"""WITH {_TWICE} AS twice
  SELECT * FROM (
    SELECT * FROM mast_pattern_runs WHERE empty(twice) OR RunKey NOT IN (SELECT arrayJoin(twice))
    UNION ALL
    SELECT * FROM (
      SELECT * FROM mast_pattern_runs WHERE notEmpty(twice) AND RunKey IN (SELECT arrayJoin(twice))
      ORDER BY JudgedAt DESC
      LIMIT 1 BY RunKey
    )
  )
  WHERE ExaminedBits != 0"""  # noqa: S608  # made of constants
"""The judged runs, each once: the row of its newest verdict. Few runs have several rows, and only those are sorted."""

PLACE: Final = "Project, Code, Agent, Peer, Tool"
"""The columns of a place."""
PATTERN: Final = f"{PLACE}, Kept"
"""The columns of a pattern: its place, and the number of the text that recurs, or 0."""
PATTERN_ID: Final = f"lower(leftPad(hex(halfMD5({PATTERN})), 16, '0'))"
"""The id of a pattern. To group by the columns first costs a tenth of making an id for each finding."""

_HITS: Final = "`Hits.Code` AS Code, `Hits.Agent` AS Agent, `Hits.Peer` AS Peer, `Hits.Tool` AS Tool, `Hits.Template` AS Template"
# Nearly all runs show each of their places once; only the others need sorting.
_REPEATS: Final = (
    "arrayUniq(`Hits.Code`, `Hits.Agent`, `Hits.Peer`, `Hits.Tool`) < length(`Hits.Code`)"
)


def places(hits: str = "true") -> str:
    """Return a SELECT of each pattern of each judged run, once, at the first step that shows it.

    A text that recurs makes a pattern of its own; the others of its place are one.

    Args:
        hits: condition on the findings. It may leave out places only as a whole: the runs of a text are counted.
    """
    # The indexer writes each text of a place once for a run, so that rows are runs.
    recurring = f"""SELECT cityHash64({PLACE}, Template)
      FROM ({NEWEST})
      ARRAY JOIN {_HITS}
      WHERE Template != 0 AND {hits}
      GROUP BY {PLACE}, Template
      HAVING count() >= {RECURS}"""  # noqa: S608  # made of constants
    once, several = (
        f"""SELECT RunKey, TraceId, Fingerprint, RunStart, RunEnd, Project, ServiceName, Framework, Version, Outcome,
      Steps, DecisiveStep, Tokens, Code, Agent, Peer, Tool, Text, Step,
      if(Template != 0 AND cityHash64({PLACE}, Template) GLOBAL IN ({recurring}), Template, toUInt64(0)) AS Kept
    FROM (SELECT * FROM ({NEWEST}) WHERE {runs})
    ARRAY JOIN {_HITS}, `Hits.Text` AS Text, `Hits.Step` AS Step
    WHERE {hits}"""  # noqa: S608  # likewise
        for runs in (f"notEmpty(`Hits.Code`) AND NOT ({_REPEATS})", _REPEATS)
    )
    return f"""SELECT *, {PATTERN_ID} AS PatternId
  FROM ({once} UNION ALL SELECT * FROM ({several}) ORDER BY Step LIMIT 1 BY {PATTERN}, RunKey)"""  # noqa: S608  # likewise


PLACES: Final = places()
"""Each pattern of each judged run, once; see `places`."""
