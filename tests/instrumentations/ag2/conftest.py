"""AG2 1.x against the scripted server."""

from __future__ import annotations

from client_peers import elsewhere
from recorded_spans import recorded_by

from mast_trace_instrumentations.ag2 import AG2Instrumentor

__all__ = ["elsewhere"]

spans = recorded_by(AG2Instrumentor)
