"""How lists of runs look in a terminal. Nothing is told by colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.durations import in_words
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ID_SHOWN: Final = 8
"""Characters of a run's id in lists: enough to name it to `show`."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A list of runs, as the query `runs` returns them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("RUN", "STARTED", "NAME", "FRAMEWORK", "OUTCOME", "MODES", "DECISIVE ERROR"):
        table.add_column(name, no_wrap=name != "MODES", overflow="ellipsis")
    table.add_column("TOOK", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row["TraceId"])[:ID_SHOWN],
            row["Start"].astimezone().strftime("%m-%d %H:%M:%S"),
            plain(clip(row["Name"], 32)),
            plain(row["Framework"]),
            outcome(row),
            Text(" ".join(row["Modes"])),
            decisive(row),
            in_words(row["DurationMs"]),
        )
    return table


def outcome(row: Mapping[str, Any]) -> Text:
    """How the run ended, and whether the program or the judge says so."""
    said = row["Outcome"]
    if not said or said == "unknown":
        return Text(row["State"], style="dim")
    return Text(
        f"{said}?" if row["OutcomeSource"] == "judged" else said,
        style=_OUTCOME_STYLES.get(said, ""),
    )


def decisive(row: Mapping[str, Any]) -> Text:
    """Who made the decisive error, where, and how sure the judge is."""
    if row["DecisiveStep"] is None:
        return Text("-", style="dim")
    return Text.assemble(
        plain(clip(row["DecisiveAgent"], 24), "bold"),
        f", step {row['DecisiveStep']} ({row['DecisiveProbability']:.0%})",
    )
