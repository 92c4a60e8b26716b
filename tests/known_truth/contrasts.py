"""Contrasts failing runs of eight drawn teams with good runs of the same team, and counts what is said.

::

    python tests/known_truth/contrasts.py                                       # the frameworks that are here
    python tests/known_truth/contrasts.py --python crewai=PATH metagpt=PATH autogen=PATH

A team's runs are of two versions of its program; as in the product, a run is compared with good ones of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS.parent / "examples")]

from known_truth.drawn_stories import VARIANTS
from known_truth.drawn_teams import TEAMS, record

from mast_trace_judge.local.contrast import contrasted
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.local.relations import relations
from mast_trace_judge.look_first import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NUMBERS: Final = (0, 1, 3, 5, 20)
"""Good runs with which a run is compared; 0: the rules alone, told of no outcome."""
GOAL: Final = 5
"""The number of good runs by which the contrast is held to its goals."""
_POOL, _FAILING, _HEALTHY = range(50), range(1000, 1030), range(2000, 2030)
PACKAGES: Final = {"langgraph": "langgraph", "ag2": "ag2", "by_hand": "openai"}
"""The frameworks that stand beside each other in one environment, and their packages."""


def rows_of(name: str, framework: str) -> Iterator[tuple[int, str, int]]:
    """Record a team and contrast its runs; yield numbers of good runs, verdicts, and the decisive step or -1.

    A verdict of a failing run is "right", "wrong" or "silent"; of a healthy one "accused" or "spared".
    """
    (kind,) = {each for each, _ in TEAMS if each.name == name}
    pool = [relations(record(kind, framework, number)[0]) for number in _POOL]

    def said(number: int, error: int = -1) -> Iterator[tuple[int, int | None, frozenset[int]]]:
        run, steps = record(kind, framework, number, error)
        same = [each for other, each in zip(_POOL, pool, strict=True) if (other + number) % 2 == 0]
        first = next(iter(places(run, judge_by_rules(run))), None)
        yield 0, None if first is None else first.step, steps
        for good in NUMBERS[1:]:
            drawn = Random(f"{number} {error} {good}").sample(same, good)
            found = contrasted(relations(run), drawn)
            yield good, None if found is None else found.step, steps

    for number in _FAILING:
        for good, at, steps in said(number, number % VARIANTS):
            yield good, "silent" if at is None else "right" if at in steps else "wrong", min(steps)
    for number in _HEALTHY:
        for good, at, _ in said(number):
            yield good, "spared" if at is None else "accused", -1


def pythons_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the Pythons of the frameworks that are installed here, or in an environment that is named."""
    here = {name for name, package in PACKAGES.items() if importlib.util.find_spec(package)}
    return {**dict.fromkeys(here, sys.executable), **given}


def measured(pythons: Mapping[str, str]) -> dict[int, Counter[str]]:
    """Contrast the runs of all teams whose frameworks have a Python; return the counts by the number of good runs."""
    counts = {good: Counter[str]() for good in NUMBERS}
    for kind, framework in TEAMS:
        if framework not in pythons:
            continue
        command = (pythons[framework], __file__, "--team", kind.name, framework)
        with tempfile.TemporaryDirectory(prefix="mast-trace-drawn-") as folder:
            environment = {**os.environ, "METAGPT_PROJECT_ROOT": folder}
            done = subprocess.run(
                command, check=True, capture_output=True, cwd=folder, env=environment
            )
        rows = json.loads(done.stdout.splitlines()[-1])
        for good, said, _ in rows:
            counts[good][said] += 1
        steps = Counter(step for good, _, step in rows if good == NUMBERS[0] and step >= 0)
        for count in counts.values():
            count["constant"] += max(steps.values())
        some = Counter(said for good, said, _ in rows if good == GOAL)
        sys.stderr.write(f"{kind.name} {framework}, {GOAL} good runs: {dict(some)}\n")
    return counts


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=[], metavar="FRAMEWORK=PATH")
    parser.add_argument("--team", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.team:
        sys.stdout.write(f"\n{json.dumps(list(rows_of(*chosen.team)))}\n")
        return
    found = measured(pythons_of(dict(each.split("=", 1) for each in chosen.python)))
    sys.stdout.write(
        "| good runs | failing | right first | wrong | silent | healthy accused | constant step |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for good, count in found.items():
        failing = count["right"] + count["wrong"] + count["silent"]
        shares = [f"{count[each] / failing:.1%}" for each in ("right", "wrong", "silent")]
        healthy = count["accused"] / (count["accused"] + count["spared"])
        told = " | ".join((*shares, f"{healthy:.1%}", f"{count['constant'] / failing:.1%}"))
        sys.stdout.write(f"| {good} | {failing} | {told} |\n")


if __name__ == "__main__":
    main()
