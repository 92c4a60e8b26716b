"""Contrasts generated failing runs of known truth with good runs of their program, and healthy runs, too.

::

    python benchmarks/contrast/run.py [--seeds 11 12 13]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from generate import cases

from mast_trace_judge.local.contrast import contrasted
from mast_trace_judge.local.relations import relations

HEAD = """| good runs | failing | right first | wrong | silent | healthy accused | constant step |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Contrast all, and print the table."""
    parser = argparse.ArgumentParser(description="Contrasts failing runs with good ones.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    counts, steps = {number: Counter[str]() for number in (1, 3, 5, 20)}, Counter[int]()
    for seed in parser.parse_args().seeds:
        pool = [case for more in (1000, 1001) for case in cases(seed + more, by_role=True)]
        good = [(case.team, relations(case.healthy)) for case in pool]
        for case in cases(seed, by_role=True):
            steps[case.step] += 1
            failing, twin = relations(case.failing), relations(case.healthy)
            for number, count in counts.items():
                same = [run for team, run in good if team == case.team]
                drawn = Random(f"{seed} {case.id} {number}").sample(same, number)
                step = said.step if (said := contrasted(failing, drawn)) else None
                count["silent" if step is None else "right" if step == case.step else "wrong"] += 1
                count["accused"] += contrasted(twin, drawn) is not None
    print(HEAD)
    for number, count in counts.items():
        told = [count[key] for key in ("right", "wrong", "silent", "accused")]
        shares = (f"{each / steps.total():.1%}" for each in (*told, max(steps.values())))
        print(f"| {number} | {steps.total()} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
