"""Times replays of programs of twenty steps: in one process, forked, and as a process of their own.

::

    python benchmarks/replay/seconds.py              # eleven replays of each, one or two minutes
    python benchmarks/replay/seconds.py --repeats 3  # fewer, printed and not written

Each replay verifies: it answers all twenty calls from the record, and compares the runs. ``forked`` is the way of
``--preload``, ``in process`` that of `mast_trace.testing.replayed`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "examples")]

from in_process import InProcess  # noqa: E402
from replay_page import SECONDS, write  # noqa: E402
from scripted_llm import ScriptedLLM  # noqa: E402
from twenty_steps import PROGRAMS, STEPS  # noqa: E402

from mast_trace.testing import capture_spans  # noqa: E402
from mast_trace_judge.arms import Arm  # noqa: E402
from mast_trace_judge.replay.arm_runner import ArmSettings, run_arm  # noqa: E402
from mast_trace_judge.replay.forking import PreparedParent  # noqa: E402
from mast_trace_judge.replay.points import decision_points  # noqa: E402
from mast_trace_judge.replay.process import Limits  # noqa: E402

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

REPEATS = 11
MODULES = {"by hand": ("openai",), "graph": ("langchain_openai", "langgraph.graph")}
"""Modules that are imported before the first fork."""


def main() -> None:
    """Time the programs, and write medians and ranges."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, help="replays of each; nothing is written then")
    repeats = parser.parse_args().repeats
    found = []
    for name in PROGRAMS:
        recorded = record(name)
        for way, seconds in timed(name, recorded, repeats or REPEATS).items():
            middle = round(statistics.median(seconds), 3)
            ends = [round(min(seconds), 3), round(max(seconds), 3)]
            found.append(
                {"program": name, "way": way, "median": middle, "range": ends, "n": len(seconds)}
            )
            print(json.dumps(found[-1]), flush=True)
    if repeats is None:
        SECONDS.write_text(json.dumps(found, indent=1) + "\n")
        write()


def record(name: str) -> Trajectory:
    """Record a program on a scripted model."""
    with ScriptedLLM(lambda _request: "One more.") as server:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.url, "scripted"
        with capture_spans() as captured:
            PROGRAMS[name]()
    run = captured.trajectory()
    assert len(decision_points(run)) == STEPS
    return run


def timed(name: str, recorded: Trajectory, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of replays by way, which take turns; no model is there to be asked."""
    command = (sys.executable, str(HERE / "twenty_steps.py"), *(["graph"] if name == "graph" else []))
    with ExitStack() as stack:
        parents: dict[str, Any] = {
            "in process": InProcess(PROGRAMS[name]),
            "forked": stack.enter_context(PreparedParent(command, MODULES[name])),
            "process": None,
        }
        seconds: dict[str, list[float]] = {way: [] for way in parents}
        for number in range(repeats + 1):
            for way, parent in parents.items():
                settings = ArmSettings(Limits(parent=parent, output="discarded"))
                started = time.perf_counter()
                done = run_arm(recorded, command, Arm("verify"), settings=settings)
                taken = time.perf_counter() - started
                assert done.status == "ok", done.reason
                assert done.served_calls == STEPS
                # The first one compiles, and fills the caches of the file system.
                if number:
                    seconds[way].append(taken)
    return seconds


if __name__ == "__main__":
    main()
