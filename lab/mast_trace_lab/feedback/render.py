"""Experiments in a terminal: the plan in words, the arms and the contrasts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from mast_trace_dashboards.cli.output import plain
from mast_trace_lab.feedback.words import (
    ARM_COLUMNS,
    HOLDS,
    arm_cells,
    contrast_cells,
    contrast_columns,
    counted_words,
    notes,
    planned,
    reasons,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from mast_trace_lab.feedback.experiment import Look

_STYLES = {"better": "bold green", "worse": "bold red"}


def looked(look: Look) -> Iterator[RenderableType]:
    """Yield the parts of a look."""
    yield plain(planned(look.plan))
    yield plain(counted_words(look))
    arms = Table(*ARM_COLUMNS, box=None)
    for arm in look.conclusion.arms:
        arms.add_row(*map(plain, arm_cells(arm)))
    yield arms
    contrasts = Table(*contrast_columns(look.plan), box=None)
    for each in look.conclusion.contrasts:
        *cells, word = contrast_cells(each)
        contrasts.add_row(*map(plain, cells), plain(word, _STYLES.get(word, "")))
    yield contrasts
    for text in reasons(look):
        yield plain(text)
    yield plain(HOLDS)
    for text in notes(look):
        yield plain(f"Note: {text}", "yellow")
