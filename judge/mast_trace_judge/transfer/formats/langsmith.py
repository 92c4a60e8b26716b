"""Runs from LangSmith's client, its bulk export or its web view: each is a span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, at, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    moment_or_zero,
    nanoseconds_of,
    objects_in,
    usage_of,
    whole_text,
)
from mast_trace_judge.transfer.formats.observations import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_USAGE = (
    *("usage_metadata", "llm_output.token_usage"),
    *("generations.0.0.message.kwargs.usage_metadata", "generations.0.0.message.usage_metadata"),
)
"""Places of the tokens in what a model has answered."""
_PLUMBING = ("Runnable", "Channel", "ChatPromptTemplate", "__start__", "LangGraph")
"""Chains that LangChain makes of its own parts: no agent acts in them."""


def _read(value: dict[str, Any], name: str) -> Iterator[ExportTraceServiceRequest]:
    run = {key: loaded(each) for key, each in value.items()}
    identity = run.get("id") or run["run_id"]
    yield request_of(_span({**run, "id": identity}))
    for child in objects_in(run, "child_runs"):
        yield from _read({"trace_id": run.get("trace_id") or identity, **child}, name)


def _span(run: Mapping[str, Any]) -> ForeignSpan:
    title = str(run.get("name") or run["run_type"])
    start = nanoseconds_of(run.get("start_time"), "start_time")
    parents = run.get("parent_run_ids")
    parent = run.get("parent_run_id") or _above(run)
    if not parent and isinstance(parents, list) and parents:
        parent = parents[-1]
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
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
            **_attributes(run, title, known, is_root=not parent),
            semconv.CONVERSATION_ID: known.get("thread_id") or known.get("session_id"),
            "metadata": whole_text(known) if known else None,
        },
        error=whole_text(error) if error else None,
        service=str(run.get("session_name") or ""),
        scope="langsmith",
    )


def _attributes(
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
    read=_read,
    keys=("id", "run_type", "start_time"),
    record=lambda value: (
        is_record(value, "run_type", "start_time") and bool(value.keys() & {"id", "run_id"})
    ),
)
