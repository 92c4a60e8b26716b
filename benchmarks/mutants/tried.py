"""Verdicts on mistakes, as ``tried.jsonl`` keeps them, and the page that is made of them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import tomllib

HERE = Path(__file__).parent
TRIED = HERE / "tried.jsonl"
PAGE = HERE / "results.md"


@dataclass(frozen=True)
class Tried:
    """A mistake with its verdict, a line of ``tried.jsonl``.

    Attributes:
        file: of the mistake, relative to the project.
        scope: hash of the function or statement around it.
        number: its place among the mistakes of that scope.
        line: its line when it was tried.
        was: the text that was changed.
        is_now: the text in its place.
        verdict: `killed`, `survived`, or `untested` where no test goes through it.
        by: the test that noticed.
        date: of the verdict.
        commit: of the sources.
    """

    file: str
    scope: str
    number: int
    line: int
    was: str
    is_now: str
    verdict: str
    by: str
    date: str
    commit: str

    @property
    def key(self) -> tuple[str, str, int]:
        """The same for the same mistake in the same function."""
        return self.file, self.scope, self.number


def known() -> list[Tried]:
    """Return the last verdict on each mistake."""
    rows = TRIED.read_text("utf-8").splitlines() if TRIED.exists() else []
    return list({each.key: each for row in rows for each in [Tried(*json.loads(row))]}.values())


def harmless() -> list[dict[str, str]]:
    """Return the rows of ``harmless.toml``."""
    rows: list[dict[str, str]] = tomllib.loads((HERE / "harmless.toml").read_text())["mistakes"]
    return rows


def is_harmless(tried: Tried, rows: list[dict[str, str]]) -> bool:
    """Return whether somebody has written why a mistake does no harm."""
    return any(
        fnmatch(tried.file, row["file"])
        and row["was"] in tried.was
        and row["is_now"] in tried.is_now
        for row in rows
    )


def page() -> str:
    """Return the results by module, in Markdown."""
    rows = harmless()
    by_file: defaultdict[str, list[Tried]] = defaultdict(list)
    for each in known():
        by_file[each.file].append(each)
    lines = [
        "# Results by module",
        "",
        "Made of `tried.jsonl` by `run.py table`.",
        "",
        "| module | tried | noticed | harmless | open | last |",
        "|---|---|---|---|---|---|",
    ]
    for file, tried in sorted(by_file.items()):
        alive = [each for each in tried if each.verdict != "killed"]
        spared = sum(is_harmless(each, rows) for each in alive)
        last = max(tried, key=lambda each: each.date)
        counts = (len(tried), len(tried) - len(alive), spared, len(alive) - spared)
        cells = " | ".join(map(str, counts))
        lines.append(f"| {file} | {cells} | {last.date}, {last.commit} |")
    return "\n".join([*lines, ""])


def write_page() -> None:
    """Write it."""
    PAGE.write_text(page())
