"""SQL parts of the queries on patterns."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.sql import CODES, MODES_EXAMINED

RECURS: Final = 3
"""Runs from which a text counts as recurring; texts of fewer runs are one pattern of their place together."""

_TWICE: Final = """(SELECT groupArray(RunKey) FROM (
    SELECT RunKey FROM mast_pattern_runs GROUP BY RunKey HAVING count() > 1))"""
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
  WHERE ExaminedBits != 0"""
"""The judged runs, each once: the row of its newest verdict. Few runs have several rows, and only those are sorted."""

EXAMINED: Final = f"arrayConcat([toUInt64(1)], {MODES_EXAMINED})"
"""1 for a decisive error without a mode, which is always looked for; then as `MODES_EXAMINED`."""


def code_index(code: str) -> str:
    """Return the SQL of a failure mode's place in `EXAMINED`."""
    return f"(1 + indexOf({CODES}, {code}))"


_RUN: Final = """RunKey, toString(Project) AS Project, TraceId, Fingerprint, RunStart, RunEnd,
    toString(ServiceName) AS ServiceName, toString(Framework) AS Framework, toString(Version) AS Version,
    toString(Outcome) AS Outcome, Steps, DecisiveStep, Tokens"""
_HITS: Final = """ARRAY JOIN arrayMap(i -> toString(i), `Hits.Code`) AS Code,
    arrayMap(i -> toString(i), `Hits.Agent`) AS Agent, arrayMap(i -> toString(i), `Hits.Peer`) AS Peer,
    arrayMap(i -> toString(i), `Hits.Tool`) AS Tool, `Hits.Template` AS Template, `Hits.Text` AS Text,
    `Hits.Step` AS Step"""
_RECURRING: Final = f"""SELECT Project, Code, Agent, Peer, Tool, Template
    FROM (SELECT {_RUN}, Code, Agent, Peer, Tool, Template FROM ({NEWEST}) {_HITS} WHERE Template != 0)
    GROUP BY Project, Code, Agent, Peer, Tool, Template
    HAVING uniqExact(RunKey) >= {RECURS}"""

PLACES: Final = f"""SELECT *,
    lower(leftPad(hex(halfMD5(Project, Code, Agent, Peer, Tool, Kept)), 16, '0')) AS PatternId
  FROM (
    SELECT *, if((Project, Code, Agent, Peer, Tool, Template) GLOBAL IN ({_RECURRING}), Template, toUInt64(0)) AS Kept
    FROM (SELECT {_RUN}, Code, Agent, Peer, Tool, Template, Text, Step FROM ({NEWEST}) {_HITS})
  )
  ORDER BY Step
  LIMIT 1 BY PatternId, RunKey"""
"""Each pattern of each judged run, once, at the first step that shows it. A text that recurs makes a pattern of
its own; the others of its place are one.
"""
