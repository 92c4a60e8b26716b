"""Rendering of run lists in a terminal. Colour never carries information alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards.certainty import BASES, NOBODY, no_place
from mast_trace_dashboards.cli.output import FittedTable, plain
from mast_trace_dashboards.printable import clip, id_width
from mast_trace_dashboards.queries.sql import NO_END
from mast_trace_dashboards.run_outcome import in_words, outcome_words

_PROJECT, _CAUSE = 24, 72
"""Characters of a project and of a cause in a list."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}
_COLUMNS: Final = {
    **dict.fromkeys(("RUN", "OUTCOME", "LOOK FIRST AT", "MODES"), 0),
    "NAME": 60,
    "FRAMEWORK": 110,
    "STARTED": 90,
    "TOOK": 100,
}
"""The columns of the list, each with the characters beside the ids from which on there is room for it."""


def runs_table(rows: Sequence[Mapping[str, Any]], width: int) -> FittedTable:
    """A list of runs, as the query `runs` returns them, for a terminal of this width."""
    ids = id_width(str(row["TraceId"]) for row in rows)
    of_several = len({row["Project"] for row in rows}) > 1
    room = width - ids - _PROJECT * of_several
    names = [name for name, least in _COLUMNS.items() if room >= least]
    names[1:1] = ["PROJECT"] * of_several
    table = FittedTable()
    for name in names:
        wraps = name in {"LOOK FIRST AT", "MODES", "NAME"}
        table.add_column(name, no_wrap=not wraps, justify="right" if name == "TOOK" else "left")
    for row in rows:
        cells = {
            "RUN": str(row["TraceId"])[:ids],
            "PROJECT": plain(clip(row["Project"], _PROJECT)),
            "OUTCOME": outcome(row),
            "LOOK FIRST AT": _place_and_cause(row),
            "MODES": Text("\n".join(map(mode_words, row["Modes"]))),
            "NAME": plain(clip(row["Name"], 32)),
            "FRAMEWORK": plain(clip(row["Framework"], 16)),
            "STARTED": row["Start"].astimezone().strftime("%m-%d %H:%M:%S"),
            "TOOK": in_words(row["DurationMs"]),
        }
        table.add_row(*(cells[name] for name in names))
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
    """Return the agent and step to look at first, whether it is decisive, and the kind of evidence for it.

    The conclusion of replays stands beside it. A failed run without evidence says so.
    """
    status = row["Confirmation"]
    replayed = "" if status in {"", "untested"} else f"{status} by replay"
    if row["LookStep"] is not None:
        basis = "" if replayed and row["LookBasis"] == "confirmed" else BASES[row["LookBasis"]]
        told = ", ".join(filter(None, [basis, replayed]))
        decides = row["DecisiveStep"] == row["LookStep"]
        return Text.assemble(
            ("DECISIVE: " if decides else "", "bold red"),
            plain(clip(row["LookAgent"], 24) or NOBODY, "bold"),
            f", step {row['LookStep']} ({told})",
        )
    if replayed:
        return Text(f"- ({replayed})", style="dim")
    return Text(no_place(row), style="dim")
