"""Times replays of programs of twenty steps: in one process, forked, and as a process of their own.

::

    python benchmarks/replay/seconds.py              # three replays of each, a minute
    python benchmarks/replay/seconds.py --repeats 1  # fewer, printed and not written

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
from mast_trace_judge.arms import ReplayArm  # noqa: E402
from mast_trace_judge.decision_points import decision_points  # noqa: E402
from mast_trace_lab.program.forking import LazyParent  # noqa: E402
from mast_trace_lab.program.setup import Setup  # noqa: E402
from mast_trace_lab.replay.arm_runner import run_arm  # noqa: E402

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

REPEATS = 3
MODULES = {"by hand": ("openai",), "graph": ("langchain_openai", "langgraph.graph")}
"""Modules that are imported before the first fork."""


def main() -> None:
    """Time the programs, and write medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, help="replays of each; nothing is written then")
    repeats = parser.parse_args().repeats
    found = []
    for name in PROGRAMS:
        recorded = record(name)
        for way, taken in timed(name, recorded, repeats or REPEATS).items():
            elapsed, busy = (round(statistics.median(each), 3) for each in zip(*taken, strict=True))
            found.append(
                {"program": name, "way": way, "elapsed": elapsed, "busy": busy, "n": len(taken)}
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


def timed(name: str, recorded: Trajectory, repeats: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of replays by way, elapsed and of the processor; the ways take turns.

    No model is there to be asked.
    """
    arguments = ["graph"] if name == "graph" else []
    command = (sys.executable, str(HERE / "twenty_steps.py"), *arguments)
    with ExitStack() as stack:
        forked = stack.enter_context(LazyParent(MODULES[name], warn=print))
        parents: dict[str, Any] = {
            "in process": InProcess(PROGRAMS[name]),
            "forked": forked,
            "process": None,
        }
        taken: dict[str, list[tuple[float, float]]] = {way: [] for way in parents}
        for number in range(repeats + 1):
            for way, parent in parents.items():
                setup = Setup(command, parent=parent)
                began, before = time.perf_counter(), busy_seconds()
                done = run_arm(recorded, setup, ReplayArm("verify"))
                ended, after = time.perf_counter(), busy_seconds()
                assert done.status == "ok", done.reason
                assert done.served_calls == STEPS
                # The first one compiles, and fills the caches of the file system.
                if number:
                    taken[way].append((ended - began, after - before))
    return taken


def busy_seconds() -> float:
    """Return the processor seconds of this process and its children so far, and of those that they waited for."""
    used = os.times()
    total = used.user + used.system + used.children_user + used.children_system
    own = Path("/proc/self/task")
    children = [
        child for task in own.iterdir() for child in (task / "children").read_text().split()
    ]
    for child in children:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        # Own and waited-for children's time, in user and in system mode (proc(5), fields 14 to 17).
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


if __name__ == "__main__":
    main()
