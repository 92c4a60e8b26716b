"""Contrasts generated failing runs of known truth with good runs of their program, and healthy runs with them, too.

Programs, wordings, inputs, rare branches and repaired errors are those of ``benchmarks/faults``. A program has other
runs as good ones than as failing ones, with draws of their own.

::

    python benchmarks/contrast/run.py [--seeds 11 12 13] [--show]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from generate import cases

from mast_trace_judge.local.contrast import contrasted, relations

GOOD = (1, 3, 5, 20)
"""Numbers of good runs."""
POOL = (1000, 1001)
"""Added to a seed for the draws of good runs."""
HEAD = """| good runs | failing | right first | wrong | silent | healthy accused | constant step |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Contrast all, and print the table."""
    parser = argparse.ArgumentParser(description="Contrasts failing runs with good ones.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--show", action="store_true", help="Print what is said of each run, too.")
    given = parser.parse_args()
    counts = {number: Counter[str]() for number in GOOD}
    steps = Counter[int]()
    for seed in given.seeds:
        pool = [case for more in POOL for case in cases(seed + more, by_role=True)]
        good = [(case.team, relations(case.healthy)) for case in pool]
        for case in cases(seed, by_role=True):
            steps[case.step] += 1
            failing, twin = relations(case.failing), relations(case.healthy)
            for number, count in counts.items():
                same = [run for team, run in good if team == case.team]
                drawn = Random(f"{seed} {case.id} {number}").sample(same, number)
                said = contrasted(failing, drawn)
                found = said is not None and said.step == case.step
                count["right" if found else "silent" if said is None else "wrong"] += 1
                count["accused"] += contrasted(twin, drawn) is not None
                if given.show:
                    print(f"{seed} {case.id}, {case.kind}, {number} good: {case.step}, {said}")
    print(HEAD)
    for number, count in counts.items():
        told = [count[key] for key in ("right", "wrong", "silent", "accused")]
        shares = [each / steps.total() for each in (*told, max(steps.values()))]
        print(f"| {number} | {steps.total()} | {' | '.join(f'{each:.1%}' for each in shares)} |")


if __name__ == "__main__":
    main()
