"""Judged runs with known findings, written into a store as collector and judge write them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import DecisiveError, Evidence, ModeFinding, RunFacts, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace_collector.storage import Store

NOW = datetime.now(timezone.utc).replace(microsecond=0)
EXAMINED = ("1.1", "1.3", "2.6", "3.2")


@dataclass(frozen=True)
class Run:
    """A run of three spans, whose second shows a failure mode if a code is given.

    With a tool, the text is its error; without one it is the message, which the verdict quotes. The step is
    made ``times`` times.
    """

    number: int
    code: str = ""
    agent: str = "writer"
    tool: str = ""
    text: str = ""
    outcome: str = ""
    project: str = ""
    service: str = "shop"
    version: str = ""
    at: datetime = NOW - timedelta(hours=1)
    judged: bool = True
    times: int = 1

    @property
    def trace(self) -> str:
        """Its id."""
        return f"{self.number:032x}"

    def rows(self) -> list[dict[str, Any]]:
        """Its spans."""
        resource = {"service.name": self.service, "mast.project": self.project}
        if self.version:
            resource["service.version"] = self.version
        done = {"gen_ai.agent.name": self.agent}
        if self.tool:
            step = {**done, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": self.tool}
        else:
            step = {
                "gen_ai.operation.name": "send_message",
                "mast.message.sender": self.agent,
                "mast.message.content": self.text or "Done.",
                "mast.message.recipients": '["critic"]',
            }
        root = {"gen_ai.operation.name": "invoke_workflow"}
        if self.outcome:
            root["mast.run.outcome"] = self.outcome
        turn = {"gen_ai.operation.name": "invoke_agent", **done}
        error = self.text if self.tool else ""
        spans = [(root, ""), *[(step, error)] * self.times, (turn, "")]
        return [
            {
                "TraceId": self.trace,
                "SpanId": f"{self.number:08x}{place:08x}",
                "ParentSpanId": "" if place == 0 else f"{self.number:08x}{0:08x}",
                "SpanName": attributes["gen_ai.operation.name"],
                "Timestamp": self.at + timedelta(milliseconds=place),
                "Duration": 1000,
                "ServiceName": self.service,
                "ResourceAttributes": resource,
                "SpanAttributes": attributes,
                "StatusCode": "Error" if told else "Unset",
                "StatusMessage": told,
            }
            for place, (attributes, told) in enumerate(spans)
        ]


def add_runs(store: Store, runs: Iterable[Run]) -> None:
    """Write runs, in one statement for their spans and one for their verdicts."""
    runs = list(runs)
    store.insert("otel_traces", [row for run in runs for row in run.rows()])
    verdicts = [
        verdict_on(
            store,
            run.trace,
            code=run.code,
            agent=run.agent,
            quote="" if run.tool else run.text,
            project=run.project,
        )
        for run in runs
        if run.judged
    ]
    save(store, verdicts)


def add_run(store: Store, number: int, **given: Any) -> str:
    """Write a run; return its id."""
    run = Run(number, **given)
    add_runs(store, [run])
    return run.trace


def index(store: Store) -> None:
    """Counts the patterns of all runs, as the judge's worker does after the verdicts."""
    while PatternIndexer(store).index(at_all=True):
        pass


def patterns(store: Store, **given: Any) -> list[dict[str, Any]]:
    return QUERIES["patterns"].run(store, **given)


def judge(store: Store, trace: str, **given: Any) -> None:
    """Store a verdict: see `verdict_on`."""
    save(store, [verdict_on(store, trace, **given)])


def verdict_on(
    store: Store,
    trace: str,
    *,
    code: str,
    agent: str = "writer",
    quote: str = "",
    project: str = "",
) -> Verdict:
    """Return a verdict that shows a failure mode at the second span; none without a code."""
    summary = run_summary(store, trace, project=project)
    assert summary
    span = f"{int(trace, 16):08x}{1:08x}"
    finding = ModeFinding(
        code=code or "1.1",
        probability=0.9,
        evidence=Evidence.HEURISTIC,
        steps=(0,),
        quotes=(quote,) if quote else (),
        span_ids=(span,),
    )
    decisive = DecisiveError(step=0, agent=agent, probability=0.8, span_id=span)
    fails = bool(code) and summary.outcome != "success"
    return Verdict(
        trace_id=trace,
        project=project,
        fingerprint=summary.fingerprint,
        judge_version="v1",
        judged_at=datetime.now(timezone.utc),
        run_start=summary.start,
        run_end=summary.end,
        service=summary.service,
        steps=3,
        outcome="failure" if fails else "unknown",
        modes=(finding,) if code else (),
        decisive=decisive if fails else None,
        examined=EXAMINED,
        run=RunFacts(seen=summary.last_seen, outcome=summary.outcome),
    )
