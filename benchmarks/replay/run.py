"""Simulates `mast-trace confirm` on programs whose truth is known, and writes results and tables.

::

    python benchmarks/replay/run.py               # 300 runs of a class, 400 where nothing is planted
    python benchmarks/replay/run.py --runs 30     # fewer, printed and not written
    python benchmarks/replay/run.py --class "V .6"  # these again, the others stay
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from one_experiment import baseline, simulate  # noqa: E402
from replay_page import RESULTS, chosen_of, line, write  # noqa: E402
from run_classes import CLASSES  # noqa: E402
from simpler_methods import BASELINES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from one_experiment import Outcome

RUNS, MORE_RUNS = 300, 400
"""Runs of a class, and of one where nothing is to be confirmed: the bound there is narrower."""


def main() -> None:
    """Simulate the chosen classes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="runs of each class; nothing is written then")
    chosen, kinds = chosen_of(parser, [each.name for each in CLASSES])
    results = []
    with ProcessPoolExecutor(chosen.jobs) as processes:
        for found in processes.map(measured, kinds, [chosen.runs] * len(kinds)):
            print(line(found), flush=True)
            results.append(found)
    if chosen.runs is None:
        store(results)


def store(results: list[dict[str, Any]]) -> None:
    """Write results, with those of the other classes as they were."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    by_name = {each["name"]: each for each in [*known, *results]}
    merged = [by_name[kind.name] for kind in CLASSES if kind.name in by_name]
    RESULTS.write_text(json.dumps(merged, indent=1) + "\n")
    write()


def measured(number: int, runs: int | None) -> dict[str, Any]:
    """Return the counts of the class of a number, and those of the baselines."""
    kind = CLASSES[number]
    runs = runs or (RUNS if kind.something or kind.nights > 1 else MORE_RUNS)
    started = time.process_time()
    found = summed([simulate(kind, seed) for seed in range(runs)])
    length = kind.make(random.Random(0)).length
    found |= {"name": kind.name, "length": length, "something": kind.something, "bound": kind.bound}
    found["ms"] = round((time.process_time() - started) / runs * 1000)
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
