"""The table of operators in a terminal, and the option that takes uncertain ones in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.output import console, plain
from mast_trace_judge.planted import UNCERTAIN, is_uncertain
from mast_trace_lab.inject.faults import chosen
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Sequence


def planted_operators(
    only: Sequence[str], *, uncertain: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operators whose faults are planted, and those that are left out as uncertain.

    Args:
        only: names of operators, or codes of failure modes; all if empty.
        uncertain: whether uncertain ones are planted as well.

    Raises:
        ConfigurationError: there is no such operator, or all of them are left out.
    """
    names = tuple(each.name for each in chosen(only))
    left = () if uncertain else tuple(filter(is_uncertain, names))
    if len(left) == len(names):
        raise ConfigurationError(
            f"labels of {', '.join(left)} are uncertain: add --uncertain to plant them all the same"
        )
    return tuple(name for name in names if name not in left), left


def list_operators(context: typer.Context, wanted: bool) -> None:
    """Print the table of operators and end, where an option asks for it."""
    if not wanted or context.resilient_parsing:  # a shell completes the line
        return
    shown = Table(
        *("operator", "mode", "level", "fault", "to blame", "applies where", "certain because"),
        show_lines=True,
    )
    for name, each in OPERATORS.items():
        mark = " (uncertain)" if each.uncertain else ""
        cells = (
            each.mode or "none",
            each.level,
            each.fault,
            each.to_blame,
            each.applies,
            each.certain,
        )
        shown.add_row(plain(f"{name}{mark}"), *map(plain, cells))
    console().print(shown)
    for reason in dict.fromkeys(filter(None, (each.uncertain for each in OPERATORS.values()))):
        names = ", ".join(name for name, each in OPERATORS.items() if each.uncertain == reason)
        console().print(plain(f"Uncertain: {names}. {reason}"))
    if UNCERTAIN:
        console().print(
            plain(
                "Their labels are kept in the store and in sets. `judge fit`, `judge bench`, `selftest` and "
                "`train export` leave them out unless --uncertain is given."
            )
        )
    raise typer.Exit


ListOperators = Annotated[
    bool,
    typer.Option(
        "--operators",
        is_eager=True,
        callback=list_operators,
        help="Show the table of operators, and plant nothing.",
    ),
]
