"""Compares the recordings of each instrumentation with the truth, on the same programs.

Every program runs under mast-trace and under each peer that can be installed beside its framework,
in an environment and a process of its own, against a scripted model in this one. One table for each
framework: the truth, ours, theirs. Ends with status 1 if ours differs from the truth.

::

    python benchmarks/coverage/run.py
    python benchmarks/coverage/run.py --frameworks langgraph --keep recorded
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "examples")]

from environments import environment  # noqa: E402
from peers import FRAMEWORKS, PEERS  # noqa: E402
from probe import ROWS, Counts, counted, expected  # noqa: E402
from scripted_llm import ScriptedLLM  # noqa: E402

from mast_trace.trajectory.model import SpanRecord  # noqa: E402

if TYPE_CHECKING:
    from peers import Peer

RUNS = 3
OURS = "mast-trace"


def record(framework: str, peer: Peer, folder: Path) -> tuple[Counts, Counts]:
    """Run a framework's program under one instrumentation; return the truth and the recording."""
    program = import_module(f"programs.{framework}")
    ours = ("-e", str(ROOT)) if peer.name == OURS else ()
    name = f"{framework}-{peer.name}".replace(", ", "-")
    python = environment(f"coverage/{name}", [*FRAMEWORKS[framework], *peer.packages, *ours])
    target = folder / f"{name}.json"
    command = [python, HERE / "worker.py", framework, peer.name, "--target", target.resolve()]
    with ScriptedLLM(program.script) as llm, tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [*command, "--llm", llm.url],
            check=False,
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": home},
        )
    if done.returncode != 0:
        raise SystemExit(f"{framework} under {peer.name} failed:\n{done.stdout}\n{done.stderr}")
    spans = [SpanRecord(**shape) for shape in json.loads(target.read_text())]
    requests = llm.requests
    target.with_suffix(".requests.json").write_text(json.dumps(requests))
    return (
        expected(program.TRUTH, requests, RUNS),
        counted(spans, program.TRUTH, requests, RUNS),
    )


def table(truth: Counts, columns: dict[str, Counts]) -> str:
    """Render a table in Markdown."""
    lines = [f"| | truth | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    found = [asdict(column) for column in columns.values()]
    for field, expectation in asdict(truth).items():
        cells = (str(column[field]) for column in found)
        lines.append(f"| {ROWS[field]} | {expectation} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Record, count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [each for each in PEERS if (HERE / "programs" / f"{each}.py").exists()]
    parser.add_argument("--frameworks", nargs="+", default=known, choices=known)
    parser.add_argument("--peers", nargs="+", help="names of instrumentations; all if absent")
    parser.add_argument("--keep", type=Path, help="folder for what was recorded and requested")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for framework in options.frameworks:
        columns: dict[str, Counts] = {}
        truths: list[Counts] = []
        for peer in PEERS[framework]:
            if options.peers and peer.name not in options.peers:
                continue
            truth, columns[peer.name] = record(framework, peer, folder)
            truths.append(truth)
        print(f"\n{framework}, {RUNS} runs:\n\n{table(truths[0], columns)}", flush=True)
        if OURS in columns and columns[OURS] != truths[0]:
            wrong.append(framework)
    if wrong:
        raise SystemExit(f"mast-trace differs from the truth: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
