"""Counts how often each sign of `mast_trace_judge.look_first` names the decisive step of labelled failures.

::

    MAST_TRACE_DATA=../shared/data python benchmarks/judge/evidence.py

Natural failures (Who&When, tau-bench retail) and loops into which somebody planted a fault are counted
apart. A profile is counted on runs that it has not seen. Beside each sign stands the best constant: the
one step that is right most often on the same runs, chosen with their labels. A sign that was tried on
five natural failures, or else on ten planted ones, and is right no more often than that is no evidence. Writes ``measured.json`` of the judge and
``evidence.md``.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from published import data_folder
from published.agent_loops import read_agent_loops
from published.tau_retail import read_tau_retail
from published.who_and_when import SUBSETS, read_who_and_when

import mast_trace_judge.local.attribution as package
from mast_trace_judge.local.attribution.cascade import answerable
from mast_trace_judge.local.attribution.profile import shipped_profiles
from mast_trace_judge.local.rules import findings_by_rule
from mast_trace_judge.look_first import STORED, recorded_signs, rule_signs
from mast_trace_judge.study.bench.methods import held_out, trained
from mast_trace_judge.study.training import REPEATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.study.labelled import LabelledRun

    Tries = list[tuple[int, int]]
    """The named step and the labelled one, for each run in which a sign named one."""

FEWEST = 5
"""Runs below which a sign that is behind the constant is not called worse: chance decides there."""
FEWEST_PLANTED = 10
"""The same for planted faults, which lie where the natural ones do not: they decide only where these are few."""
PROFILES = dict(zip(("ag2-captain", "magentic-one"), SUBSETS, strict=True))
HEAD = """# How often each sign names the decisive step

Labelled failures, of which the judge was told that they failed. A place counts if it is exactly the labelled step. The
best constant is the one step that is right most often on the same runs, chosen with their labels. A sign that does no
better on five natural failures, or else on ten planted ones, is no evidence and is not shown, unless the record itself shows
the slip (`exact`). The planted faults lie nearly always in the third or fourth step. Profiles are counted on runs that they
have not seen. Signs that are not listed were found in none of these runs.

Made by `python benchmarks/judge/evidence.py`.

| sign | natural failures | best constant | planted faults | best constant | shown |
|---|---|---|---|---|---|
"""


def main() -> None:
    """Count, and write both files."""
    data = data_folder()
    sets = {subset: read_who_and_when(data, subset) for subset in SUBSETS}
    natural = [*(run for runs in sets.values() for run in runs), *read_tau_retail(data)]
    tried = {"natural": signs(natural), "planted": signs(read_agent_loops(data))}
    rows, stored = [], {}
    for key in sorted({*tried["natural"], *tried["planted"]}):
        parts = [tried[name].get(key, []) for name in ("natural", "planted")]
        counts = [(right(tries), len(tries), constant(tries)) for tries in parts]
        stored[key], row = counted(key, counts)
        rows.append(row)
    for profile in shipped_profiles():
        runs = sets[PROFILES[profile.name]]
        share = [
            sum(each.steps[0] == run.step for each in each_time) / len(each_time)
            for run, each_time in zip(runs, trained(runs, held_out(runs, REPEATS)), strict=True)
        ]
        best = constant([(0, run.step) for run in runs if run.step is not None])
        key = f"profile {profile.name}"
        stored[key], row = counted(key, [(round(sum(share)), len(runs), best), (0, 0, 0)])
        rows.append(row)
    Path(package.__path__[0], STORED).write_text(json.dumps(stored, indent=2) + "\n")
    Path(__file__).with_name("evidence.md").write_text(HEAD + "".join(rows))
    print(HEAD + "".join(rows))


def signs(runs: Sequence[LabelledRun]) -> Mapping[str, Tries]:
    """Return the tries of each sign on the runs with a labelled step."""
    found: dict[str, Tries] = defaultdict(list)
    for run in runs:
        if run.step is not None:
            for key, step in _named(run):
                found[key].append((step, run.step))
    return found


def _named(run: LabelledRun) -> Iterator[tuple[str, int]]:
    told = replace(run.trajectory, outcome="failure")
    found, actors = findings_by_rule(told), answerable(told.steps)
    for sign in (*recorded_signs(told, found, actors), *rule_signs(told, found, actors)):
        yield sign.key, sign.step


def right(tries: Tries) -> int:
    """Return how many tries named the labelled step."""
    return sum(named == labelled for named, labelled in tries)


def constant(tries: Tries) -> int:
    """Return how often the best constant step is right on the runs of these tries."""
    return max(Counter(labelled for _, labelled in tries).values(), default=0)


def counted(key: str, counts: Sequence[tuple[int, int, int]]) -> tuple[dict[str, int | bool], str]:
    """Return what is stored of a sign, and its row of the table."""
    (right_, cases, best), (planted_right, planted_cases, planted_best) = counts
    shown = right_ > best if cases >= FEWEST else True
    if cases < FEWEST and planted_cases >= FEWEST_PLANTED:
        shown = planted_right > planted_best
    cells = [f"{r}/{n} | {b}" if n else " | " for r, n, b in counts]
    return {
        "right": right_,
        "cases": cases,
        "planted_right": planted_right,
        "planted_cases": planted_cases,
        "is_evidence": shown,
    }, f"| {key} | {' | '.join(cells)} | {'yes' if shown else 'no'} |\n"


if __name__ == "__main__":
    main()
