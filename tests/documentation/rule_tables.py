"""Makes the tables on the pages on failure modes from the registered rules and the benchmarks' figures."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_judge.local.rules import RULES
from mast_trace_judge.local.rules._registry import code_of, explains_failures, needs_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.local.rules._registry import Rule

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "tests" / "judge" / "rules" / "findings.golden.json"
"""Golden file of each rule's findings in the runs of its tests."""
HEAD = "| rule | says | applied to |\n|---|---|---|"
NONE = "No rule looks for this mode"
"""Text in place of the table for a mode that only a model examines."""
_FINDING = re.compile(r'^(\w+): (\{"code".*\})$')
_APPLIED = {
    (False, False): "every run",
    (True, False): "runs that failed",
    (False, True): "runs of which the end was seen",
    (True, True): "runs that failed, of which the end was seen",
}


def examined_by(code: str) -> str:
    """Return the table of the rules that look for a mode; empty where none does."""
    rows = [_row(rule) for rule in RULES if code_of(rule) == code]
    return "\n".join([HEAD, *rows]) if rows else ""


def _row(rule: Rule) -> str:
    applied = _APPLIED[explains_failures(rule), needs_end(rule)]
    evidence = found_as(rule.__name__)
    assert evidence, f"no run of tests/judge/rules shows {rule.__name__}"
    return f"| `{rule.__name__}` | {' or '.join(sorted(evidence))} | {applied} |"


def found_as(name: str) -> set[str]:
    """Return a rule's kinds of evidence in the tests."""
    return _evidence().get(name, set())


def _evidence() -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for runs in json.loads(FOUND.read_text("utf-8")).values():
        for line in (line for run in runs for line in run):
            if told := _FINDING.match(line):
                found[told[1]].add(json.loads(told[2])["evidence"])
    return found


_MEASURED = ROOT / "benchmarks" / "judge"
_OVERVIEW = (
    "| mode | examined by | people / rules | both | kappa (95 %) |\n|---|---|---:|---:|---:|"
)


def overview(pages: Mapping[str, str]) -> str:
    """Return the table of all modes: their links, who examines them, and the report's row on people and rules."""
    rows = [_OVERVIEW]
    for code, link in pages.items():
        examined = "rules, a model" if examined_by(code) else "a model alone"
        _, _, _, yes, both, kappa, *_ = next(
            _cells(line)
            for line in _lines("report.md")
            if line.startswith(f"| {code} ") and "| people / rules |" in line
        )
        rows.append(f"| {link} | {examined} | {yes} | {both} | {kappa} |")
    return "\n".join(rows)


def claims() -> Mapping[str, tuple[str, str]]:
    """Return the mode and the basis of each rule in the benchmark page's tables of claims."""
    rows = [_cells(line) for line in _lines("rules.md") if re.match(r"\| \d\.\d \|", line)]
    return {cells[1].strip("`"): (cells[0], cells[-1]) for cells in rows}


def _lines(name: str) -> list[str]:
    return (_MEASURED / name).read_text("utf-8").splitlines()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
