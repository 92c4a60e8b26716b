"""Runs one program under one instrumentation, in a process of its own; writes the spans as JSON.

The program runs three times: alone, then twice at the same time in two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "examples")]


def shape(span: Any) -> dict[str, Any]:
    """Return an ended span as the fields of `mast_trace.trajectory.model.SpanRecord`."""
    return {
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_span_id": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name,
        "start": span.start_time,
        "end": span.end_time,
        "attributes": dict(span.attributes),
        "status": span.status.status_code.name.capitalize(),
        "status_message": span.status.description or "",
        "scope": span.instrumentation_scope.name if span.instrumentation_scope else "",
    }


def main() -> None:
    """Switch the instrumentation on, run, write what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework")
    parser.add_argument("instrumentation")
    parser.add_argument("--llm", required=True)
    parser.add_argument("--target", type=Path, required=True)
    options = parser.parse_args()
    os.environ.update(
        OPENAI_API_KEY="scripted",
        OPENAI_BASE_URL=options.llm,
        CREWAI_DISABLE_TELEMETRY="true",
        CREWAI_TRACING_ENABLED="false",
        CREWAI_TESTING="true",
        CREWAI_STORAGE_DIR=str(Path.cwd() / "crewai"),
    )

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from peers import peer

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    program = import_module(f"programs.{options.framework}")
    tool = peer(options.framework, options.instrumentation)
    tool.switch_on(provider)
    own = provider if tool.own else None
    program.run(options.llm, own)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: program.run(options.llm, own), range(2)))
    provider.force_flush()
    spans = [shape(span) for span in exporter.get_finished_spans()]
    options.target.write_text(json.dumps(spans))


if __name__ == "__main__":
    main()
