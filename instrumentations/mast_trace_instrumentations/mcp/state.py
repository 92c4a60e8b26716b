"""The server behind a session, as far as it is known."""

from __future__ import annotations

from typing import Any

from mast_trace import semconv

_NOTE = "_mast_trace_server"


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
