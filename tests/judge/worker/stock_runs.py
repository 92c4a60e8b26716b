"""Runs as any program with the exporter's rights could write them: no receiver has seen their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store

FIRST: Final = -(2**63)
LAST: Final = 2**63 - 1
LONGEST: Final = 2**64 - 1
NOW: Final = 1_790_000_000 * 10**9
TIMES: Final = {
    "the end of time": (LAST, 0),
    "from now to the end of time": (NOW, LAST - NOW),
    "from the end of time beyond it": (LAST, LONGEST),
    "the beginning of time": (FIRST, 0),
    "from the beginning on": (FIRST + 1, LONGEST),
    "before 1900": (-3_000_000_000 * 10**9, 10**9),
    "before 1970": (-1, 1),
    "the epoch": (0, 0),
    "2106": (2**32 * 10**9, 10**9),
    "2262-01-01": (9_214_646_400 * 10**9, 1),
    "an hour before the end": (LAST - 3_600 * 10**9, 3_600 * 10**9),
    "an end before the start": (NOW, 2**64 - 5),
}
"""Start and duration in nanoseconds."""
ROOT: Final = {
    "gen_ai.operation.name": "invoke_workflow",
    "gen_ai.workflow.name": "w",
    "mast.framework": "f",
    "mast.run.outcome": "failure",
}
TOOL: Final = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.agent.name": "clerk",
    "gen_ai.tool.name": "add",
    "gen_ai.tool.call.arguments": "{}",
    "gen_ai.tool.call.result": "20",
}


@dataclass(frozen=True)
class StockSpan:
    """A span as a row of ``otel_traces``; texts may be bytes that are no UTF-8."""

    trace: str | bytes
    span: str | bytes
    parent: str | bytes = ""
    start: int = NOW
    duration: int = 0
    name: str | bytes = "s"
    attributes: Mapping[str | bytes, str | bytes] = field(default_factory=dict)
    resource: Mapping[str | bytes, str | bytes] = field(default_factory=dict)
    status: str | bytes = "Unset"
    message: str | bytes = ""


def write_stock(store: Store, spans: Sequence[StockSpan]) -> None:
    """Write spans into the exporter's table."""
    rows = "\nUNION ALL ".join(map(_row, spans))
    store.command(
        "INSERT INTO otel_traces (Timestamp, Duration, TraceId, SpanId, ParentSpanId, SpanName, SpanAttributes,"
        f" ResourceAttributes, StatusCode, StatusMessage, ServiceName)\n{rows}"
    )


def stock_run(
    trace: str | bytes, start: int = NOW, duration: int = 0, *, project: str | bytes = "other"
) -> list[StockSpan]:
    """A failed run whose three calls of a tool fail, all of its spans at the same time."""
    resource = {"mast.project": project, "service.name": "strange"}
    root = StockSpan(
        trace, "00000000000000aa", "", start, duration, "r", attributes=ROOT, resource=resource
    )
    return [
        root,
        *(
            StockSpan(
                trace,
                f"00000000000000b{n}",
                root.span,
                start,
                duration,
                "t",
                attributes=TOOL,
                resource=resource,
                status="Error",
            )
            for n in range(3)
        ),
    ]


def _row(span: StockSpan) -> str:
    service = span.resource.get("service.name", "")
    texts = (span.trace, span.span, span.parent, span.name)
    return (
        f"SELECT fromUnixTimestamp64Nano(toInt64({span.start})), toUInt64({span.duration}),"
        f" {', '.join(map(_text, texts))}, {_map(span.attributes)}, {_map(span.resource)},"
        f" {_text(span.status)}, {_text(span.message)}, {_text(service)}"
    )


def _map(pairs: Mapping[str | bytes, str | bytes]) -> str:
    items = ", ".join(f"{_text(name)}, {_text(value)}" for name, value in pairs.items())
    return f"CAST(map({items}), 'Map(String, String)')"


def _text(value: str | bytes) -> str:
    raw = value if isinstance(value, bytes) else value.encode()
    return f"unhex('{raw.hex()}')"
