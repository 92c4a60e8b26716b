"""Spans that trackers of model calls keep: Weave, Braintrust, Opik, Phoenix, MLflow, LangSmith, the OpenAI Agents SDK."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.foreign_spans import (
    ForeignSpan,
    at,
    hex_of,
    loaded,
    request_of,
    span_of_sdk,
)
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    object_in,
    objects_in,
    total_alone,
    usage_of,
    usage_of_models,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.observations import of_kind, of_tool_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


# -- Weave, Braintrust and Opik: the same facts under other names, from one table ------------------

_KINDS = {
    "llm": semconv.CHAT,
    "tool": semconv.EXECUTE_TOOL,
    "agent": semconv.INVOKE_AGENT,
    "task": semconv.INVOKE_AGENT,
}
"""Kind of a call -> its operation; a call of another kind is none."""
_OP = re.compile(r".*/op/|:[^:/]*$")


@dataclass(frozen=True)
class _Names:
    """Paths of the facts in a tracker's call; of several, the first that holds something counts."""

    scope: str
    trace: str
    span: str
    parent: str
    title: str
    kind: str
    start: str
    end: str
    inputs: str
    model: tuple[str, ...]
    usage: str
    error: str


_WEAVE = _Names(
    scope="weave",
    trace="trace_id",
    span="id",
    parent="parent_id",
    title="op_name",
    kind="attributes.weave.kind",
    start="started_at",
    end="ended_at",
    inputs="inputs",
    model=("output.model", "inputs.model"),
    usage="summary.usage",
    error="exception",
)
_BRAINTRUST = _Names(
    scope="braintrust",
    trace="root_span_id",
    span="span_id",
    parent="span_parents",
    title="span_attributes.name",
    kind="span_attributes.type",
    start="metrics.start",
    end="metrics.end",
    inputs="input",
    model=("metadata.model",),
    usage="metrics",
    error="error",
)
_OPIK = _Names(
    scope="opik",
    trace="trace_id",
    span="id",
    parent="parent_span_id",
    title="name",
    kind="type",
    start="start_time",
    end="end_time",
    inputs="input",
    model=("model",),
    usage="usage",
    error="error_info",
)


def _read_named(
    names: _Names, value: Mapping[str, Any], _: str
) -> Iterator[ExportTraceServiceRequest]:
    parent = at(value, names.parent)
    above = parent[0] if isinstance(parent, list) and parent else parent
    title = _OP.sub("", str(at(value, names.title) or ""))
    models = [str(found) for path in names.model if (found := at(value, path))]
    usage, error = at(value, names.usage), at(value, names.error)
    kind = _KINDS.get(str(at(value, names.kind)), "")
    if not kind and models and usage:  # a call of Weave need not say what it is
        kind = semconv.CHAT
    yield request_of(
        ForeignSpan(
            trace_id=str(at(value, names.trace) or ""),
            span_id=str(at(value, names.span) or ""),
            parent_id=str(above or ""),
            name=title,
            start=nanoseconds_of(at(value, names.start) or value.get("created"), "its start"),
            end=moment_or_zero(at(value, names.end)),
            attributes=of_kind(
                kind,
                title,
                at(value, names.inputs),
                loaded(value.get("output")),
                is_root=not above,
                model=models[0] if models else None,
                usage=usage_of(usage) or usage_of_models(usage),
            ),
            error=whole_text(error) if error else None,
            scope=names.scope,
        )
    )


WEAVE = Format(
    name="weave",
    title="Weave calls",
    recognised="`op_name`, `trace_id` and `started_at`, as its client and its calls table export them",
    read=partial(_read_named, _WEAVE),
    keys=("op_name", "trace_id", "started_at", "inputs"),
    record=lambda value: is_record(value, "id", "op_name", "trace_id", "started_at"),
)
BRAINTRUST = Format(
    name="braintrust",
    title="Braintrust logs",
    recognised="`span_id`, `root_span_id` and `span_attributes`, as its API and its downloads hold them",
    read=partial(_read_named, _BRAINTRUST),
    keys=("span_id", "root_span_id", "span_attributes", "metrics"),
    record=lambda value: is_record(value, "span_id", "root_span_id", "span_attributes"),
)
OPIK = Format(
    name="opik",
    title="Opik spans",
    recognised="`trace_id`, `start_time` and a `type` such as `llm` or `general`, as its API and its export have them",
    read=partial(_read_named, _OPIK),
    keys=("trace_id", "start_time", "type", "input"),
    record=lambda value: (
        is_record(value, "id", "trace_id", "start_time", "type")
        and word_in(value, "type") in {"llm", "tool", "general", "guardrail"}
    ),
)


# -- Phoenix ---------------------------------------------------------------------------------------

_PREFIX = "attributes."
_OPENINFERENCE = "openinference.span.kind"
_LISTS = (
    "llm.input_messages",
    "llm.output_messages",
    "message.tool_calls",
    "message.contents",
)
"""Attributes that OpenInference spreads over numbered names, and Phoenix collects."""
_AS_JSON = frozenset({"metadata", "llm.invocation_parameters"})


def _read_phoenix(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    failed = value.get("status_code") == "ERROR"
    attributes = _spread_attributes(value)
    attributes.setdefault(_OPENINFERENCE, value.get("span_kind"))
    columns = {key: value.get(f"context.{key}") for key in ("trace_id", "span_id")}
    error = str(value.get("status_message") or "") if failed else None
    known = {"context": columns, **value}
    yield request_of(span_of_sdk(known, attributes, error, scope="openinference"))


def _spread_attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes as OpenInference writes them: one level, lists by number."""
    found: dict[str, Any] = {}
    given = loaded(value.get("attributes"))
    for key, each in (given if isinstance(given, dict) else {}).items():
        _spread(found, str(key), each)
    for key, each in value.items():
        if key.startswith(_PREFIX) and each is not None:
            _spread(found, key.removeprefix(_PREFIX), each)
    return found


def _spread(found: dict[str, Any], name: str, value: Any) -> None:
    inner = loaded(value) if name.endswith(_LISTS) else value
    if inner is None:
        return
    if isinstance(inner, list) and objects(inner):
        for number, item in enumerate(inner):
            _spread(found, f"{name}.{number}", item)
    elif isinstance(inner, dict) and name not in _AS_JSON and not name.endswith("json_schema"):
        for key, each in inner.items():
            _spread(found, f"{name}.{key}", each)
    elif ".token_count." in name:  # a data frame has them as fractions
        found[name] = vocabulary.integer(
            inner if isinstance(inner, float) else str(inner).removesuffix(".0")
        )
    else:
        found[name] = whole_text(inner) if isinstance(inner, dict) else inner


def _is_phoenix(value: Any) -> bool:
    if not is_record(value, "start_time") or not value.keys() & {
        "span_kind",
        _PREFIX + _OPENINFERENCE,
    }:
        return False
    inner = value.get("context")
    return bool(word_in(value, "context.trace_id")) or is_record(inner, "trace_id")


PHOENIX = Format(
    name="phoenix",
    title="Phoenix spans",
    recognised="`span_kind` and `context.trace_id`, the attributes in columns or nested",
    read=_read_phoenix,
    keys=("context", "span_kind", "start_time"),
    record=_is_phoenix,
)


# -- OpenAI Agents SDK -----------------------------------------------------------------------------

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


def _is_openai_trace(value: Any) -> bool:
    """Return whether a value names a trace, whose spans come beside it; it has no times of its own."""
    return is_record(value, "workflow_name") and value.get("object") == "trace"


def _read_openai(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    if _is_openai_trace(value):
        return
    data = value["span_data"] if isinstance(value["span_data"], dict) else {}
    error = value.get("error")
    yield request_of(
        ForeignSpan(
            trace_id=str(value["trace_id"]),
            span_id=str(value.get("id") or ""),
            parent_id=str(value.get("parent_id") or ""),
            name=word_in(data, "name") or word_in(data, "type") or "span",
            start=nanoseconds_of(value["started_at"], "started_at"),
            end=moment_or_zero(value.get("ended_at")),
            attributes=_openai_attributes(data),
            error=(word_in(error, "message") or whole_text(error)) if error else None,
            service="",
            scope="openai-agents",
        )
    )


_OF_OPENAI = {
    "agent": semconv.INVOKE_AGENT,
    "generation": semconv.CHAT,
    "response": semconv.CHAT,
    "function": semconv.EXECUTE_TOOL,
}


def _openai_attributes(data: dict[str, Any]) -> dict[str, Any]:
    kind, given, made = (data.get(key) for key in ("type", "input", "output"))
    if kind == "handoff":
        target = str(data.get("to_agent") or "")
        tool = f"transfer_to_{_NOT_IN_A_NAME.sub('_', target).lower()}"
        return {**of_tool_call(tool, {}, None), semconv.HANDOFF_TARGET: target}
    title, usage = str(data.get("name") or kind), usage_of(data.get("usage"))
    return of_kind(
        _OF_OPENAI.get(str(kind), ""), title, given, made, model=data.get("model"), usage=usage
    )


OPENAI_AGENTS = Format(
    name="openai-agents",
    title="Spans of the OpenAI Agents SDK's exporter",
    recognised="`span_data` and `trace_id`",
    read=_read_openai,
    keys=("trace_id", "started_at", "span_data"),
    record=lambda value: (
        _is_openai_trace(value) or is_record(value, "trace_id", "started_at", "span_data")
    ),
)


# -- MLflow ----------------------------------------------------------------------------------------

_CALL_USAGE = "mlflow.chat.tokenUsage"
_FAILED = frozenset({"STATUS_CODE_ERROR", "ERROR"})


def _read_mlflow(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    spans = objects_in(value.get("data", value), "spans")
    if not spans:
        raise ValueError("it holds no spans")
    info = value.get("info", value)
    told = _told_of_trace(info)
    whole = info.get("token_usage") or loaded(told.get("mlflow.trace.tokenUsage"))
    if not any(_CALL_USAGE in each for each in (object_in(span, "attributes") for span in spans)):
        # The usage of the whole trace stands on the first call of a model.
        calls = (
            each for each in spans if _kind_of_mlflow(object_in(each, "attributes")) == semconv.CHAT
        )
        if first := next(calls, None):
            first["attributes"].setdefault(_CALL_USAGE, whole)
    of_run = {semconv.CONVERSATION_ID: told.get("mlflow.trace.session") or None}
    for span in spans:
        made = _mlflow_span(span, str(info.get("trace_id") or info.get("request_id")))
        yield request_of(replace(made, attributes={**of_run, **made.attributes}))


def _told_of_trace(info: Mapping[str, Any]) -> dict[Any, Any]:
    """Return what a trace tells beside its spans, which older releases list in pairs."""
    given = info.get("trace_metadata") or info.get("request_metadata")
    pairs = {each.get("key"): each.get("value") for each in objects(given)}
    return given if isinstance(given, dict) else pairs


def _kind_of_mlflow(sent: Mapping[str, Any]) -> str:
    return vocabulary.OPERATIONS.get(f'"{loaded(sent.get("mlflow.spanType"))}"', "")


def _mlflow_span(span: Mapping[str, Any], trace: str) -> ForeignSpan:
    context = span.get("context")
    known = context if isinstance(context, dict) else span
    sent = {key: loaded(each) for key, each in object_in(span, "attributes").items()}
    title = str(span.get("name") or "")
    start = nanoseconds_of(span.get("start_time_unix_nano", span.get("start_time")), "start time")
    parent = hex_of(str(span.get("parent_span_id") or span.get("parent_id") or ""), 8)
    status = span.get("status")
    failed = word_in(status, "code") in _FAILED or span.get("status_code") in _FAILED
    raised = (loaded(each.get("attributes")) for each in objects(span.get("events")))
    caught = (word_in(each, "exception.message") for each in raised)
    said = word_in(status, "message") or str(span.get("status_message") or "")
    said = said or next(filter(None, caught), "")
    return ForeignSpan(
        trace_id=hex_of(str(known.get("trace_id") or trace), 16),
        span_id=hex_of(str(known.get("span_id") or ""), 8),
        parent_id=parent,
        name=title,
        start=start,
        end=moment_or_zero(span.get("end_time_unix_nano", span.get("end_time"))),
        attributes=_mlflow_attributes(sent, title, is_root=not parent),
        error=said or "error" if failed else None,
        scope="mlflow",
    )


def _mlflow_attributes(sent: Mapping[str, Any], title: str, *, is_root: bool) -> dict[str, Any]:
    inputs, outputs = sent.get("mlflow.spanInputs"), sent.get("mlflow.spanOutputs")
    beside = outputs.get("usage") if isinstance(outputs, dict) else None
    usage = sent.get(_CALL_USAGE) or beside
    model = sent.get("mlflow.llm.model") or sent.get("model") or word_in(inputs, "model") or None
    made = of_kind(
        _kind_of_mlflow(sent),
        title,
        inputs,
        outputs,
        is_root=is_root,
        model=model,
        usage=usage_of(usage),
    )
    return {**made, **total_alone(usage)}


def _is_mlflow(value: Any) -> bool:
    """Return whether a value is a trace, a row of a data frame, or the artifact with a trace's spans alone."""
    if is_record(value, "spans", "trace_metadata"):
        return True
    if is_record(value, "info", "data"):
        return isinstance(value["info"], dict) and is_record(value["data"], "spans")
    return any(
        is_record(x.get("attributes"), "mlflow.spanType") for x in objects_in(value, "spans")
    )


MLFLOW = Format(
    name="mlflow",
    title="MLflow traces",
    recognised="`info` and `data` with `spans`, or a row of `search_traces` with `spans`",
    read=_read_mlflow,
    keys=("info", "data", "spans"),
    record=_is_mlflow,
)


# -- LangSmith -------------------------------------------------------------------------------------

_USAGE = (
    *("usage_metadata", "llm_output.token_usage"),
    *("generations.0.0.message.kwargs.usage_metadata", "generations.0.0.message.usage_metadata"),
)
"""Places of the tokens in what a model has answered."""
_PLUMBING = ("Runnable", "Channel", "ChatPromptTemplate", "__start__", "LangGraph")
"""Chains that LangChain makes of its own parts: no agent acts in them."""


def _read_langsmith(value: dict[str, Any], name: str) -> Iterator[ExportTraceServiceRequest]:
    run = {key: loaded(each) for key, each in value.items()}
    identity = run.get("id") or run["run_id"]
    yield request_of(_langsmith_span({**run, "id": identity}))
    for child in objects_in(run, "child_runs"):
        yield from _read_langsmith({"trace_id": run.get("trace_id") or identity, **child}, name)


def _langsmith_span(run: Mapping[str, Any]) -> ForeignSpan:
    title = str(run.get("name") or run["run_type"])
    start = nanoseconds_of(run.get("start_time"), "start_time")
    parents = run.get("parent_run_ids")
    parent = run.get("parent_run_id") or _above(run)
    if not parent and isinstance(parents, list) and parents:
        parent = parents[-1]
    known = object_in(run.get("extra"), "metadata")
    error = run.get("error")
    of_order = str(run.get("dotted_order") or "").split(".")[0].partition("Z")[2]
    return ForeignSpan(
        trace_id=str(run.get("trace_id") or of_order or run.get("id") or ""),
        span_id=str(run.get("id") or ""),
        parent_id=str(parent or ""),
        name=title,
        start=start,
        end=moment_or_zero(run.get("end_time")),
        attributes={
            **_langsmith_attributes(run, title, known, is_root=not parent),
            semconv.CONVERSATION_ID: known.get("thread_id") or known.get("session_id"),
            "metadata": whole_text(known) if known else None,
        },
        error=whole_text(error) if error else None,
        service=str(run.get("session_name") or ""),
        scope="langsmith",
    )


def _langsmith_attributes(
    run: Mapping[str, Any], title: str, metadata: Mapping[str, Any], *, is_root: bool
) -> dict[str, Any]:
    kind, inputs, outputs = run["run_type"], run.get("inputs"), run.get("outputs")
    usages = (run, metadata.get("usage_metadata"), *(at(outputs, path) for path in _USAGE))
    acts = kind == "chain" and "langgraph_node" not in metadata and not title.startswith(_PLUMBING)
    return {
        **({semconv.AGENT_NAME: title} if acts and not is_root else {}),
        **of_kind(
            {"llm": semconv.CHAT, "tool": semconv.EXECUTE_TOOL}.get(kind, ""),
            title,
            inputs,
            outputs,
            is_root=is_root,
            model=metadata.get("ls_model_name"),
            usage=next(filter(None, map(usage_of, usages)), None),
        ),
    }


def _above(run: Mapping[str, Any]) -> str:
    """Return the parent that the dotted order names, whose parts end with the runs' ids."""
    parts = str(run.get("dotted_order") or "").split(".")
    return parts[-2].partition("Z")[2] if len(parts) > 1 else ""


LANGSMITH = Format(
    name="langsmith",
    title="LangSmith runs",
    recognised="`run_type` and `start_time`",
    read=_read_langsmith,
    keys=("id", "run_type", "start_time"),
    record=lambda value: (
        is_record(value, "run_type", "start_time") and bool(value.keys() & {"id", "run_id"})
    ),
)
