"""Named queries on runs whose spans were left out by retention."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import OWNED, OWNERS, RANGE, STARTED

LEFT_OUT: Final = Query(
    name="left_out",
    meaning="Runs whose spans were left out by retention, by project, service and day; verdicts stay.",
    template=f"""
SELECT Project, toString(ServiceName) AS Service, toDate(RunStart) AS Day,
    count() AS Runs, sum(Spans) AS LeftSpans, sum(InputTokens) AS InTokens, sum(OutputTokens) AS OutTokens
FROM (SELECT * FROM mast_left_out FINAL WHERE Done)
WHERE {STARTED} AND {OWNED}
GROUP BY Project, Service, Day
ORDER BY Day, Project, Service""",
    params={**RANGE, **OWNERS},
    columns={
        "Project": Column("String"),
        "Service": Column("String", "name of the service"),
        "Day": Column("Date", "day on which the runs began"),
        "Runs": Column("UInt64", "that have verdicts and no spans"),
        "LeftSpans": Column("UInt64", "spans that were left out"),
        "InTokens": Column("UInt64", "tokens that the models of these runs read"),
        "OutTokens": Column("UInt64", "tokens that they wrote"),
    },
)
