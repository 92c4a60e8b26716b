"""Writes the tables of ``README.md`` and of the page for users from the stored results.

::

    python benchmarks/replay/replay_page.py
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
PAGE, RESULTS = HERE / "README.md", HERE / "results.json"
TEAM, COSTS, SECONDS = HERE / "team.json", HERE / "costs.json", HERE / "seconds.json"
CHECKS = 6
"""Replays without a live call: the verification and five scores."""

BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
HEAD = (
    "| class | runs | origin right | wrong | none | point right | wrong | bound | truth refuted | replays | live calls | of re-running all | calls for a right one |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
)
PEERS = (
    "| class | ours: right / wrong | earliest flip | calls | first zero, staged Fisher | calls |",
    "|---|---|---|---|---|---|",
)


def chosen_of(parser: Any, names: Sequence[str]) -> tuple[Any, list[int]]:
    """Return the options of the command line, and the numbers of the chosen classes."""
    parser.add_argument("--class", dest="kinds", action="append", help="part of a class's name")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    chosen = parser.parse_args()
    kinds = chosen.kinds or [""]
    return chosen, [n for n, name in enumerate(names) if any(each in name for each in kinds)]


def upper(hits: int, runs: int) -> float:
    """Return the one-sided upper 95 % bound of a rate (Clopper and Pearson 1934)."""
    if hits >= runs:
        return 1.0
    low, high = hits / runs, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if _at_most(hits, runs, middle) > 0.05:
            low = middle
        else:
            high = middle
    return high


def lower(hits: int, runs: int) -> float:
    """Return the one-sided lower 95 % bound of a rate."""
    return 1 - upper(runs - hits, runs)


def _at_most(hits: int, runs: int, rate: float) -> float:
    """Return the probability of at most so many hits."""
    if not 0 < rate < 1:
        return 1 - rate
    whole, hit, missed = math.lgamma(runs + 1), math.log(rate), math.log1p(-rate)
    return sum(
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * hit + (runs - k) * missed
        )
        for k in range(hits + 1)
    )


def bound(result: dict[str, Any]) -> str:
    """Return the bound that a class is held to; empty without one."""
    runs = result["runs"]
    if not result["something"]:
        return f"wrong <= {upper(false(result), runs):.1%}"
    return (
        f"right >= {lower(result['origin'].get('right', 0), runs):.1%}" if result["bound"] else ""
    )


def false(result: dict[str, Any]) -> int:
    """Return the number of runs in which a step was confirmed falsely."""
    return int(result["origin"].get("wrong", 0))


def line(result: dict[str, Any]) -> str:
    """Return a class's line of the first table."""
    runs, origin, point = result["runs"], result["origin"], result["point"]
    right = origin.get("right", 0)
    cells = [
        result["name"],
        f"{runs:,}",
        *(f"{origin.get(each, 0) / runs:.1%}" for each in ("right", "wrong", "none")),
        *(f"{point.get(each, 0) / runs:.1%}" for each in ("right", "wrong")),
        bound(result),
        f"{result['cleared'] / runs:.1%}",
        f"{result['replays']:.0f}",
        f"{result['calls']:,.0f}",
        f"{result['calls'] / max(1, (result['replays'] - CHECKS) * result['length']):.0%}",
        f"{result['calls'] * runs / right:,.0f}" if right else "-",
    ]
    return f"| {' | '.join(cells)} |"


def peers(result: dict[str, Any]) -> str:
    """Return a class's line of the second table."""
    cells = [result["name"], _shares(result)]
    for each in result["baselines"].values():
        cells += [_shares(each), f"{each['calls']:,.0f}"]
    return f"| {' | '.join(cells)} |"


def _shares(result: dict[str, Any]) -> str:
    runs, origin = result["runs"], result["origin"]
    return f"{origin.get('right', 0) / runs:.1%} / {origin.get('wrong', 0) / runs:.1%}"


def tables(results: list[dict[str, Any]]) -> str:
    """Return both tables."""
    words = [(each["name"], each["status"]) for each in results]
    conclusions = [
        f"- {name}: " + ", ".join(f"{word} {count}" for word, count in sorted(status.items()))
        for name, status in words
    ]
    lines = [*HEAD, *map(line, results), "", "### Beside simpler methods", "", *PEERS]
    lines += [*map(peers, results), "", "### Words of the conclusions", "", *conclusions]
    return "\n".join(lines) + "\n"


def team(stored: dict[str, Any]) -> str:
    """Return the table of the real team: its runs, beside the simulated ones and their bounds."""
    from team_bounds import bounds

    lines = [
        "| class | real runs | right | wrong | none | replays | live calls | simulated: right | wrong | none | replays | live calls | bounds of the real runs |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, each in stored.items():
        real, simulated = each["real"], each["simulated"]
        least, most = bounds(simulated, real["runs"])
        ends = ("right", "wrong", "none")
        cells = [
            name,
            f"{real['runs']}",
            *(f"{real['origin'].get(end, 0)}" for end in ends),
            *(f"{real[key]:,.0f}" for key in ("replays", "calls")),
            *(f"{simulated['origin'].get(end, 0) / simulated['runs']:.1%}" for end in ends),
            *(f"{simulated[key]:,.0f}" for key in ("replays", "calls")),
            f"right >= {least}, wrong <= {most}" if least else f"wrong <= {most}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def costs(stored: dict[str, Any]) -> str:
    """Return the table of what a right confirmation costs, beside running everything again."""
    lines = [
        "| class | right | live calls for a right one | US dollars | re-running all: calls | US dollars | share of the dollars |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in stored["classes"]:
        right = each["right"]
        cells = [
            each["name"],
            f"{right / each['runs']:.1%}",
            f"{each['calls'] / right:,.0f}",
            f"{each['usd'] / right:.2f}",
            f"{each['whole_calls'] / right:,.0f}",
            f"{each['whole_usd'] / right:.2f}",
            f"{each['usd'] / each['whole_usd']:.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def seconds(stored: list[dict[str, Any]]) -> str:
    """Return the table of seconds of a replay: medians, elapsed and of the processor."""
    ways = list(dict.fromkeys(each["way"] for each in stored))
    lines = [
        "| program | " + " | ".join(f"{way}: processor | elapsed" for way in ways) + " |",
        "|---|" + "---|---|" * len(ways),
    ]
    for name in dict.fromkeys(each["program"] for each in stored):
        own = {each["way"]: each for each in stored if each["program"] == name}
        cells = [f"{own[way]['busy']:.2f} | {own[way]['elapsed']:.2f}" for way in ways]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


PARTS: dict[str, tuple[Path, Callable[[Any], str]]] = {
    "team": (TEAM, team),
    "costs": (COSTS, costs),
    "seconds": (SECONDS, seconds),
}
"""Tables of `PAGE` with marks of their own: their results, and the function that makes them."""


def part(name: str) -> str:
    """Return a table of `PARTS` between its marks."""
    results, made = PARTS[name]
    return f"<!-- {name} -->\n\n{made(json.loads(results.read_text()))}\n<!-- end of {name} -->\n"


def write() -> None:
    """Put the stored results into the pages."""
    results = json.loads(RESULTS.read_text())
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{tables(results)}\n{END}{rest.split(END)[1]}")
    for name, (stored, _) in PARTS.items():
        if stored.exists():
            before, rest = PAGE.read_text().split(f"<!-- {name} -->\n")
            after = rest.split(f"<!-- end of {name} -->\n")[1]
            PAGE.write_text(f"{before}{part(name)}{after}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    write()
