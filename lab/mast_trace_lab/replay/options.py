"""Options that the commands share which run a program again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.llm.budget import Price
from mast_trace_judge.pricing import PriceConfig
from mast_trace_lab.program.budget import Budget, known_prices

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_dashboards.programs import Program

PriceTable = Callable[..., dict[str, Price]]
"""The prices of a run's models, and of those that are named besides."""
COMMAND: Final = "mast_trace.command"
"""Key under which a context holds the command of a program."""


class ThenCommand(TyperCommand):
    """A command whose arguments before ``--`` are its own; what follows is kept as the command of a program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Divide the arguments at ``--``."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[COMMAND] = args[place + 1 :]
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line, with the command of the program."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def option(name: str, metavar: str, text: str, **more: Any) -> Any:
    """Return an option that nothing stands for where it is not given.

    Args:
        name: of the option.
        metavar: the name of its value in the help; empty for that of its type.
        text: its help.
        more: further arguments of `typer.Option`.
    """
    return typer.Option(name, metavar=metavar or None, help=text, show_default=False, **more)


Given = Annotated[
    list[str] | None,
    option(
        "--set",
        "KEY=VALUE",
        "A key of the program's table in the configuration file, such as oracle, reset, live_tools, plain, timeout or "
        "budget.usd; it comes before the file's. Can be repeated.",
    ),
]
MaxCalls = Annotated[
    int | None, option("--max-calls", "", "Live model calls in all; short for budget.calls.", min=1)
]
Seed = Annotated[int, typer.Option(help="Decides steps, numbers and phrasings.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it runs.")]


def budget_of(program: Program, max_calls: int | None) -> Budget:
    """Return the budget of one experiment; ``--max-calls`` comes before that of the program."""
    limits = program.budget
    return Budget(max_calls or limits.calls, limits.usd, limits.runs)


def price_table(config: Path | None) -> PriceTable:
    """Return the function that looks up the prices of a run's models, see `known_prices`.

    Args:
        config: the configuration file with prices.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    given = JudgeConfig.load(config).judge_prices
    return partial(known_prices, given=given, own=PriceConfig.load(config).own_prices)
