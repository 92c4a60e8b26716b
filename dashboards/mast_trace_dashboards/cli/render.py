"""Rendering of run lists and of confirmations in a terminal. Colour never carries information alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards import certainty
from mast_trace_dashboards.certainty import (
    BASES,
    NOBODY,
    falls,
    heading,
    no_place,
    price,
    share_of,
)
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip
from mast_trace_dashboards.queries.sql import NO_END
from mast_trace_dashboards.run_outcome import in_words, outcome_words
from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mast_trace_judge.confirmation import Confirmation, Contrast, FurtherFix

ID_SHOWN: Final = 8
"""Characters of a run's id in lists: enough to pass it to `show`."""
_CAUSE = 72
"""Characters of a cause in a list."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A list of runs, as the query `runs` returns them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("RUN", "OUTCOME", "LOOK FIRST AT", "MODES", "NAME", "FRAMEWORK", "STARTED"):
        table.add_column(name, no_wrap=name != "MODES", overflow="ellipsis")
    table.add_column("TOOK", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row["TraceId"])[:ID_SHOWN],
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


_FIX: Final = 400
"""Characters of a fix that are shown."""


def confirmation_view(confirmation: Confirmation | None) -> list[RenderableType]:
    """Return what replays of a run have shown; nothing where it was not replayed."""
    if confirmation is None:
        return []
    proved = proved_step(confirmation) is not None
    parts: list[RenderableType] = [
        "",
        Text(heading(confirmation), style="bold red" if proved else "bold"),
    ]
    if confirmation.text:
        parts.append(plain(confirmation.text))
    if confirmation.curve:
        parts += ["", _curve(confirmation)]
    if confirmation.contrasts:
        parts += ["", _contrasts(confirmation), *_fixes(confirmation)]
    if confirmation.likely and not proved:
        steps = ", ".join(str(step) for step, _ in confirmation.likely)
        parts.append(plain(f"The error lies in one of these steps, at 90%: {steps}.", "dim"))
    return [*parts, plain(f"{price(confirmation)}.", "dim")]


def _curve(confirmation: Confirmation) -> Table:
    """Return V by step, with the fall at each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("KEPT TO", justify="right", no_wrap=True)
    table.add_column("SUCCEEDS (V)", no_wrap=True)
    table.add_column("FALL", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for rate, fall in falls(confirmation):
        table.add_row(
            "start" if rate.step < 0 else f"step {rate.step}",
            share_of(rate),
            "" if fall is None else f"{fall:+.0%}",
            certainty.place(confirmation, rate.step),
        )
    return table


def _contrasts(confirmation: Confirmation) -> Table:
    """Return fix against keep by step and origin of the fix."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("STEP", "AGENT", "FIX", "WITH FIX", "WITHOUT", "EFFECT", "E-VALUE"):
        table.add_column(name, no_wrap=True)
    table.add_column("CENSORED", justify="right", no_wrap=True)
    for each in confirmation.contrasts:
        table.add_row(
            ", ".join(map(str, each.steps)),
            plain(", ".join(dict.fromkeys(part.agent or NOBODY for part in each.parts))),
            plain(", ".join(dict.fromkeys(map(_source, each.parts)))),
            f"{each.fix_successes} of {each.pairs}",
            f"{each.keep_successes} of {each.pairs}",
            f"{each.effect:+.0%}",
            f"{each.e_value:.4g} of {each.threshold:.4g}",
            str(each.censored),
        )
    return table


def _fixes(confirmation: Confirmation) -> list[Text]:
    """Return the texts of fixes; those that a model wrote anew have none."""
    parts = [part for each in confirmation.contrasts for part in each.parts]
    told = {(part.step, _source(part), part.fix_text): None for part in parts if part.fix_text}
    return [
        plain(f"Fix of step {step} ({source}): {clip(text, _FIX)}", "dim")
        for step, source, text in told
    ]


def _source(part: Contrast | FurtherFix) -> str:
    return f"{part.source}, result" if part.result else part.source
