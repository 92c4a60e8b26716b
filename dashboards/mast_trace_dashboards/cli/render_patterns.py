"""Patterns in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from mast_trace_dashboards import pattern_words as words
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from mast_trace_dashboards.found_pattern import FoundPattern

_SHOWN_ID = 8
_TITLE = 90


def listing(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of patterns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("ID", "PATTERN", "SHARE", "TREND", "STATE", "LAST SEEN", "FAILED / OTHERS"):
        table.add_column(name, overflow="fold")
    for row in rows:
        told = words.title(row)
        if row["Sentence"]:
            told = f"{told}\n  {words.named(row)}"
        if row["Text"]:
            told = f"{told}\n  {words.text(row)}"
        table.add_row(
            plain(row["PatternId"][:_SHOWN_ID]),
            plain(told),
            plain(words.share(row)),
            plain(row["Trend"]),
            plain(words.state(row)),
            plain(f"{row['LastSeen']:%Y-%m-%d %H:%M}"),
            plain(_failed(row)),
        )
    return table


def _failed(row: Mapping[str, Any]) -> str:
    """Return both shares of recorded failures, and whether they differ."""
    known = row["Failed"] + row["Succeeded"]
    rest = row["KnownFailed"] + row["KnownSucceeded"] - known
    if row["PValue"] is None or not rest or not known:
        return "unknown"
    own, others = row["Failed"] / known, (row["KnownFailed"] - row["Failed"]) / rest
    return f"{own:.0%} / {others:.0%}, p = {row['Corrected']:.2g}"


def details(found: FoundPattern, cost: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the parts of one pattern's page.

    Args:
        found: the pattern.
        cost: the row of `cost_totals` on its newest runs; empty if unknown.
    """
    row = found.row
    yield plain(words.title(row), style="bold")
    for told in (words.named(row), words.nameless(row)):
        if told:
            yield plain(told)
    for quote in row["Quotes"]:
        yield plain(f'  "{quote}"', style="dim")
    facts = Table.grid(padding=(0, 3))
    for name, told in _facts(row, cost, len(found.runs)):
        facts.add_row(plain(name), plain(told))
    yield facts
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("RUN", "STARTED", "SERVICE", "VERSION", "OUTCOME", "STEP", "CONFIRMED"):
        table.add_column(name, overflow="fold")
    for run in found.runs:
        replayed = "confirmed" if run["Confirmed"] else "not confirmed"
        table.add_row(
            plain(run["TraceId"]),
            f"{run['RunStart']:%Y-%m-%d %H:%M:%S}",
            plain(run["ServiceName"]),
            plain(run["Version"] or "-"),
            plain(run["Outcome"] or "not recorded"),
            str(run["Step"]),
            replayed if run["Replayed"] else "-",
        )
    yield ""
    yield table
    yield ""
    for effect, line in found.commands:
        yield plain(f"{effect}:")
        yield plain(f"  {line}")


def _facts(
    row: Mapping[str, Any], cost: Mapping[str, Any], priced: int
) -> Iterator[tuple[str, str]]:
    yield "pattern", row["PatternId"]
    yield "state", words.state(row)
    if row["Note"]:
        yield "note", clip(row["Note"], _TITLE)
    yield "share", words.share(row)
    yield "trend", words.trend(row)
    yield "seen", f"{row['FirstSeen']:%Y-%m-%d %H:%M} to {row['LastSeen']:%Y-%m-%d %H:%M}"
    if row["Text"]:
        yield "text", words.text(row)
    yield "outcomes", words.contrast(row)
    yield "place", words.decisive(row)
    yield "services", ", ".join(row["Services"])
    yield "versions", ", ".join(row["Versions"]) or "none stated"
    yield "tokens", f"{row['Tokens']:,} in its runs"
    yield "cost", words.cost(row, cost, priced)
    yield "confirmed", words.confirmed(row)
