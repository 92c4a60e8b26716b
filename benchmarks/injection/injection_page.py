"""Writes the tables of the injection benchmark from its results: ``python benchmarks/injection/injection_page.py``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).resolve().parent
RESULTS: Final = HERE / "results.json"
PAGE: Final = HERE / "README.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
_LABELLED: Final = ("kept", "survived")
_VERDICTS: Final = ("kept", "repaired", "survived", "unproved", "censored")


def write(found: Sequence[dict[str, Any]]) -> None:
    """Write the tables into the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(found)}\n{END}{after}", "utf-8")


def tables(found: Sequence[dict[str, Any]]) -> str:
    """Return the tables by framework, by operator, and by failure mode."""
    return "\n".join((*_by_framework(found), "", *_by_operator(found), "", *_by_mode(found), ""))


def _by_framework(found: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield "| program | faults | kept | repaired | survived | unproved | censored | replays | live calls | seconds | forked |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    programs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        programs[each["program"]].append(each)
    for name, own in [*programs.items(), ("all", [*found])]:
        counts = Counter(fault["verdict"] for each in own for fault in each["faults"])
        sums = [
            round(sum(each[key] for each in own)) for key in ("replays", "live_calls", "seconds")
        ]
        forked = "" if name == "all" else "yes" if all(each["forked"] for each in own) else "no"
        numbers = [counts.total(), *(counts[verdict] for verdict in _VERDICTS), *sums]
        yield f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} | {forked} |"


def _by_operator(found: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield "| operator | faults | kept | decisive | survived | censored | likeliest step right |"
    yield "|---|---|---|---|---|---|---|"
    faults: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        for fault in each["faults"]:
            faults[fault["operator"]].append(fault)
    for name, own in sorted(faults.items()):
        counts = Counter(fault["verdict"] for fault in own)
        kept = [fault for fault in own if fault["verdict"] == "kept" and fault["examined"]]
        right = sum(_first_step(fault) == fault["examined"]["step"] for fault in kept)
        decisive = sum(fault["decisive"] for fault in own)
        yield (
            f"| {name} | {len(own)} | {counts['kept']} | {decisive} | {counts['survived']} | "
            f"{counts['censored']} | {f'{right} of {len(kept)}' if kept else '-'} |"
        )


def _first_step(fault: dict[str, Any]) -> int | None:
    first = fault["examined"]["first"]
    return first[0][0] if first else None


def _by_mode(found: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield "| mode | planted | found by rules | of kept | of survived | named where another was planted |"
    yield "|---|---|---|---|---|---|"
    examined = [
        fault
        for each in found
        for fault in each["faults"]
        if fault["examined"] and fault["verdict"] in _LABELLED
    ]
    for mode in sorted({fault["mode"] for fault in examined} - {""}):
        own = [fault for fault in examined if fault["mode"] == mode]
        parts = [
            own,
            *([fault for fault in own if fault["verdict"] == wanted] for wanted in _LABELLED),
            [fault for fault in examined if fault["mode"] != mode],
        ]
        told = [_named(mode, part) for part in parts]
        yield f"| {mode} | {len(own)} | {' | '.join(told)} |"


def _named(mode: str, faults: Sequence[dict[str, Any]]) -> str:
    named = sum(mode in fault["examined"]["modes"] for fault in faults)
    return f"{named} of {len(faults)}" if faults else "-"


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text("utf-8")))
