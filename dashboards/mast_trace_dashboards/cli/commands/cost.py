"""`mast-trace cost`: the cost of runs, and of what came after their decisive steps."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mast_trace.exceptions import StorageError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, say, warn
from mast_trace_dashboards.cost_words import cost_words, costs_of
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.run_names import parse_time, resolve_run
from mast_trace_judge.pricing import PriceConfig, store_prices

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


_NONE: Final = {
    "tool": "no agent has run a tool after a model call",
    "mode": "no run shows a failure mode",
}
"""The reasons why a part has no rows, though there are model calls."""


class Part(str, Enum):
    """Parts by which costs are shown."""

    agent = "agent"
    model = "model"
    tool = "tool"
    version = "version"
    mode = "mode"
    run = "run"


_USUAL: Final = (Part.agent, Part.model)


def cost(
    run: Annotated[
        str | None,
        typer.Argument(help="The run's id, its beginning, or `last`; all runs without it."),
    ] = None,
    by: Annotated[
        list[Part] | None,
        typer.Option("--by", help="Part by which the cost is shown.", show_default="agent, model"),
    ] = None,
    since: Since = None,
    service: Annotated[list[str] | None, typer.Option(help="Only this service's.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Most rows of each part.")
    ] = 20,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what runs have cost, and how much of it came after the decisive step.

    Prices are those of the day of each call. A model without a known price is named, and counts as
    unknown; the setting `own_prices` gives it one.

    Example: `mast-trace cost --since 7d --by agent --by tool`
    """
    begin = parse_time(since) if since else None
    given: dict[str, Any] = {
        "projects": [project] if project else [],
        "services": service or [],
        **({"since": begin} if begin else {}),
    }
    with open_store(url, data_dir, config) as store:
        if run is not None:
            given["only"] = [resolve_run(store, run, project)]
        with console(stderr=True).status("Adding up the costs"):
            _renew(store, PriceConfig.load(config), begin)
            rows = costs_of(store, [part.value for part in by or _USUAL], limit=limit, **given)
    (total,) = rows.pop("total")
    if as_json:
        print_json({"total": total, **{f"by_{part}": found for part, found in rows.items()}})
    elif not total["Calls"]:
        warn("No model calls with a number of tokens.")
    else:
        _show(total, rows)


def _renew(store: Store, prices: PriceConfig, since: datetime | None) -> None:
    """Store the present prices; a store that cannot be written to keeps those that it has."""
    try:
        store_prices(store, prices.own_prices, since=since)
    except StorageError as error:
        warn(f"prices were not renewed, earlier ones are used: {error}")


def _show(total: dict[str, Any], rows: dict[str, list[dict[str, Any]]]) -> None:
    told = FittedTable.grid(padding=(0, 3))
    for name, words in _facts(total):
        told.add_row(plain(name), plain(words))
    console().print(told)
    for part, found in rows.items():
        console().print()
        if found:
            console().print(_table(part, found))
        else:
            say(f"{part}: {_NONE.get(part, 'no model calls')}.", soft_wrap=True)
    if total["UnpricedModels"]:
        names = ", ".join(total["UnpricedModels"])
        warn(f"no price is known of {names}; `own_prices` in [prices] gives one")


def _facts(total: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines above the tables."""
    read, cached = total["InputTokens"], total["CacheReadTokens"]
    caches = f"{cached:,} from caches, {total['CacheWriteTokens']:,} written to them"
    facts = [
        ("cost", cost_words(total["Cost"], total["UnpricedCalls"])),
        ("model calls", f"{total['Calls']:,} in {counted(total['Runs'], 'run')}"),
        ("tokens", f"{read:,} read ({caches}), {total['OutputTokens']:,} written"),
    ]
    if total["DecidedRuns"]:
        after = cost_words(total["CostAfter"], total["UnpricedAfter"])
        facts.append(
            (
                "after the decisive step",
                f"{after}, {total['TokensAfter']:,} tokens in {counted(total['DecidedRuns'], 'run')}",
            )
        )
    if total["Retries"]:
        again = cost_words(total["RetryCost"], 0)
        facts.append(("same input again", f"{counted(total['Retries'], 'call')}, {again}"))
    facts.append(("context sent again", f"at most {total['ResentTokens']:,} tokens"))
    return facts


def _table(part: str, rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable(part.upper(), numbers=("COST", "AFTER THE DECISIVE STEP", "TOKENS"))
    for row in rows:
        unpriced = row["UnpricedUses"] if part == "tool" else row["UnpricedCalls"]
        after = "" if part == "tool" else _after(row)
        tokens = row["Tokens"] if part == "tool" else row["InputTokens"] + row["OutputTokens"]
        table.add_row(
            plain(row["Key"] or "unknown"),
            cost_words(row["Cost"], unpriced),
            after,
            f"{tokens:,.0f}",
        )
    return table


def _after(row: dict[str, Any]) -> str:
    return cost_words(row["CostAfter"], row["UnpricedAfter"]) if row["TokensAfter"] else ""
