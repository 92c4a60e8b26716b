"""The table of results in ``README.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"


def write(results: dict[str, Any]) -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(results) + END + rest.partition(END)[2])


def table(results: dict[str, Any]) -> str:
    """Return the table of results in Markdown."""
    lines = ["| modules | mutants | killed | harmless | open | killed of the harmful | measured |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, r in sorted(results.items()):
        lines.append(
            f"| {name} | {r['mutants']} | {r['killed']} | {r['harmless']} | {len(r['open'])} | "
            f"{r['percent']} % | {r['date']}, {r['commit']} |"
        )
    return "\n".join([*lines, ""])
