"""Judges sixty generated failing runs with known truth, and their healthy twins, by the local layers.

::

    python benchmarks/faults/run.py [--told] [--seed N] [--show ID]
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from generate import Case, cases

from mast_trace_dashboards.cli.commands.judge import unstored
from mast_trace_judge.assembly import assemble
from mast_trace_judge.gate.assertions import step_line
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import Verdict

HEAD = """| {by} | cases | first place right | wrong | none | best constant | DECISIVE right | wrong | twins suspect | exact | DECISIVE |
|---|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass
class Counts:
    """Counts of cases: see `HEAD`. The best constant is the one step that is right most often."""

    cases: int = 0
    right: int = 0
    wrong: int = 0
    none: int = 0
    constant: int = 0
    asserted_right: int = 0
    asserted_wrong: int = 0
    twins_suspect: int = 0
    twins_exact: int = 0
    twins_decisive: int = 0
    steps: Counter[int] = field(default_factory=Counter)

    def add(self, case: Case, said: Verdict, twin: Verdict) -> None:
        """Count a case: its verdict, and that of its twin."""
        first = next(iter(said.look_first), None)
        found = first is not None and (first.step, first.agent) == (case.step, case.agent)
        self.cases += 1
        self.right += found
        self.wrong += first is not None and not found
        self.none += first is None
        self.steps[case.step] += 1
        self.constant = max(self.steps.values())
        if said.decisive is not None:
            self.asserted_right += said.decisive.step == case.step
            self.asserted_wrong += said.decisive.step != case.step
        self.twins_suspect += twin.is_suspect
        self.twins_exact += any(mode.evidence is Evidence.EXACT for mode in twin.modes)
        self.twins_decisive += twin.decisive is not None

    def row(self, name: str) -> str:
        """Return the counts as a row of the table."""
        counts = [each for each in vars(self).values() if isinstance(each, int)]
        return f"| {name} | {' | '.join(map(str, counts))} |\n"


def main() -> None:
    """Judge all, and print both tables."""
    parser = argparse.ArgumentParser(description="Judges generated faults and their healthy twins.")
    parser.add_argument("--told", action="store_true", help="The judge knows which runs failed.")
    parser.add_argument("--seed", type=int, default=1, help="Wording, names, values and variants.")
    parser.add_argument("--show", default="", help="Print this case and its verdict instead.")
    given = parser.parse_args()
    made = list(cases(given.seed))
    if given.show:
        shown(next(case for case in made if case.id == given.show), told=given.told)
        return
    by_team: dict[str, Counts] = defaultdict(Counts)
    by_kind: dict[str, Counts] = defaultdict(Counts)
    whole = Counts()
    for case in made:
        said, twin = judged(case, told=given.told)
        for counts in (by_team[case.team], by_kind[case.kind], whole):
            counts.add(case, said, twin)
    told = "told" if given.told else "not told"
    print(f"Seed {given.seed}, outcome {told}.\n")
    print(HEAD.format(by="team") + table(by_team.items()) + whole.row("all"))
    print(HEAD.format(by="kind") + table(by_kind.items()))


def judged(case: Case, *, told: bool) -> tuple[Verdict, Verdict]:
    """Return the verdicts on the failing run and on its twin."""
    outcomes = ("failure", "success") if told else ("", "")
    failing, healthy = (
        _verdict(replace(run, outcome=outcome))
        for run, outcome in zip((case.failing, case.healthy), outcomes, strict=True)
    )
    return failing, healthy


def table(counts: Iterable[tuple[str, Counts]]) -> str:
    """Return one row for each name."""
    return "".join(each.row(name) for name, each in counts)


def shown(case: Case, *, told: bool) -> None:
    """Print a case, its twin and what is said of both."""
    print(f"{case.id}, {case.kind}, {', '.join(case.modes)}: {case.note}")
    print(f"The error is step {case.step}, {case.agent}.\n\n{case.failing.task}")
    for run, said in zip((case.failing, case.healthy), judged(case, told=told), strict=True):
        print("", *map(step_line, run.steps), "", sep="\n")
        print(*(f"look first: step {each.step}, {each.why}" for each in said.look_first), sep="\n")
        print(
            *(f"{mode.code} {mode.evidence.value}: {mode.reason}" for mode in said.modes), sep="\n"
        )


def _verdict(run: Trajectory) -> Verdict:
    return assemble(unstored(run), run, judge_by_rules(run), version="faults")


if __name__ == "__main__":
    main()
