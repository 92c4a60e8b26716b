"""Options that the commands share which run a program again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

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


def option(name: str, metavar: str, text: str, **more: Any) -> Any:
    """Return an option that nothing stands for where it is not given.

    Args:
        name: of the option.
        metavar: the name of its value in the help; empty for that of its type.
        text: its help.
        more: further arguments of `typer.Option`.
    """
    return typer.Option(name, metavar=metavar or None, help=text, show_default=False, **more)


Fixes = Annotated[
    list[str] | None,
    option(
        "--fix",
        "STEP=TEXT|@FILE",
        "Replace the answer of a step; the rest runs live. Given again, also beside --result, it "
        "replaces a later answer besides: that of the call which the agent makes in the same place.",
    ),
]
Results = Annotated[
    list[str] | None,
    option(
        "--result",
        "STEP=TEXT|@FILE",
        "Replace the result of a tool call; the rest runs live. Given again, also beside --fix, it "
        "replaces a later result besides: that of the same tool, called with the same arguments.",
    ),
]
Resample = Annotated[
    int | None, option("--resample", "STEP", "Ask the model again at a step; the rest runs live.")
]
Keep = Annotated[
    int | None, option("--keep", "STEP", "Keep everything up to a step; the rest runs live.")
]
Drop = Annotated[
    str | None, option("--drop", "STEP[=TEXT]", "Remove the tool calls of the answer of a step.")
]
Arguments = Annotated[
    str | None, option("--arguments", "STEP=JSON|@FILE", "Replace the arguments of a tool call.")
]
OtherModel = Annotated[
    str | None,
    option("--model", "STEP=NAME", "Ask another model at a step, at the program's endpoint."),
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
LiveCalls = Annotated[int | None, option("--max-calls", "", "Live model calls in all.", min=0)]

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="-- COMMAND...", help="The program that made the run.", show_default=False
    ),
]
MaxCalls = Annotated[int | None, option("--max-calls", "", "Live model calls in all.", min=1)]
MaxCost = Annotated[
    float | None,
    option("--max-cost", "USD", "US dollars in all; needs the price of each model.", min=0.0),
]
Prices = Annotated[
    list[str] | None,
    option(
        "--price",
        "MODEL=INPUT,OUTPUT",
        "Price of a model in US dollars per million tokens; it precedes judge_prices, own_prices and "
        "the table of public prices.",
    ),
]
OracleCommand = Annotated[
    str | None,
    option(
        "--oracle",
        "CMD",
        "Judges a final answer on standard input: exit status 0 right, 1 wrong, other: error. "
        "Without it the program records its outcome.",
    ),
]
ResetCommand = Annotated[
    str | None,
    option("--reset", "CMD", "Restores files, databases and services before each replay."),
]
CheckTimeout = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Time limit of --oracle and --reset.")
]
AllowHosts = Annotated[
    list[str] | None,
    option(
        "--allow-host",
        "ADDRESS",
        "An IP address to which the program may connect, such as 127.0.0.1.",
    ),
]
LiveTools = Annotated[
    list[str] | None,
    option(
        "--live-tools",
        "NAME",
        "A tool that may be executed if the run has no result of the call; `all` for every "
        "tool. Needs --reset.",
    ),
]
Preload = Annotated[
    list[str] | None,
    option(
        "--preload",
        "MODULE",
        "Import this module once, and fork each replay from there; can be repeated. For a program "
        "of the form `python FILE` whose modules start no threads.",
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
    option(
        "--operator",
        "CODE",
        "A failure mode such as 2.6, or an operator such as 2.6-number; can be repeated.",
    ),
]
Timeout = Annotated[
    float, typer.Option(min=1.0, metavar="SECONDS", help="Time until a replay is killed.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it runs.")]
