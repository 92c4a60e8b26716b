"""Writes the table of truth of the injection benchmark: ``python benchmarks/injection/truth_page.py``."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.study.agreement import wilson
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HERE = Path(__file__).resolve().parent
FILE: Final = HERE / "truth.json"
PAGE: Final = HERE / "README.md"
BEGIN, END = "<!-- truth -->", "<!-- end of truth -->"
MOST_WRONG: Final = 0.05
"""The share of wrong labels above which an operator is marked as uncertain."""


def is_wrong(label: Mapping[str, Any]) -> bool:
    """Return whether a label names another step than the true origin of its run, or there is none."""
    return bool(label["origin"] != label["step"])


def kept(labels: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the labels that `mast-trace inject` keeps: those whose stored failure had not made its fault good."""
    return [each for each in labels if each["verdict"] == "kept"]


def wrong_operators(labels: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the operators that are to be marked by these labels."""
    return {
        name
        for name, own in _by_operator(kept(labels)).items()
        if sum(map(is_wrong, own)) > MOST_WRONG * len(own)
    }


def table(labels: Sequence[Mapping[str, Any]]) -> str:
    """Return the table by operator, those of failure modes first."""
    return "\n".join(_lines(labels)) + "\n"


def _lines(labels: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield (
        "| operator | success before, after the fault | without the check: labels | wrong | labels kept | wrong | "
        "share and interval (95 %) | mark |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    marked, by_operator = wrong_operators(labels), _by_operator(labels)
    for name in [*OPERATORS, "all"]:
        every = labels if name == "all" else by_operator.get(name, [])
        if not (own := kept(every)):
            yield f"| {name} | - | {len(every)} | - | 0 | - | not examined | |"
            continue
        before, after = (
            sum(each[key] for each in every) / len(every) for key in ("before", "after")
        )
        wrong = sum(map(is_wrong, own))
        around = wilson(wrong, len(own))
        cells = (
            name,
            f"{before:.2f}, {after:.2f}",
            *(len(every), sum(map(is_wrong, every)), len(own), wrong),
            f"{100 * wrong / len(own):.0f} % ({100 * around.low:.0f} to {100 * around.high:.0f})",
            "uncertain" if name in marked else "",
        )
        yield f"| {' | '.join(map(str, cells))} |"
    checks, replays = (sum(each[key] for each in labels) for key in ("checks", "replays"))
    yield ""
    yield (
        f"The check takes {checks / len(labels):.1f} replays of a part of the run for a label, beside "
        f"{replays / len(labels):.1f} that decide it."
    )


def _by_operator(labels: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in labels:
        found[each["operator"]].append(each)
    return found


def write(labels: Sequence[Mapping[str, Any]]) -> None:
    """Store the labels, one a line, and write their table into the page."""
    lines = ",\n".join(json.dumps(each) for each in labels)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(labels)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    write(json.loads(FILE.read_text("utf-8")))
