"""Builds OTLP requests for the storage tests."""

import time
from collections import defaultdict
from datetime import datetime, timezone

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter

TRACE = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32
START = 1_800_000_000_123_456_789
DAY = 86_400 * 10**9


def moment(nanoseconds):
    """Return the second in which a time lies."""
    return datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)


def any_value(value):
    """Turn a Python value into an AnyValue; None is a value that holds nothing."""
    if value is None:
        return AnyValue()
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=key_values(value)))
    names = {bool: "bool", int: "int", float: "double", bytes: "bytes", str: "string"}
    return AnyValue(**{f"{names[type(value)]}_value": value})


def key_values(attributes):
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(number=1, *, parent=0, trace=TRACE, start=START, lasted=1000, status=0, **fields):
    """A span whose id is ``number``; ``attributes`` is a dict."""
    attributes = fields.pop("attributes", {})
    return Span(
        trace_id=bytes.fromhex(trace),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=fields.pop("name", f"span {number}"),
        start_time_unix_nano=start,
        end_time_unix_nano=start + lasted,
        status=Status(code=status, message=fields.pop("message", "")),
        attributes=key_values(attributes),
        **fields,
    )


def request(*spans, resource=None, scope="tests"):
    """One serialized request with one resource and one scope."""
    message = ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add()
    described = {"service.name": "shop"} if resource is None else resource
    resource_spans.resource.attributes.extend(key_values(described))
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = scope
    scope_spans.scope.version = "1.0"
    scope_spans.spans.extend(spans)
    return message.SerializeToString()


def agent_span(number, operation="chat", **options):
    """A span as mast-trace sends it."""
    attributes = {"gen_ai.operation.name": operation, **options.pop("attributes", {})}
    return span(number, name=f"{operation} {number}", attributes=attributes, **options)


def now():
    return time.time_ns()


def log_request(*records, resource=None):
    """One serialized request with log records, each a dict of fields of LogRecord."""
    message = ExportLogsServiceRequest()
    resource_logs = message.resource_logs.add()
    described = {"service.name": "shop"} if resource is None else resource
    resource_logs.resource.attributes.extend(key_values(described))
    logs = resource_logs.scope_logs.add()
    logs.scope.name = "tests"
    for fields in records:
        given = dict(fields)
        attributes = key_values(given.pop("attributes", {}))
        body = any_value(given.pop("body", None))
        logs.log_records.add(attributes=attributes, body=body, **given)
    return message.SerializeToString()


def evaluation(trace, *, number=1, score=0.5, at=START):
    """A record that says what some tool thinks of a span."""
    return {
        "event_name": "gen_ai.evaluation.result",
        "trace_id": bytes.fromhex(trace),
        "span_id": number.to_bytes(8, "big"),
        "time_unix_nano": at,
        "attributes": {
            "gen_ai.evaluation.name": "relevance",
            "gen_ai.evaluation.score.value": score,
            "gen_ai.evaluation.score.label": "good",
        },
    }


def two_runs(store, *, projects=("", "")):
    """Two runs with a verdict, a label, an evaluation, replays and model's calls each; the other is a day younger."""
    requests = [
        request(
            agent_span(1, attributes={"enduser.id": "ann", "gen_ai.conversation.id": "c1"}),
            agent_span(2, parent=1),
        ),
        request(agent_span(1, trace=OTHER, start=START + DAY)),
    ]
    SpanWriter(store).write(requests, token="t", project_of=projects.__getitem__)
    rows = defaultdict(list)
    logs = []
    for project, trace, at in zip(
        projects, (TRACE, OTHER), (moment(START), moment(START + DAY)), strict=True
    ):
        common = {"Project": project, "TraceId": trace}
        times = {"RunStart": at, "RunEnd": at, "JudgedAt": at}
        resource = {"service.name": "shop", "mast.project": project}
        logs.append(log_request(evaluation(trace, at=START + 9 * DAY), resource=resource))
        rows["mast_verdicts"].append({**common, **times, "Status": "ok"})
        rows["mast_human_labels"].append({**common, "LabelledAt": at})
        for table in ("mast_replay_plans", "mast_replays", "mast_confirmations"):
            rows[table].append({**common, "PlanId": "p", "RunEnd": at})
        rows["mast_injections"].append({**common, "FaultId": "f", "RunEnd": at})
        rows["mast_pattern_runs"].append({**common, "JudgedAt": at, "RunEnd": at})
        rows["mast_run_facts"].append({**common, "Seen": at, "RunEnd": at})
        named = {"Project": project, "PatternId": "p", "TraceIds": [trace], "RunEnd": at}
        rows["mast_pattern_names"].append(named)
        rows["mast_pattern_states"].append({"Project": project, "PatternId": "p"})
        rows["mast_experiment_runs"].append({**common, "Experiment": "e", "Start": at})
        rows["mast_lessons"].append({**common, "Experiment": "e", "RunEnd": at})
        rows["mast_left_out"].append({**common, "LeftOutAt": at, "Done": True, "RunEnd": at})
        # Judged once more, long after it ended: the answer quotes the run all the same.
        for call, when in (("first", at), ("later", moment(START + 9 * DAY))):
            identity = {"CallId": f"{trace} {call}", "StartedAt": when, "Answer": "they said"}
            rows["mast_judge_calls"].append({**common, **identity})
    LogWriter(store).write(logs, token="logs")
    for table, each in rows.items():
        store.insert(table, each)
