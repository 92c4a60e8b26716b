"""Runs as an instrumented program would send them, written into a store."""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from mast_trace_collector.storage.span_writer import SpanWriter

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_TOKENS = itertools.count()


class StoredRun:
    """One run under construction; `request` returns it as an OTLP request.

    ::

        run = StoredRun(7, outcome="failure")
        run.says("clerk", "Together 20.", to="boss").calls("clerk", "add", {"a": 1}, "20")
        write(store, run)
    """

    def __init__(
        self,
        number: int,
        *,
        root: bool = True,
        outcome: str = "",
        project: str = "",
        service: str = "billing",
        version: str = "",
        workflow: str = "invoices",
        days_ago: int = 0,
        **attributes: str,
    ):
        self._resource = {
            "mast.project": project,
            "service.name": service,
            "service.version": version,
        }
        self.trace_id = f"{number:032x}"
        self._start = time.time_ns() - (60 + days_ago * 86_400) * 10**9
        self._ids = itertools.count(1)
        self._spans: list[Span] = []
        self._root = next(self._ids)
        if root:
            given = {"gen_ai.workflow.name": workflow, "mast.framework": "langgraph"}
            if outcome:
                given["mast.run.outcome"] = outcome
            self._add(
                "invoke_workflow", {**given, **attributes}, identity=self._root, lasted=10**10
            )

    def says(self, agent: str, text: str, *, to: str = "", role: str = "assistant") -> StoredRun:
        """Add a message."""
        return self._add(
            "send_message",
            {
                "mast.message.sender": agent,
                "mast.message.recipients": [to] if to else [],
                "mast.message.content": text,
                "mast.message.role": role,
                "mast.message.id": f"{self.trace_id}-{len(self._spans)}",
            },
        )

    def calls(
        self, agent: str, tool: str, arguments: dict[str, Any], result: str, *, error: str = ""
    ) -> StoredRun:
        """Add a tool call."""
        return self._add(
            "execute_tool",
            {
                "gen_ai.agent.name": agent,
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.arguments": json.dumps(arguments),
                "gen_ai.tool.call.result": result,
            },
            error=error,
        )

    def request(self) -> bytes:
        """Return the run as a serialized OTLP request."""
        message = ExportTraceServiceRequest()
        resource = message.resource_spans.add()
        given = (_attribute(name, value) for name, value in self._resource.items() if value)
        resource.resource.attributes.extend(given)
        resource.scope_spans.add().spans.extend(self._spans)
        return message.SerializeToString()

    def _add(
        self,
        operation: str,
        attributes: dict[str, Any],
        *,
        identity: int = 0,
        lasted: int = 10**6,
        error: str = "",
    ) -> StoredRun:
        start = self._start + len(self._spans) * 10**7
        span = Span(
            trace_id=bytes.fromhex(self.trace_id),
            span_id=(identity or next(self._ids)).to_bytes(8, "big"),
            parent_span_id=b"" if identity else self._root.to_bytes(8, "big"),
            name=operation,
            start_time_unix_nano=start,
            end_time_unix_nano=start + lasted,
        )
        for name, value in {"gen_ai.operation.name": operation, **attributes}.items():
            span.attributes.append(_attribute(name, value))
        if error:
            span.status.code, span.status.message = 2, error
        self._spans.append(span)
        return self


def invoice_run(number: int, *, outcome: str = "failure") -> StoredRun:
    """A run in which a clerk asks for the same page three times and overlooks the others."""
    run = StoredRun(number, outcome=outcome)
    run.says("user", "Add up all open invoices.", to="supervisor", role="user")
    run.says("supervisor", "List the open invoices and add them up.", to="clerk")
    for _ in range(3):
        run.calls("clerk", "open_invoices", {"page": 1}, '{"amounts": [12.5, 7.5], "pages": 3}')
    run.says("clerk", "The open invoices are 12.5 and 7.5, together 20.", to="supervisor")
    return run.says("supervisor", "The open invoices add up to 20 EUR.", to="user")


def write(store: Store, *runs: StoredRun) -> None:
    """Store runs as the collector does."""
    requests = [run.request() for run in runs]
    SpanWriter(store).write(requests, token=f"stored-runs-{next(_TOKENS)}")


def _attribute(name: str, value: Any) -> KeyValue:
    if isinstance(value, list):
        items = [AnyValue(string_value=item) for item in value]
        return KeyValue(key=name, value=AnyValue(array_value=ArrayValue(values=items)))
    return KeyValue(key=name, value=AnyValue(string_value=value))
