"""Rendering of a confirmation in a terminal: success rates by step, contrasts, a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from mast_trace_dashboards.certainty import NOBODY, falls, heading, place, price, share_of
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip
from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mast_trace_judge.confirmation import Confirmation, Contrast, FurtherFix

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
            place(confirmation, rate.step),
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
