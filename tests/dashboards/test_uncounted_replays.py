"""A replay is a run of a kind of its own, which nothing counts: no list, rate, cost, alert or judge."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import pytest
from stores import new_store
from verdict_rows import verdict_row

from mast_trace import semconv
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.collector import RunMetrics
from mast_trace_collector.storage.runs import finished_runs, run_summary
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_lab.feedback.store import experiment_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

T0 = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(hours=1)
OWN, WHOLLY, AT_ITS_ROOT, KILLED = (letter * 32 for letter in "abcd")
KIND: Final = {"mast.run.kind": "replay"}
ARRIVALS: Final = frozenset({"arrival", "searched", "spans_over_time", "table_sizes"})
"""Queries on spans as they arrive and are stored, whatever run they belong to."""
NAMED: Final = frozenset({"run", "run_spans", "run_tree", "runs_of_group"})
"""Queries on one run that is named, and ids with which a list is narrowed."""
TEXTS: Final = frozenset({"search", "search_count", "search_hits"})
"""Queries on texts, which replays have once more."""
OF_IDS: Final = frozenset({"cost_of_runs"})
"""Queries on runs that are named by their ids."""
OF_VERDICTS: Final = frozenset({"mode_counts", "failure_spike", "label_queue"})
"""A query for each way in which others select verdicts alone."""
ALIKE: Final = frozenset(
    {"cost_by_mode", "cost_by_tool"}
    | {"cost_of_calls", "modes_by_model", "runs_by_session", "runs_by_user", "runs_sorted"}
    | {"team_runs"}
)
"""Queries that select their runs as another one does that is tried."""
TABLES: Final = ("mast_run_states", "mast_runs", "otel_traces")


def spans(trace: str, kind: str = "") -> list[dict[str, Any]]:
    """A failed run of an experiment with a message, a hand-off, and calls of a tool and of a model."""
    own: list[dict[str, str]] = [
        {
            "gen_ai.operation.name": "invoke_workflow",
            "mast.run.outcome": "failure",
            "mast.experiment.name": "tried",
            "mast.experiment.arm": "none",
            "mast.experiment.task": "one",
            **(KIND if kind == "root" else {}),
        },
        {
            "gen_ai.operation.name": "send_message",
            "mast.message.sender": "planner",
            "mast.message.recipients": '["writer"]',
            "mast.message.content": "Write it.",
            "mast.handoff.target.name": "writer",
        },
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.agent.name": "writer",
        },
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": "writer",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": "10",
            "gen_ai.usage.output_tokens": "5",
        },
    ]
    return [
        {
            "TraceId": trace,
            "SpanId": f"{trace[:8]}{number:08x}",
            "ParentSpanId": f"{trace[:8]}{0:08x}" if number else "",
            "SpanName": "span",
            "Timestamp": T0 + timedelta(seconds=number),
            "Duration": 1_000_000,
            "ServiceName": "shop",
            "StatusCode": "Error" if number == 2 else "Unset",
            "ResourceAttributes": KIND if kind == "resource" else {},
            "SpanAttributes": {"mast.framework": "ag2", **attributes},
        }
        for number, attributes in enumerate(own)
    ]


def verdict(store: Store, trace: str) -> dict[str, Any]:
    """A verdict on a run, as an earlier version of the judge may have stored it on a replay."""
    summary = run_summary(store, trace)
    assert summary
    return verdict_row(
        int(trace, 16),
        summary.start,
        ["1.3"],
        Fingerprint=summary.fingerprint,
        JudgeVersion="earlier",
        JudgedAt=T0 + timedelta(minutes=1),
        ServiceName="shop",
        Framework="ag2",
        RunEnd=summary.end,
        RunAgents=["planner", "writer"],
        RunSeen=summary.last_seen,
        Kind=summary.kind,
        Steps=3,
        Outcome="failure",
        Examined=list(FAILURE_MODES),
        DecisiveStep=1,
        DecisiveAgent="writer",
        DecisiveProbability=0.6,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("uncounted")) as opened:
        yield opened


def numbers(store: Store) -> dict[str, Any]:
    """The rows of the queries that count runs or read their spans; waiting times run on."""
    given: dict[str, dict[str, Any]] = {
        "judge_behind": {"until": T0 + timedelta(hours=2)},
        **{name: {"text": "write"} for name in TEXTS},
    }
    reading = {
        name for name, query in QUERIES.items() if any(each in query.template for each in TABLES)
    }
    counting = (reading | OF_VERDICTS) - ARRIVALS - NAMED - OF_IDS - ALIKE
    found = {name: QUERIES[name].run(store, **given.get(name, {})) for name in sorted(counting)}
    found["judge_lag"] = [{**row, "OldestWaitSeconds": 0} for row in found["judge_lag"]]
    return found


def test_replays_change_no_number(store: Store) -> None:
    """Replays say what they are in all of their spans or in their root alone; one was judged by an earlier version."""
    store.insert("otel_traces", spans(OWN))
    store.insert("mast_verdicts", [verdict(store, OWN)])
    before = numbers(store)
    assert [name for name in TEXTS if not before[name]] == []
    for trace, kind in ((WHOLLY, "resource"), (AT_ITS_ROOT, "root")):
        store.insert("otel_traces", spans(trace, kind))
    store.insert("otel_traces", spans(KILLED, "resource")[1:])
    store.insert("mast_verdicts", [verdict(store, WHOLLY)])
    now = numbers(store)
    assert [name for name in now if now[name] != before[name]] == []
    assert len([name for name in before if before[name]]) > len(before) / 2

    due = finished_runs(store, judge_version="v", quiet=0.0, idle=0.0)
    assert [run.trace_id for run in due] == [OWN]
    assert [run.trace_id for run in experiment_runs(store, "", "tried")] == [OWN]
    assert PatternIndexer(store).index() == 1
    metrics = RunMetrics(store, idle=0.0)
    metrics._read()
    assert metrics._without_root == 0
    [named] = QUERIES["run"].run(store, run=WHOLLY)
    assert (named["Kind"], named["Spans"]) == ("replay", 4)
    assert QUERIES["cost_of_calls"].run(store, only=[WHOLLY])


def test_a_search_finds_a_run_whose_id_a_replay_of_another_project_has(store: Store) -> None:
    before = {name: QUERIES[name].run(store, text="write") for name in TEXTS}
    theirs = spans(OWN, "resource")
    for row in theirs:
        row["ResourceAttributes"] = {**KIND, "mast.project": "theirs"}
    store.insert("otel_traces", theirs)
    assert {name: QUERIES[name].run(store, text="write") for name in TEXTS} == before


def test_a_call_outside_of_runs_changes_costs_alone(store: Store) -> None:
    before = numbers(store)
    (call,) = (row for row in spans("e" * 32) if "gen_ai.request.model" in row["SpanAttributes"])
    call["SpanAttributes"]["mast.run.kind"] = semconv.CALL_KIND
    store.insert("otel_traces", [{**call, "ParentSpanId": ""}])
    now = numbers(store)
    changed = {name for name in now if now[name] != before[name]}
    assert "costs" in changed
    assert {name for name in changed if "cost" not in name} == set()
    due = finished_runs(store, judge_version="v", quiet=0.0, idle=0.0)
    assert "e" * 32 not in [run.trace_id for run in due]
