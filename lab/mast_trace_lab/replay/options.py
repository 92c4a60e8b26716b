"""Options that the commands share which run a program again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace_dashboards.cli.step_texts import prices_by_model
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.llm.budget import Price
from mast_trace_judge.pricing import PriceConfig
from mast_trace_lab.program.budget import known_prices

if TYPE_CHECKING:
    from pathlib import Path

PriceTable = Callable[..., dict[str, Price]]
"""The prices of a run's models, and of those that are named besides."""

Fixes = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        metavar="STEP=TEXT|@FILE",
        help="Replace the answer of a step; the rest runs live. Given again, also beside --result, it "
        "replaces a later answer besides: that of the call which the agent makes in the same place.",
        show_default=False,
    ),
]
Results = Annotated[
    list[str] | None,
    typer.Option(
        "--result",
        metavar="STEP=TEXT|@FILE",
        help="Replace the result of a tool call; the rest runs live. Given again, also beside --fix, it "
        "replaces a later result besides: that of the same tool, called with the same arguments.",
        show_default=False,
    ),
]
Resample = Annotated[
    int | None,
    typer.Option(
        "--resample",
        metavar="STEP",
        help="Ask the model again at a step; the rest runs live.",
        show_default=False,
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        "--keep",
        metavar="STEP",
        help="Keep everything up to a step; the rest runs live.",
        show_default=False,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(
        "--drop",
        metavar="STEP[=TEXT]",
        help="Remove the tool calls of the answer of a step.",
        show_default=False,
    ),
]
Arguments = Annotated[
    str | None,
    typer.Option(
        "--arguments",
        metavar="STEP=JSON|@FILE",
        help="Replace the arguments of a tool call.",
        show_default=False,
    ),
]
OtherModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="STEP=NAME",
        help="Ask another model at a step, at the program's endpoint.",
        show_default=False,
    ),
]
Start = Annotated[
    bool, typer.Option("--start", help="Run the whole program live, with recorded tools.")
]
Repeat = Annotated[int, typer.Option(min=1, help="Number of replays of a change.")]
Hold = Annotated[
    bool,
    typer.Option(
        "--hold",
        help="Answer requests that the change leaves as they were from the record. Such replays "
        "do not measure a success rate.",
    ),
]
LiveCalls = Annotated[
    int | None,
    typer.Option("--max-calls", min=0, help="Live model calls in all.", show_default=False),
]

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="-- COMMAND...", help="The program that made the run.", show_default=False
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", min=1, help="Live model calls in all.", show_default=False),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0.0,
        metavar="USD",
        help="US dollars in all; needs the price of each model.",
        show_default=False,
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="MODEL=INPUT,OUTPUT",
        help="Price of a model in US dollars per million tokens; it precedes judge_prices, own_prices and "
        "the table of public prices.",
        show_default=False,
    ),
]
OracleCommand = Annotated[
    str | None,
    typer.Option(
        "--oracle",
        metavar="CMD",
        help="Judges a final answer on standard input: exit status 0 right, 1 wrong, other: error. "
        "Without it the program records its outcome.",
        show_default=False,
    ),
]
ResetCommand = Annotated[
    str | None,
    typer.Option(
        "--reset",
        metavar="CMD",
        help="Restores files, databases and services before each replay.",
        show_default=False,
    ),
]
CheckTimeout = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Time limit of --oracle and --reset.")
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="ADDRESS",
        help="An IP address to which the program may connect, such as 127.0.0.1.",
        show_default=False,
    ),
]
LiveTools = Annotated[
    list[str] | None,
    typer.Option(
        "--live-tools",
        metavar="NAME",
        help="A tool that may be executed if the run has no result of the call; `all` for every "
        "tool. Needs --reset.",
        show_default=False,
    ),
]
Preload = Annotated[
    list[str] | None,
    typer.Option(
        "--preload",
        metavar="MODULE",
        help="Import this module once, and fork each replay from there; can be repeated. For a program "
        "of the form `python FILE` whose modules start no threads.",
        show_default=False,
    ),
]


def price_table(config: Path | None, given: list[str] | None = None) -> PriceTable:
    """Return the function that looks up the prices of a run's models, see `known_prices`.

    Args:
        config: the configuration file, whose prices come after those of the options.
        given: values of ``--price``.

    Raises:
        ConfigurationError: a value is no price, or the file cannot be read.
    """
    prices = {**JudgeConfig.load(config).judge_prices, **prices_by_model(given)}
    return partial(known_prices, given=prices, own=PriceConfig.load(config).own_prices)


Seed = Annotated[int, typer.Option(help="Decides steps, numbers and phrasings.")]
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operator",
        metavar="CODE",
        help="A failure mode such as 2.6, or an operator such as 2.6-number; can be repeated.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float, typer.Option(min=1.0, metavar="SECONDS", help="Time until a replay is killed.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it runs.")]
