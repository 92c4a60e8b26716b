"""`mast-trace migrate`, `config` and `doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mast_trace.exceptions import MastTraceError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.logs import configure_logging
from mast_trace_collector.storage import SchemaOptions, Store, migrate, render
from mast_trace_collector.storage.address import DEFAULT_DATABASE
from mast_trace_collector.storage.grants import warnings_of
from mast_trace_collector.storage.search_index import (
    add_search_index,
    drop_search_index,
    has_search_index,
)
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.cli.open_store import locate
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, say
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.pricing import PriceConfig
from mast_trace_judge.store.confirmations import show_missing

if TYPE_CHECKING:
    from mast_trace_collector.settings import DocumentedSetting


def migrate_database(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the SQL of an empty database's schema.")
    ] = False,
    database: Annotated[
        str | None,
        typer.Option(help="Name of the database.", show_default="the address's, or mast_trace"),
    ] = None,
    cluster: Annotated[str, typer.Option(help="Create the tables ON this CLUSTER.")] = "",
    replicated: Annotated[bool, typer.Option(help="Use Replicated engines.")] = False,
    distributed: Annotated[
        bool, typer.Option(help="Distribute the tables over the cluster's shards.")
    ] = False,
    ttl_days: Annotated[int, typer.Option(min=0, help="Drop data older than this; 0: never.")] = 0,
    storage_policy: Annotated[str, typer.Option(help="Disks that the tables use.")] = "",
    search_index: Annotated[
        bool | None,
        typer.Option(
            help="Index the words of texts, for the search, from now on; or remove the index.",
            show_default="as it is",
        ),
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create the tables, or bring them up to this version. Safe to run again, and from many places.

    Users of a server that are meant for one project and read more are named, with the SQL that mends it.

    `up` and `collect` do the same when they start.

    The options of the tables (cluster, replicated ...) are recorded in the database: give them the
    first time only; the search index can be added and removed at any time. To change the retention of existing tables, use `mast-trace retain`.

    Example: `mast-trace migrate --url http://default:secret@clickhouse:8123/mast_trace`
    """
    asked: dict[str, Any] = {
        "cluster": cluster,
        "replicated": replicated,
        "distributed": distributed,
        "ttl_days": ttl_days,
        "storage_policy": storage_policy,
    }
    if dry_run:
        statements = render(SchemaOptions(database=database or DEFAULT_DATABASE, **asked))
        if as_json:
            print_json(statements)
        else:
            sys.stdout.write("".join(f"{statement};\n\n" for statement in statements))
        return
    settings = CollectorConfig.load(config, data_dir=data_dir, database_url=url or None)
    configure_logging(settings)
    address = settings.database_url or (
        locate(url, data_dir, config) if settings.data_dir.exists() else settings.store_url
    )
    with Store.open(address, database=database) as store:
        options = SchemaOptions(database=store.database, **asked) if any(asked.values()) else None
        new = migrate(store, options)
        # Where no judge runs, nobody else shows the conclusions that an earlier version has stored.
        while show_missing(store):
            pass
        if search_index is not None:
            (add_search_index if search_index else drop_search_index)(store)
        where, indexed = store.url, has_search_index(store)
        warnings = list(warnings_of(store))
    for warning in warnings:
        console(stderr=True).print(plain(warning, "yellow"), soft_wrap=True)
    if as_json:
        print_json(
            {
                "store": where,
                "new_versions": new,
                "search_index": indexed,
                "warnings": warnings,
            }
        )
    else:
        done = f"now at version {new[-1]}" if new else "up to date already"
        say(f"{where}: {done}{'; texts are indexed' if indexed else ''}.")


def config(
    data_dir: DataDir = None, config_file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Print every effective setting with its origin and the variable that sets it.

    Secrets are masked.

    Example: `MAST_TRACE_HTTP_PORT=0 mast-trace config`
    """
    tables = [
        UpConfig.load(config_file),
        WebConfig.load(config_file),
        CollectorConfig.load(config_file, data_dir=data_dir),
        JudgeConfig.load(config_file),
        WorkerConfig.load(config_file),
        PriceConfig.load(config_file),
        AlertConfig.load(config_file),
    ]
    if as_json:
        print_json({each.table: [vars(s) for s in each.effective()] for each in tables})
        return
    for each in tables:
        console().print(_settings_table(each.table, each.effective()))


def _settings_table(title: str, settings: list[DocumentedSetting]) -> FittedTable:
    names = ("SETTING", "VALUE", "FROM", "VARIABLE", "MEANING")
    table = FittedTable(*names, title=plain(f"[{title}]", "bold"))
    for setting in settings:
        style = "dim" if setting.origin == "default" else ""
        table.add_row(
            setting.name,
            plain(setting.value),
            plain(setting.origin),
            setting.variable,
            plain(setting.meaning),
            style=style,
        )
    return table


diagnosis = typer.Typer()


# Its options are the SDK's: it works without this command line, too.
@diagnosis.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def doctor(context: typer.Context) -> None:
    """Show which frameworks are recorded, and whether the collector accepts spans.

    If a ClickHouse server is configured (`MAST_TRACE_DATABASE_URL`), it also names the server's users that
    are meant for one project and read more, with the SQL that mends it.

    Example: `mast-trace doctor --endpoint http://127.0.0.1:4318`
    """
    from mast_trace import doctor as sdk_doctor

    raise typer.Exit(sdk_doctor.main(context.args, more=_problems_of_the_server))


def _problems_of_the_server() -> Iterator[str]:
    """Yield what is wrong with the users of the server; nothing if none is configured."""
    file = os.environ.get("MAST_TRACE_CONFIG")
    url = CollectorConfig.load(Path(file) if file else None).database_url
    if not url or url.startswith("chdb:"):
        return
    try:
        with Store.open(url) as store:
            yield from warnings_of(store)
    except MastTraceError as error:
        yield f"users of the database were not checked: {error}"
