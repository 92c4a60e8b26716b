"""Writes the table of the README from the recorded rounds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from cases import Outcome, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- kills: begin -->\n", "<!-- kills: end -->\n"
_COLUMNS: dict[str, Callable[[Outcome], int]] = {
    "kills": lambda each: each.kills,
    "starts": lambda each: each.starts,
    "acknowledged spans": lambda each: each.acknowledged,
    "unanswered": lambda each: each.unanswered,
    "lost": lambda each: each.lost,
    "doubled": lambda each: each.doubled,
    "failed starts": lambda each: each.failed_starts,
}


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the rounds summed up: by kind, command and protocol, and in all."""
    outcomes = list(outcomes)
    head = f"| case | {' | '.join(_COLUMNS)} |\n|---|{'---:|' * len(_COLUMNS)}\n"
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for name in ("kind", "command", "protocol"):
        for each in outcomes:
            groups[f"`{each.command}`" if name == "command" else getattr(each, name)].append(each)
    rows = [_row(name, group) for name, group in groups.items()]
    commits = len({each.commit for each in outcomes})
    hours = sum(each.seconds for each in outcomes) / 3600
    note = f"\n{len(outcomes)} rounds at {commits} commits, {hours:.1f} hours in all.\n"
    return head + "".join([*rows, _row("**all**", outcomes)]) + note


def _row(name: str, outcomes: list[Outcome]) -> str:
    sums = [f"{sum(map(column, outcomes)):,}" for column in _COLUMNS.values()]
    return f"| {name} | {' | '.join(sums)} |\n"


def write_report(readme: Path = README) -> None:
    """Put the table between its marks."""
    head, _, rest = readme.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    readme.write_text(f"{head}{BEGIN}\n{table(recorded())}\n{END}{tail}")


if __name__ == "__main__":
    write_report()
