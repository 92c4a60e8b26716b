"""Runs a program and writes its spans to a file: ``record_program.py FILE PROGRAM [ARGUMENT...]``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import mast_trace
from mast_trace.delivery.provider import make_provider
from mast_trace.replay.program import FileExporter

if __name__ == "__main__":
    file, program, *arguments = sys.argv[1:]
    provider = make_provider("", SimpleSpanProcessor(FileExporter(Path(file))))
    # The program's own call of `instrument` has no further effect.
    mast_trace.instrument(tracer_provider=provider)
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).parent)
    runpy.run_path(program, run_name="__main__")
