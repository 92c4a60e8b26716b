"""Rendering of what replays have shown about a run, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from mast_trace_dashboards.certainty import NOBODY
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from mast_trace_judge.replay.confirmation import Confirmation, Contrast, SuccessRate

_STYLES = {"confirmed": "bold green", "repairable": "bold green"}
_FIX_SHOWN = 60


def confirmation_view(
    confirmation: Confirmation, agents: Mapping[int, str] | None = None
) -> list[RenderableType]:
    """Return the conclusion in words, V by step, and the tested fixes.

    Args:
        confirmation: the conclusion.
        agents: names by step.
    """
    status = confirmation.status
    head = plain(status, _STYLES.get(status, "bold yellow"))
    head.append_text(plain(f": {confirmation.text}" if confirmation.text else "", ""))
    parts: list[RenderableType] = [head]
    if confirmation.curve:
        parts += ["", _curve(confirmation, agents or {})]
    if confirmation.contrasts:
        parts += ["", _contrasts(confirmation.contrasts)]
    if confirmation.likely and confirmation.origin is None:
        likely = ", ".join(f"{step} ({share:.0%})" for step, share in confirmation.likely)
        parts += ["", plain(f"Where the error may be, with 90 %: step {likely}", "dim")]
    parts.append(plain(f"\n{spending(confirmation)}", "dim"))
    return parts


def spending(confirmation: Confirmation) -> str:
    """Return a sentence with replays, live calls and their cost."""
    cost = confirmation.cost_usd
    money = "at an unknown cost" if cost is None else f"for {cost:.4f} USD"
    replays = f"{confirmation.replays} replay{'' if confirmation.replays == 1 else 's'}"
    calls = (
        f"{confirmation.live_calls} live model call{'' if confirmation.live_calls == 1 else 's'}"
    )
    return f"{replays}, {calls} {money}."


def _curve(confirmation: Confirmation, agents: Mapping[int, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("KEPT UP TO", "AGENT", "SUCCEEDED", "V", "95 %"):
        table.add_column(name, no_wrap=True)
    table.add_column("")
    for rate in confirmation.curve:
        table.add_row(
            "(start)" if rate.step < 0 else f"step {rate.step}",
            plain(agents.get(rate.step, "")),
            f"{rate.successes} of {rate.runs}",
            f"{rate.successes / rate.runs:.2f}" if rate.runs else "-",
            f"{rate.low:.2f}-{rate.high:.2f}",
            _mark(confirmation, rate),
        )
    return table


def _mark(confirmation: Confirmation, rate: SuccessRate) -> Text:
    marks = []
    if rate.step == confirmation.origin:
        marks.append("decisive error")
    if rate.step == confirmation.point_of_no_return:
        marks.append("point of no return")
    return plain(", ".join(marks), "bold red")


def _contrasts(contrasts: tuple[Contrast, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("STEP", "AGENT", "FIX FROM", "WITH FIX", "KEPT", "EFFECT", "E-VALUE", "NEEDED"):
        table.add_column(name, no_wrap=True)
    table.add_column("FIX", overflow="fold")
    for each in contrasts:
        table.add_row(
            str(each.step),
            plain(each.agent or NOBODY),
            plain(each.source),
            f"{each.fix_successes} of {each.pairs}",
            f"{each.keep_successes} of {each.pairs}",
            f"{each.effect:+.2f}",
            f"{each.e_value:.3g}",
            f"{each.threshold:g}",
            plain(clip(each.fix_text, _FIX_SHOWN)),
        )
    return table
