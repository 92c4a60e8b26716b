"""Log records and events become rows of the exporter's table, and evaluations can be read typed."""

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from otlp_requests import DAY, START, TRACE, evaluation, log_request

from mast_trace_collector.storage.log_writer import LOG_COLUMNS, LogWriter
from mast_trace_collector.storage.span_writer import PoisonError

EXPORTER_COLUMNS = [
    ("Timestamp", "DateTime64(9)"),
    ("TimestampTime", "DateTime"),
    ("TraceId", "String"),
    ("SpanId", "String"),
    ("TraceFlags", "UInt8"),
    ("SeverityText", "LowCardinality(String)"),
    ("SeverityNumber", "UInt8"),
    ("ServiceName", "LowCardinality(String)"),
    ("Body", "String"),
    ("ResourceSchemaUrl", "LowCardinality(String)"),
    ("ResourceAttributes", "Map(LowCardinality(String), String)"),
    ("ScopeSchemaUrl", "LowCardinality(String)"),
    ("ScopeName", "String"),
    ("ScopeVersion", "LowCardinality(String)"),
    ("ScopeAttributes", "Map(LowCardinality(String), String)"),
    ("LogAttributes", "Map(LowCardinality(String), String)"),
    ("EventName", "String"),
]
"""The table of the OpenTelemetry Collector's ClickHouse exporter, in its order."""


def test_the_table_is_the_exporters(store):
    rows = store.query("DESCRIBE TABLE otel_logs")
    count = len(EXPORTER_COLUMNS)
    assert [(row["name"], row["type"]) for row in rows[:count]] == EXPORTER_COLUMNS
    assert {row["default_type"] for row in rows[count:]} == {"MATERIALIZED"}
    written = [name for name, _ in EXPORTER_COLUMNS if name != "TimestampTime"]
    assert list(LOG_COLUMNS) == written


def test_every_field_of_a_record_is_kept(store):
    record = {
        "time_unix_nano": START,
        "trace_id": bytes.fromhex(TRACE),
        "span_id": b"\1" * 8,
        "flags": 0x101,
        "severity_text": "WARN",
        "severity_number": 13,
        "body": {"nested": [1, "two"]},
        "attributes": {"gen_ai.system": "x"},
        "event_name": "gen_ai.client.inference.operation.details",
    }
    resource = {"service.name": "shop", "mast.project": "ours"}
    assert LogWriter(store).write([log_request(record, resource=resource)], token="t") == 1
    (row,) = store.query("SELECT *, Project, toUnixTimestamp64Nano(Timestamp) AS ns FROM otel_logs")
    assert row["ns"] == START
    assert (row["TraceId"], row["SpanId"], row["TraceFlags"]) == (TRACE, "01" * 8, 1)
    assert (row["SeverityText"], row["SeverityNumber"]) == ("WARN", 13)
    assert row["Body"] == '{"nested":[1,"two"]}'
    assert row["LogAttributes"] == {"gen_ai.system": "x"}
    assert row["EventName"] == record["event_name"]
    assert (row["ServiceName"], row["ScopeName"], row["Project"]) == ("shop", "tests", "ours")


def test_a_record_without_a_time_or_with_a_severity_beyond_its_column_is_kept(store):
    records = [
        {"observed_time_unix_nano": START, "severity_number": 0xFF},
        {"severity_number": -1},
        {"time_unix_nano": 2**64 - 1, "severity_number": 0x100},
    ]
    assert LogWriter(store).write([log_request(*records)], token="t") == 3
    rows = store.query(
        "SELECT toUnixTimestamp64Nano(Timestamp) AS ns, SeverityNumber AS s FROM otel_logs ORDER BY ns"
    )
    assert [(row["ns"], row["s"]) for row in rows] == [(0, 0), (START, 0xFF), (2**63 - 1, 0)]


def test_a_batch_is_stored_once_for_its_token(store):
    requests = [log_request({"time_unix_nano": START}), log_request({"time_unix_nano": START})]
    for _ in range(2):
        LogWriter(store).write(requests, token="segment")
    assert store.query("SELECT count() AS n FROM otel_logs") == [{"n": 2}]


def test_records_of_five_hundred_days_go_in_one_batch(store):
    records = [{"time_unix_nano": START - number * DAY} for number in range(500)]
    assert LogWriter(store).write([log_request(*records)], token="t") == 500


def test_what_is_no_request_is_named(store):
    with pytest.raises(PoisonError) as error:
        LogWriter(store).write([log_request({}), b"\xff"], token="t")
    assert error.value.index == 1
    assert LogWriter(store).write([log_request()], token="t") == 0


def test_the_latest_evaluation_of_each_name_counts(store):
    legacy = evaluation(TRACE, number=2, score=1.0)
    legacy["attributes"]["event.name"] = legacy.pop("event_name")
    records = [
        evaluation(TRACE, score=0.25),
        evaluation(TRACE, score=0.75, at=START + DAY),
        legacy,
        {"event_name": "gen_ai.user.message", "trace_id": bytes.fromhex(TRACE)},
    ]
    LogWriter(store).write([log_request(*records)], token="t")
    rows = store.query("SELECT TraceId, Name, Score, Label FROM mast_evaluations ORDER BY SpanId")
    common = {"TraceId": TRACE, "Name": "relevance", "Label": "good"}
    assert rows == [{**common, "Score": 0.75}, {**common, "Score": 1.0}]


def test_a_place_in_a_dictionary_that_is_not_there_is_no_value(store):
    """Profiles name strings by their place in a dictionary; in a log record that says nothing."""
    request = ExportLogsServiceRequest.FromString(log_request({"attributes": {"kept": "yes"}}))
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.body.array_value.values.add(string_value_strindex=3)
    record.attributes.add(key="place").value.string_value_strindex = 3
    assert LogWriter(store).write([request.SerializeToString()], token="t") == 1
    (row,) = store.query("SELECT Body, LogAttributes FROM otel_logs")
    assert row == {"Body": "[null]", "LogAttributes": {"kept": "yes", "place": ""}}
