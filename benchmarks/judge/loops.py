"""Compares the judge's findings in undisturbed loops with the readings of people.

No fault was injected into these loops of one agent, and none is known to have succeeded. Five are drawn
from each file and kind of outcome; ``loops.toml`` holds the readings of them. The loops are judged as
`published.healthy` judges healthy runs: without their outcome, in every shape. A finding
is right if the reading has its mode, a decisive error if the reading has its step. Results go to
``loops.md``.

::

    MAST_TRACE_DATA=../shared/data python benchmarks/judge/loops.py
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib
from published import data_folder
from published.agent_loops import read_agent_loops
from published.healthy import SHAPES

from mast_trace_judge.local.layers import judge_by_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.study.labelled import LabelledRun

HERE = Path(__file__).parent
SEED, FROM_EACH = 40, 5
HEAD = """# What the judge says of undisturbed loops

Loops of one agent into which nobody injected a fault, and of which none is known to have succeeded
(arXiv 2608.02464; LangGraph, AutoGen and plain loops, models of 3 and 7 billion parameters). {drawn} of {runs} were drawn
by chance, five from each file and kind of outcome, and read one by one; the rules judge them with the outcome
withheld, in five shapes. A finding is right if its mode was read there, a decisive error if its step was.

{summary}
Made by `python benchmarks/judge/loops.py` from the readings in `loops.toml`.

| run | read | ended | modes read | found | right |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Found:
    """The judge's findings in a run, over all of its shapes.

    Attributes:
        modes: the highest probability of each failure mode.
        steps: the steps that it calls decisive.
        candidates: the likeliest steps if it is told that the run failed.
    """

    modes: Mapping[str, float]
    steps: frozenset[int]
    candidates: tuple[int, ...]


def main() -> None:
    """Draw and judge the loops, and write the page."""
    runs = undisturbed(data_folder())
    read = readings()
    chosen = drawn(runs)
    missing = [run.name for run in chosen if run.name not in read]
    if missing:
        raise SystemExit(f"Nobody has read {', '.join(missing)}.")
    found = {run.name: judged(run) for run in runs}
    names = [run.name for run in chosen]
    others = [name for name, each in found.items() if name not in names and accuses(each)]
    rows = "".join(row(name, read.get(name, {}), found[name]) for name in [*names, *others])
    page = HEAD.format(
        drawn=len(names), runs=len(runs), summary=summary(names, others, read, found)
    )
    (HERE / "loops.md").write_text(page + rows, "utf-8")


def undisturbed(data: Path) -> list[LabelledRun]:
    """Read the loops without an injected fault that are not known to have succeeded."""
    loops = read_agent_loops(data)
    return [run for run in loops if not run.extra["fault"] and run.success is not True]


def readings() -> dict[str, dict[str, Any]]:
    """Return the readings by the run's name."""
    stored = tomllib.loads((HERE / "loops.toml").read_text("utf-8"))
    return {run["id"]: run for run in stored["run"]}


def drawn(runs: Sequence[LabelledRun]) -> list[LabelledRun]:
    """Draw the same number of runs from each file and kind of outcome."""
    chance = random.Random(SEED)
    strata: dict[tuple[str, bool | None], list[LabelledRun]] = defaultdict(list)
    for run in runs:
        strata[run.subset, run.success].append(run)
    return [
        run
        for stratum in sorted(strata, key=str)
        for run in sorted(chance.sample(strata[stratum], FROM_EACH), key=lambda each: each.name)
    ]


def judged(run: LabelledRun) -> Found:
    """Judge a run without its outcome in every shape."""
    modes: dict[str, float] = {}
    steps = set()
    for shape in SHAPES.values():
        said = judge_by_rules(
            shape(replace(run.trajectory, outcome="", outcome_reason="", expected=""))
        )
        for mode in said.modes:
            modes[mode.code] = max(mode.probability, modes.get(mode.code, 0))
        if said.names_a_step and said.attribution.decisive is not None:
            steps.add(said.attribution.decisive.step)
    told = judge_by_rules(replace(run.trajectory, outcome="failure")).attribution.candidates
    return Found(modes, frozenset(steps), tuple(candidate.step for candidate in told))


def accuses(found: Found) -> bool:
    """Return whether the judge finds a failure mode or a decisive error in a run."""
    return bool(found.modes or found.steps)


def right(reading: Mapping[str, Any], found: Found) -> list[bool]:
    """Return for each finding whether the reading has it, too."""
    if not reading:
        return []
    modes = [code in reading.get("modes", ()) for code in found.modes]
    return modes + [step == reading.get("step") for step in found.steps]


def row(name: str, reading: Mapping[str, Any], found: Found) -> str:
    """Return a run's row of the table."""
    said = [f"{code} ({probability:.0%})" for code, probability in sorted(found.modes.items())]
    said += [f"decisive: step {step}" for step in sorted(found.steps)]
    correct = right(reading, found)
    verdict = "yes" if all(correct) else "no" if not any(correct) else "in part"
    cells = [
        name,
        reading.get("what", "not read"),
        reading.get("end", ""),
        ", ".join(reading.get("modes", ())) or "none",
        ", ".join(said) or "nothing",
        verdict if correct else "",
    ]
    return f"| {' | '.join(cells)} |\n"


def summary(
    names: Sequence[str],
    others: Sequence[str],
    read: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, Found],
) -> str:
    """Return the summary of the table."""
    ends = Counter(read[name]["end"] for name in names)
    told = ", ".join(f"{ends[end]} {end}" for end in ("right", "wrong", "incomplete", "doubtful"))
    accused = [name for name in names if accuses(found[name])]
    true = sum(all(right(read[name], found[name])) for name in accused)
    steps = [name for name in names if "step" in read[name]]
    first = sum(found[name].candidates[:1] == (read[name]["step"],) for name in steps)
    three = sum(read[name]["step"] in found[name].candidates for name in steps)
    return (
        f"* How they ended, as read: {told}.\n"
        f"* Something is found in {len(accused)} of the {len(names)}"
        + (f", and all of it is right in {true}" if accused else "")
        + f"; a decisive error is named in {sum(bool(found[name].steps) for name in names)}.\n"
        f"* Something is found in {len(others)} of the runs that were not drawn"
        + ("; these are the last rows of the table.\n" if others else ".\n")
        + f"* In {len(steps)} a step decided what went wrong. Told that they failed, the judge has it as "
        f"its first candidate in {first}, among three in {three}.\n"
    )


if __name__ == "__main__":
    main()
