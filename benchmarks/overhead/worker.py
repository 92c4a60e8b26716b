"""Runs one program under one instrumentation in a process of its own, a run for each line it reads.

Standard output carries the measurements alone: what frameworks print goes to standard error.
"""

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

_IS_MACOS = sys.platform == "darwin"  # macOS counts the peak in bytes, not in KiB

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "examples")]


def main() -> None:
    """Warm up, then run once for each line; at their end, print the cost of all runs."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("instrumentation")
    parser.add_argument("--llm", required=True)
    parser.add_argument("--sink", required=True)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument(
        "--send-each", action="store_true", help="send at the end of each run, not of all"
    )
    options = parser.parse_args()

    program = import_module(f"programs.{options.program}")
    os.environ.update(getattr(program, "ENVIRONMENT", {}))
    if options.instrumentation in {"floor", "floor in place"}:
        from floor import floor

        run, flush = floor(
            lambda: program.prepare(options.llm),
            options.sink,
            in_place=options.instrumentation == "floor in place",
        )
    else:
        from instrumentations import turn_on

        flush = turn_on(program.FRAMEWORK, options.instrumentation, options.sink)
        run = program.prepare(options.llm)
    for _ in range(options.warm_up):
        run()
    flush()
    # A full collection walks all of the framework's modules: 100 ms that hit the next allocation.
    # Garbage of the runs themselves is collected as usual.
    gc.collect()
    gc.freeze()
    wall: list[float] = []
    cpu_before = time.process_time()
    print("ready", file=answers)
    for _line in sys.stdin:
        began = time.perf_counter()
        run()
        if options.send_each:
            flush()
        wall.append(time.perf_counter() - began)
        print("done", file=answers)
    flush()
    cpu = (time.process_time() - cpu_before) / len(wall)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if _IS_MACOS else 1024)
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak}), file=answers)


if __name__ == "__main__":
    main()
