"""Stores many small runs of a version, with or without verdicts."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from verdict_rows import verdict_row

from mast_trace.taxonomy import FAILURE_MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage import Store

_NUMBERS = itertools.count(1)


def store_runs(
    store: Store,
    version: str,
    outcomes: dict[str, int],
    *,
    minutes: float = 10,
    modes: Sequence[str] = (),
    judged: bool = True,
    judge: str = "judge-1",
    service: str = "shop",
    branch: str = "",
    recorded: bool = True,
    user: str = "",
) -> list[str]:
    """Store runs that began some minutes ago, and return their ids.

    Args:
        store: the database.
        version: of the program.
        outcomes: number of runs by outcome; empty text for none.
        minutes: age of the runs.
        modes: failure modes that failed runs show.
        judged: whether they have verdicts.
        judge: version of the judge.
        service: of the program.
        branch: of the program.
        recorded: whether the program recorded the outcome, or the judge found it.
        user: of the runs, each in a session of its own.
    """
    at = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    resource = {"service.name": service, "service.version": version, "vcs.ref.head.name": branch}
    spans: list[dict[str, Any]] = []
    found: dict[str, str] = {}
    for outcome, count in outcomes.items():
        for _ in range(count):
            trace_id = f"{next(_NUMBERS):032x}"
            found[trace_id] = outcome
            spans.append(
                {
                    "Timestamp": at,
                    "TraceId": trace_id,
                    "SpanId": trace_id[-16:],
                    "SpanName": "job",
                    "ServiceName": service,
                    "ResourceAttributes": {k: v for k, v in resource.items() if v},
                    "SpanAttributes": {
                        "gen_ai.operation.name": "invoke_workflow",
                        **({"mast.run.outcome": outcome} if outcome and recorded else {}),
                        **({"user.id": user, "gen_ai.conversation.id": trace_id} if user else {}),
                    },
                    "Duration": 2_000_000,
                }
            )
    store.insert("otel_traces", spans)
    if judged and found:
        judge_runs(store, found, modes, judge)
    return list(found)


def judge_runs(store: Store, outcomes: dict[str, str], modes: Sequence[str], judge: str) -> None:
    """Store verdicts on runs of known outcomes."""
    rows = []
    ids = set(outcomes)
    for run in store.query("SELECT * FROM mast_runs"):
        if run["TraceId"] not in ids:
            continue
        outcome = outcomes[run["TraceId"]]
        shown = modes if outcome == "failure" else ()
        rows.append(
            verdict_row(
                int(run["TraceId"], 16),
                run["Start"],
                shown,
                Fingerprint=run["Fingerprint"],
                JudgeVersion=judge,
                JudgedAt=datetime.now(timezone.utc),
                Method="local",
                ServiceName=run["ServiceName"],
                RunEnd=run["End"],
                RunSeen=run["LastSeen"],
                RunOutcome=run["Outcome"],
                Steps=2,
                Outcome=outcome or "unknown",
                Examined=list(FAILURE_MODES),
            )
        )
    store.insert("mast_verdicts", rows)
