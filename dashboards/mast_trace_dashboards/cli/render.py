"""Rendering of run lists in a terminal. Colour never carries information alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards.certainty import BASES, NOBODY, no_place
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip, id_width
from mast_trace_dashboards.queries.sql import NO_END
from mast_trace_dashboards.run_outcome import in_words, outcome_words

_CAUSE = 72
"""Characters of a cause in a list."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}


def runs_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A list of runs, as the query `runs` returns them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    of_several = len({row["Project"] for row in rows}) > 1
    for name in (
        "RUN",
        *["PROJECT"] * of_several,
        "OUTCOME",
        "LOOK FIRST AT",
        "MODES",
        "NAME",
        "FRAMEWORK",
        "STARTED",
    ):
        table.add_column(name, no_wrap=name != "MODES", overflow="ellipsis")
    table.add_column("TOOK", justify="right", no_wrap=True)
    width = id_width(str(row["TraceId"]) for row in rows)
    for row in rows:
        table.add_row(
            str(row["TraceId"])[:width],
            *[plain(clip(row["Project"], 24))] * of_several,
            outcome(row),
            _place_and_cause(row),
            Text("\n".join(map(mode_words, row["Modes"]))),
            plain(clip(row["Name"], 32)),
            plain(row["Framework"]),
            row["Start"].astimezone().strftime("%m-%d %H:%M:%S"),
            in_words(row["DurationMs"]),
        )
    return table


def _place_and_cause(row: Mapping[str, Any]) -> Text:
    text = place(row)
    if row["LookWhy"]:
        text.append_text(plain(f"\n{clip(row['LookWhy'], _CAUSE)}", "dim"))
    return text


def outcome(row: Mapping[str, Any]) -> Text:
    """Return how the run ended, and whether the program or the judge recorded it."""
    outcome_word, state, reading = outcome_words(row)
    by = " (judge)" if row["OutcomeSource"] == "judged" and outcome_word in _OUTCOME_STYLES else ""
    # A run without a known end may still be going on, whatever its outcome.
    text = ", ".join(filter(None, [outcome_word + by, state, reading]))
    usual = "yellow" if state == NO_END else "dim"
    return Text(text, style=_OUTCOME_STYLES.get(outcome_word, usual))


def place(row: Mapping[str, Any]) -> Text:
    """Return the agent and step to look at first, and the kind of evidence for it.

    The conclusion of replays stands beside it. A failed run without evidence says so.
    """
    status = row["Confirmation"]
    replayed = "" if status in {"", "untested"} else f"{status} by replay"
    if row["LookStep"] is not None:
        basis = "" if replayed and row["LookBasis"] == "confirmed" else BASES[row["LookBasis"]]
        told = ", ".join(filter(None, [basis, replayed]))
        return Text.assemble(
            plain(clip(row["LookAgent"], 24) or NOBODY, "bold"),
            f", step {row['LookStep']} ({told})",
        )
    if replayed:
        return Text(f"- ({replayed})", style="dim")
    return Text(no_place(row), style="dim")
