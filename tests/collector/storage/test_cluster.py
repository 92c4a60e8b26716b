"""The definitions for a cluster, run on two shards inside the process.

Only ``ON CLUSTER`` and replication need Keeper and are taken out; Distributed tables, what feeds
them and what reads them are the real ones.
"""

from datetime import datetime, timezone

import pytest
from otlp_requests import OTHER, START, TRACE, agent_span, log_request, request, two_runs
from server_users import store_with_users
from stored_spans import spans_of

from mast_trace_collector.storage import Store
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.removal.erasure import before, erase, of_project, of_runs
from mast_trace_collector.storage.removal.run_tables import run_tables
from mast_trace_collector.storage.removal.sweep import sweep
from mast_trace_collector.storage.removal.tombstones import find_tombstones
from mast_trace_collector.storage.runs import finished_runs, record_outcome, run_summary
from mast_trace_collector.storage.span_writer import SpanWriter


@pytest.fixture
def cluster(folder):
    """A store whose tables are Distributed over two shards, each with its part of the rows."""
    with store_with_users(folder, shards=2) as store:
        yield store


def test_an_erased_run_is_gone_from_the_shards_and_what_arrives_is_swept(cluster, monkeypatch):
    original = Store.command

    def command(self, sql, *more, **given):
        return original(self, sql.replace("ON CLUSTER main", ""), *more, **given)

    monkeypatch.setattr(Store, "command", command)
    two_runs(cluster)
    for number in range(2):
        if number:
            SpanWriter(cluster).write([request(agent_span(7))], token="late")
            assert sweep(cluster) == 3
        else:
            erase(cluster, *of_runs(cluster, [TRACE]))
        for table in run_tables(cluster):
            if "TraceId" in table.columns:
                for name in (table.name, table.stored):
                    rows = cluster.query(f"SELECT DISTINCT TraceId FROM {name}")
                    assert rows == [{"TraceId": OTHER}], name
    assert [each.arrived for each in find_tombstones(cluster)] == [3]
    erase(cluster, of_project(cluster, ""), before(datetime.now(timezone.utc)))
    assert {each.trace_id for each in find_tombstones(cluster)} == {TRACE, OTHER}


@pytest.mark.parametrize("parse_from", [0, 2**60], ids=["by ClickHouse", "by Python"])
def test_spans_reach_the_shard_once_with_every_column(cluster, parse_from):
    said = {"gen_ai.agent.name": "planner", "mast.message.id": "first"}
    sent = [request(agent_span(1, attributes=said))]
    for _ in range(2):
        SpanWriter(cluster, parse_from=parse_from).write(sent, token="segment-1")
    for table in ("otel_traces", "otel_traces_local"):
        rows = cluster.query(f"SELECT AgentName, Operation, MessageId FROM {table}")
        assert rows == [{"AgentName": "planner", "Operation": "chat", "MessageId": "first"}]


def test_runs_are_read_across_the_shards(cluster):
    SpanWriter(cluster).write([request(agent_span(1), agent_span(2, parent=1))], token="t")
    assert record_outcome(cluster, TRACE, "failure", "wrong")
    assert len(spans_of(cluster, TRACE)) == 2
    (run,) = finished_runs(cluster, judge_version="j", quiet=0)
    assert (run.spans, run.outcome) == (2, "failure")
    assert run == run_summary(cluster, TRACE)


def test_a_run_is_known_from_its_beginning_on_every_shard(cluster):
    record = {
        "event_name": "mast.run.start",
        "trace_id": bytes.fromhex(TRACE),
        "span_id": (1).to_bytes(8, "big"),
        "time_unix_nano": START,
        "attributes": {"gen_ai.workflow.name": "refund"},
    }
    for _ in range(2):
        LogWriter(cluster).write([log_request(record)], token="start")
    SpanWriter(cluster).write([request(agent_span(2, parent=1))], token="t")
    run = run_summary(cluster, TRACE)
    assert (run.name, run.spans, run.has_root) == ("refund", 1, False)
    assert [each.is_open for each in spans_of(cluster, TRACE)] == [False, True]
