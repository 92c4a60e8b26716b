"""Options of `mast-trace replay` that change a recorded run."""

from __future__ import annotations

from typing import Annotated

import typer

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
