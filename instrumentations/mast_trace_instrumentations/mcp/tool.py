"""Calls of a server's tools."""

from __future__ import annotations

from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import as_text, joined
from mast_trace.spans import Call, Telemetry, ToolSpan, current_run, in_span, open_tool
from mast_trace_instrumentations.model_calls import is_theirs, media_mark

_NOTE = "_mast_trace_server"

_METHOD = "tools/call"
_FAILED = "tool_error"
"""The convention's type for an error that the tool itself reports."""


def note_server(session: Any, initialized: Any) -> None:
    """Keep the server's answer to the initialisation of the session."""
    setattr(session, _NOTE, initialized)


def server_of(session: Any) -> dict[str, Any]:
    """Return the attributes that name the server behind a session, and the protocol."""
    initialized = getattr(session, _NOTE, None)
    # A program may also hand a session the answer that the server gave to another one.
    server = getattr(session, "server_info", None) or _either(
        initialized, "server_info", "serverInfo"
    )
    version = getattr(session, "protocol_version", None)
    return {
        semconv.MCP_SERVER_NAME: getattr(server, "name", None),
        semconv.MCP_PROTOCOL_VERSION: _text(
            version or _either(initialized, "protocol_version", "protocolVersion")
        ),
    }


def _either(item: Any, new: str, old: str) -> Any:
    """Read a field by its name since 2.0, or by its older name."""
    found = getattr(item, new, None)
    return getattr(item, old, None) if found is None else found


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def begin(telemetry: Telemetry, session: Any, name: str, arguments: Any) -> Call | None:
    """Begin a call of a tool; None where a framework records it, and outside of runs.

    A tool span of ours above the call gets the attributes of the server instead, as the conventions
    require.
    """
    context = otel_context.get_current()
    run = current_run(context)
    if run is None:
        return None
    about = {semconv.MCP_METHOD_NAME: _METHOD, **server_of(session)}
    above = open_tool(context)
    if above is not None:
        above.set_attributes({name: value for name, value in about.items() if value is not None})
        return None
    if is_theirs(telemetry, context, semconv.EXECUTE_TOOL):
        return None
    span = telemetry.tool(name, arguments=arguments or {}, attributes=about)
    return in_span(span, lambda result: _end(span, result))


def _end(span: ToolSpan, result: Any) -> None:
    text = _text_of(result)
    span.result(text)
    if getattr(result, "is_error", None) or getattr(result, "isError", None):
        span.fail(text)
        span.set({semconv.ERROR_TYPE: _FAILED})


def _text_of(result: Any) -> str:
    """Return the text of a result; marks stand for pictures and sounds."""
    blocks = getattr(result, "content", None)
    return as_text(result) if blocks is None else joined("\n", map(_block_text, blocks))


def _block_text(block: Any) -> str:
    text = getattr(block, "text", None)
    if isinstance(text, str):
        return text
    inside = getattr(block, "resource", None)
    if inside is not None:
        text = getattr(inside, "text", None)
        return text if isinstance(text, str) else media_mark("resource", str(inside.uri))
    kind = getattr(block, "mime_type", None) or getattr(block, "mimeType", None) or block.type
    return media_mark(str(kind), getattr(block, "data", None) or str(getattr(block, "uri", "")))
