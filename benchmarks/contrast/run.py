"""Contrasts generated failing runs of known truth with good runs of their program, and good runs with each other.

The programs, their wordings, inputs, legitimate branches and repaired errors are those of ``benchmarks/faults``,
recorded by hand. The table has what the contrast names by the number of good runs that it may read.

::

    python benchmarks/contrast/run.py [--seeds 11 12 13] [--show travel-01]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import tomllib

from mast_trace_judge.local.contrast import contrasted, relations

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from generate import HERE, TEAMS, Case, cases

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.local.contrast import Relations

GOOD = (1, 3, 5, 20)
"""Numbers of good runs."""
POOL = (1000, 1001)
"""Added to a seed for the good runs: their draws are other ones than those of the failing runs."""


def main() -> None:
    """Contrast all, and print the table."""
    parser = argparse.ArgumentParser(description="Contrasts failing runs with good ones.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--show", default="", help="Print what is said of this case, too.")
    given = parser.parse_args()
    counts: dict[int, Counter[str]] = {number: Counter() for number in GOOD}
    seconds = []
    for seed in given.seeds:
        failing = list(cases(seed))
        pool = {team: _pool(team, seed) for team in TEAMS}
        for case in failing:
            for number in GOOD:
                good = Random(f"{seed} {case.id} {number}").sample(pool[case.team], number)
                began = time.perf_counter()
                said = contrasted(relations(_of_program(case, case.failing)), good)
                seconds.append(time.perf_counter() - began)
                found = said is not None and said.step == case.step
                counts[number]["right" if found else "silent" if said is None else "wrong"] += 1
                twin = contrasted(relations(_of_program(case, case.healthy)), good)
                counts[number]["accused"] += twin is not None
                if case.id == given.show:
                    print(f"seed {seed}, {number} good: error at step {case.step}; {said}")
                    print(f"    the healthy twin: {twin}")
    print(table(counts))
    print(
        f"\nmean {sum(seconds) / len(seconds) * 1000:.1f} ms, longest {max(seconds) * 1000:.1f} ms"
    )


def _pool(team: str, seed: int) -> list[Relations]:
    """Return the relations of good runs of a program: healthy ones of other tasks, and of other draws."""
    return [
        relations(_of_program(case, case.healthy))
        for more in POOL
        for case in cases(seed + more)
        if case.team == team
    ]


def _of_program(case: Case, run: Trajectory) -> Trajectory:
    """Return a run with its agents named by their roles: in one program they have one name."""
    script = tomllib.loads((HERE / f"{case.team}.toml").read_text("utf-8"))
    roles = {
        name: role
        for role, names in script["agents"].items()
        for name in names.strip("<>").split("|")
    }
    steps = (
        replace(
            step,
            agent=roles.get(step.agent, step.agent),
            recipients=tuple(roles.get(each, each) for each in step.recipients),
        )
        for step in run.steps
    )
    return replace(run, steps=tuple(steps))


def table(counts: dict[int, Counter[str]]) -> str:
    """Return the table, in percent of the failing runs and of the healthy ones."""
    rows = [
        "| good runs | failing | right first | wrong | silent | healthy accused |",
        "|---|---|---|---|---|---|",
    ]
    for number, each in counts.items():
        whole = each["right"] + each["wrong"] + each["silent"]
        shares = (f"{each[key] / whole:.1%}" for key in ("right", "wrong", "silent", "accused"))
        rows.append(f"| {number} | {whole} | {' | '.join(shares)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
