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


def places(hits: str = "true") -> str:
    """Return a SELECT of each pattern of each judged run, once, at the first step that shows it.

    A text that recurs makes a pattern of its own; the others of its place are one.

    Args:
        hits: condition on the findings. It may leave out places only as a whole: the runs of a text are counted.
    """
    # A window reads the rows once, where a set of recurring texts would read them twice.
    found = f"""SELECT RunKey, TraceId, Fingerprint, RunStart, RunEnd, Project, ServiceName, Framework, Version, Outcome,
      Steps, DecisiveStep, Tokens, Code, Agent, Peer, Tool, Text, Step,
      if(Template != 0 AND uniqExact(RunKey) OVER (PARTITION BY halfMD5({PLACE}, Template)) >= {RECURS},
        Template, toUInt64(0)) AS Kept
    FROM ({NEWEST})
    ARRAY JOIN `Hits.Code` AS Code, `Hits.Agent` AS Agent, `Hits.Peer` AS Peer, `Hits.Tool` AS Tool,
      `Hits.Template` AS Template, `Hits.Text` AS Text, `Hits.Step` AS Step
    WHERE notEmpty(`Hits.Code`) AND {hits}"""  # noqa: S608  # made of constants
    return f"""SELECT *, halfMD5({PLACE}, Kept) AS PatternKey,
    lower(leftPad(hex(PatternKey), 16, '0')) AS PatternId
  FROM ({found})
  ORDER BY Step
  LIMIT 1 BY PatternKey, RunKey"""  # noqa: S608  # likewise


PLACES: Final = places()
"""Each pattern of each judged run, once; see `places`."""
