"""Runs one program under one instrumentation in a process of its own; prints the measurements."""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path

_IS_MACOS = sys.platform == "darwin"  # where the peak is in bytes, not in KiB

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "examples")]


def main() -> None:
    """Warm up, then measure each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("instrumentation")
    parser.add_argument("--llm", required=True)
    parser.add_argument("--sink", required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=8)
    options = parser.parse_args()

    from instrumentations import turn_on

    program = import_module(f"programs.{options.program}")
    os.environ.update(getattr(program, "ENVIRONMENT", {}))
    flush = turn_on(program.FRAMEWORK, options.instrumentation, options.sink)
    run = program.prepare(options.llm)
    for _ in range(options.warm_up):
        run()
    flush()
    # A full collection walks all of the framework's modules: 100 ms that fall on whoever allocates
    # at that moment. What the runs themselves leave is collected as ever.
    gc.collect()
    gc.freeze()
    wall: list[float] = []
    cpu_before = time.process_time()
    for _ in range(options.runs):
        began = time.perf_counter()
        run()
        wall.append(time.perf_counter() - began)
    flush()
    cpu = (time.process_time() - cpu_before) / options.runs
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if _IS_MACOS else 1024)
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak}))


if __name__ == "__main__":
    main()
