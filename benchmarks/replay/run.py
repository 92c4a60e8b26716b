"""Simulates `mast-trace confirm` on programs whose truth is known, and writes results and tables.

::

    python benchmarks/replay/run.py               # 300 runs of a class, 400 where nothing is planted
    python benchmarks/replay/run.py --runs 30     # fewer, printed and not written
    python benchmarks/replay/run.py --class "V .6"
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from baselines import BASELINES  # noqa: E402
from classes import CLASSES  # noqa: E402
from page import RESULTS, line, write  # noqa: E402
from simulate import baseline, simulate  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from classes import Class
    from simulate import Outcome

RUNS, MORE_RUNS = 300, 400
"""Runs of a class, and of one where nothing is to be confirmed: the bound there is narrower."""


def main() -> None:
    """Simulate the chosen classes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="runs of each class; nothing is written then")
    parser.add_argument("--class", dest="kinds", action="append", help="part of a class's name")
    chosen = parser.parse_args()
    results = []
    for kind in CLASSES:
        if chosen.kinds and not any(each in kind.name for each in chosen.kinds):
            continue
        few = kind.something or kind.nights > 1
        found = measured(kind, chosen.runs or (RUNS if few else MORE_RUNS))
        print(line(found), flush=True)
        results.append(found)
    if chosen.runs is None and not chosen.kinds:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write(results)


def measured(kind: Class, runs: int) -> dict[str, Any]:
    """Return the counts of a class, and those of the baselines."""
    started = time.process_time()
    found = summed([simulate(kind, seed) for seed in range(runs)])
    found |= {"name": kind.name, "something": kind.something, "bound": kind.bound}
    found |= {"limit": kind.limit, "ms": round((time.process_time() - started) / runs * 1000)}
    found["baselines"] = {
        name: summed([baseline(kind, seed, method) for seed in range(min(runs, RUNS))])
        for name, method in BASELINES.items()
    }
    return found


def summed(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return counts of outcomes by what they say, and means of what they cost."""
    runs = len(outcomes)
    return {
        "runs": runs,
        "origin": Counter(each.origin for each in outcomes),
        "point": Counter(each.point for each in outcomes),
        "status": Counter(each.status for each in outcomes),
        "cleared": sum(each.cleared for each in outcomes),
        "replays": round(sum(each.replays for each in outcomes) / runs, 1),
        "calls": round(sum(each.calls for each in outcomes) / runs, 1),
        "most replays": max(each.replays for each in outcomes),
    }


if __name__ == "__main__":
    main()
