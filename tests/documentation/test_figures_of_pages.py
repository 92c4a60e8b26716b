"""Figures on the pages equal those of the benchmarks' pages; unexamined modes are those without a rule."""

from __future__ import annotations

import re

from documentation.mode_examples import NO_RULE
from documentation.rule_tables import ROOT

from mast_trace_judge.local.rules import RULES
from mast_trace_judge.local.rules._registry import code_of, explains_failures, needs_end

REPORT = "benchmarks/judge/report.md"


def text(path: str) -> str:
    """Return a page as it is."""
    return (ROOT / path).read_text("utf-8")


def page(path: str) -> str:
    """Return a page as one line of words, so that its line breaks do not matter."""
    return " ".join(text(path).split())


def row(path: str, begin: str, below: str = "") -> list[str]:
    """Return the cells of the first row below ``below`` that begins with ``begin``."""
    rows = text(path).partition(below)[2] if below else text(path)
    line = next(line for line in rows.splitlines() if line.startswith(f"| {begin}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def percent(cell: str) -> str:
    return f"{float(cell.split(maxsplit=1)[0]):.0f} %"


def best(column: int, below: str) -> str:
    """Return the best share among the baselines that do not read the run, in percent."""
    baselines = ("random step", "always step 0", "always step 1", "most frequent step")
    return percent(
        max(
            (row(REPORT, name, below)[column] for name in baselines),
            key=lambda cell: float(cell.split()[0]),
        )
    )


def test_how_often_the_decisive_step_is_right() -> None:
    written, built = "## algorithm-generated", "## hand-crafted"
    own = [row(REPORT, "profile, cross-validated", each) for each in (written, built)]
    told = page("docs/understand/decisive-error.md")
    assert (
        f"The likeliest step is the right one in {percent(own[0][3])} of 70 algorithm-generated runs and in "
        f"{percent(own[1][3])} of 37 hand-crafted ones, the likeliest agent in {percent(own[0][2])} and "
        f"{percent(own[1][2])}."
    ) in told
    assert (
        f"gets the step in {best(3, written)} and {best(3, built)}, the agent in "
        f"{best(2, written)} and {best(2, built)}."
    ) in told
    people = re.search(r"28 runs\): exact step ([\d.]+) %", page(REPORT))
    assert people is not None
    assert f"named the same step in {float(people[1]):.0f} % of them." in told


def test_how_often_a_step_is_proved() -> None:
    told = page("docs/understand/confirmation.md")
    table = "benchmarks/replay/README.md"
    right, fewer, least = (row(table, f"single error, V .{rate} ")[2] for rate in (9, 6, 3))
    assert f"is proved in {right} of the runs where" in told
    assert f"At .6 it is {fewer}, and at .3 {least}." in told
    wrong = re.findall(
        r"^\| nothing planted[^|]*\| \d+ \| [^|]+\| ([\d.]+)% ", text(table), re.MULTILINE
    )
    assert f"a wrong step in more than {max(map(float, wrong))}%." in told


def test_how_often_a_collector_was_killed() -> None:
    kills = row("benchmarks/durability/README.md", "**all**")
    assert kills[5:7] == ["0", "0"]
    assert f"{kills[1]} kills, {kills[3]} acknowledged spans, none lost, none doubled" in page(
        "docs/understand/durability.md"
    )


def test_sizes() -> None:
    told = page("docs/operate/sizing.md")
    flood = row("benchmarks/ingest/README.md", "a flood of nine minutes")
    fast = row("benchmarks/ingest/README.md", "agent (3,921")
    assert f"{flood[1]} (flood of nine minutes) to {fast[1].split(' to ')[1]}" in told
    assert f"{flood[6]} MiB after nine minutes of flood" in told
    for kind, words in (
        ("algorithm-generated", "takes {} tokens in {} calls"),
        ("hand-crafted", "{} in {}"),
    ):
        tokens = row("benchmarks/judge/tokens.md", kind)
        assert words.format(tokens[2], tokens[5]) in told
    medians = queries()
    names = ("runs", "cost_of_runs", "costs")
    listed, priced, all_priced = (medians[name] / 1000 for name in names)
    assert f"the list of runs takes {listed:.2f} s and its costs {priced:.2f}." in told
    assert "Most other named queries take less than 0.1" in told
    assert sum(median < 100 for median in medians.values()) > len(medians) / 2
    assert f"the costs of all 36,000 runs of a day {all_priced:.1f}" in told


def queries() -> dict[str, int]:
    """Return the median milliseconds of each named query at ten million spans."""
    told = text("benchmarks/queries/README.md")
    rows = re.findall(r"^\| ([a-z_]+) \| .* \| (\d+) \| \d+ \| [\d.]+ \|$", told, re.MULTILINE)
    return {name: int(median) for name, median in rows}


def test_what_is_not_examined() -> None:
    looked = {code_of(rule) for rule in RULES}
    unknown = looked - {code_of(rule) for rule in RULES if not explains_failures(rule)}
    without_end = looked - {code_of(rule) for rule in RULES if not needs_end(rule)}
    told = (ROOT / "docs" / "understand" / "calibration.md").read_text("utf-8")
    assert f"| {', '.join(NO_RULE)} without a model |" in told
    row = f"| {', '.join(sorted(unknown))} in a run that is not known to have failed |"
    assert (row in told) == bool(unknown)
    assert f"| {', '.join(sorted(without_end))} in a run of which no end was seen |" in told
    shown = ", ".join(sorted({*NO_RULE, *unknown}))
    assert f"Not examined: {shown}.\n" in told
