"""`mast-trace collect`, and the commands of its group: keys, dead letters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import CollectorError, ConfigurationError, SchemaMismatch, StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_collector.http_server.limits import raise_limit
from mast_trace_collector.logs import configure_logging
from mast_trace_collector.security import Right, add_line, new_key, read_rights
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.removal.sweep import Sweeper
from mast_trace_dashboards.cli.options import (
    AsJson,
    ConfigFile,
    DataDir,
    GRPCPort,
    Host,
    HTTPPort,
    ReadyFile,
    Url,
)
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_json,
    print_json_line,
    say,
)
from mast_trace_dashboards.cli.until_stopped import (
    address_table,
    in_daemon_thread,
    not_ready,
    ready,
    stop_signal,
)
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from mast_trace_collector.collector import Collector

_REASON_WIDTH = 90

letters = typer.Typer(
    name="dead-letters",
    help="Look at requests that could not be stored, try them again, or drop them. "
    "Works beside a running collector, on its machine.",
    no_args_is_help=True,
)
Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Ids of letters, as `list` shows them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@letters.command("list")
def list_letters(
    data_dir: DataDir = None, config: ConfigFile = None, as_json: AsJson = False
) -> None:
    """List the dead letters, oldest first, with the reason of each.

    Example: `mast-trace collect dead-letters list --json`
    """
    found = [each for folder in _folders(data_dir, config) for each in folder.letters()]
    found.sort(key=lambda letter: letter.set_aside)
    if as_json:
        print_json([asdict(letter) for letter in found])
        return
    if not found:
        say("There are no dead letters.")
        return
    table = FittedTable("ID", "SET ASIDE", "ITEMS", "BYTES", "TRIES", "REASON")
    for letter in found:
        moment = datetime.fromtimestamp(letter.set_aside, timezone.utc)
        reason = clip(letter.reason, _REASON_WIDTH)
        if letter.retrying:
            reason = f"(to be retried) {reason}"
        table.add_row(
            plain(letter.id),
            f"{moment:%Y-%m-%d %H:%M:%S}Z",
            *(str(letter.items), str(letter.size), str(letter.attempts)),
            plain(reason),
        )
    console().print(table)


@letters.command()
def retry(
    ids: Ids = None,
    every: All = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Retry dead letters: the running collector stores them within seconds, or the next one does.

    A letter that fails again is set aside again. Use it once the cause is gone, for example after
    an upgrade.

    Example: `mast-trace collect dead-letters retry --all`
    """
    done = _apply(_folders(data_dir, config), DeadLetters.retry, ids, every=every)
    _report(done, "will be tried again", as_json=as_json)


@letters.command()
def drop(
    ids: Ids = None,
    every: All = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete dead letters for good.

    Example: `mast-trace collect dead-letters drop 000000000012-9f86d081884c7d65.3`
    """
    done = _apply(_folders(data_dir, config), DeadLetters.drop, ids, every=every)
    _report(done, "dropped", as_json=as_json)


def _folders(data_dir: Path | None, config: Path | None) -> tuple[DeadLetters, ...]:
    settings = CollectorConfig.load(config, data_dir=data_dir)
    return DeadLetters(settings.dead_letter_dir), DeadLetters(settings.dead_log_letter_dir)


def _apply(
    folders: tuple[DeadLetters, ...],
    act: Callable[[DeadLetters, list[str]], None],
    ids: list[str] | None,
    *,
    every: bool,
) -> list[str]:
    """Apply a function to letters, in any of the folders.

    Raises:
        CollectorError: a name is unknown; then no letter was changed.
    """
    if every == bool(ids):
        raise ConfigurationError("name dead letters by their ids, or all of them by --all")
    known = [[letter.id for letter in folder.letters()] for folder in folders]
    chosen = [id_ for each in known for id_ in each] if every else list(ids or [])
    for id_ in chosen:
        if not any(id_ in each for each in known):
            raise CollectorError(f"there is no dead letter {id_}")
    for folder, there in zip(folders, known, strict=True):
        act(folder, [id_ for id_ in chosen if id_ in there])
    return chosen


def _report(ids: list[str], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(ids)
    else:
        noun = "dead letter" if len(ids) == 1 else "dead letters"
        say(f"{len(ids)} {noun} {what}.")


logger = logging.getLogger(__name__)

_MIGRATE_AGAIN_SECONDS = 2.0
_PATIENCE_SECONDS = 3.0
"""Otherwise a server that accepts a connection and does not answer would be waited for minutes."""

app = typer.Typer(name="collect", invoke_without_command=True)
app.add_typer(letters)


@app.callback()
def collect(
    context: typer.Context,
    host: Host = None,
    http_port: HTTPPort = None,
    grpc_port: GRPCPort = None,
    data_dir: DataDir = None,
    url: Url = None,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    as_json: AsJson = False,
) -> None:
    """Receive and store runs; judge and dashboards run elsewhere.

    Example: `mast-trace collect --url http://clickhouse:8123/mast_trace --host 0.0.0.0`
    """
    if context.invoked_subcommand is not None:
        return
    settings = CollectorConfig.load(
        config,
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        data_dir=data_dir,
        database_url=url or None,
    )
    configure_logging(settings)
    raise_limit()
    asyncio.run(_collect(settings, ready_file, as_json=as_json))


@app.command()
def key(
    project: Annotated[str, typer.Argument(help="The project of the key.")],
    right: Annotated[
        list[str] | None,
        typer.Option(
            "--right",
            "--rights",
            help="Rights of its holder: `write` spans, `read` runs, `label` them, or read the "
            "collector's `metrics`; can be repeated, or have commas.",
            show_default="write",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Add it to this keys file (setting keys_file), made if it is missing. A running "
            "collector takes it up within a second.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a bearer key. It is shown once; the keys file holds its hash only.

    Example: `mast-trace collect key team-a --right read --file /etc/mast-trace/keys`
    """
    rights = read_rights(right) if right else frozenset({Right.WRITE})
    made, line = new_key(project, rights)
    if file is not None:
        add_line(file, line)
    if as_json:
        may = [each.value for each in Right if each in rights]
        print_json({"project": project, "rights": may, "key": made, "line": line})
        return
    say(f"Key, shown this once: {made}", soft_wrap=True)
    if file is None:
        say(f"Line for the keys file: {line}", soft_wrap=True)


async def _collect(settings: CollectorConfig, ready_file: Path | None, *, as_json: bool) -> None:
    from mast_trace_collector.collector import Collector

    stop = stop_signal(settings.shutdown_timeout_seconds)
    with Store.open(settings.store_url, connect=False) as store:
        migrating = in_daemon_thread(lambda: migrate(store))
        trouble = await _trouble_soon(store, migrating)
        collector = Collector(settings, store)
        sweeper = Sweeper(store, collector.metrics.swept_rows.inc)
        collector.without_tables = trouble
        await collector.start()
        later = None
        if trouble:
            later = asyncio.create_task(_migrate_later(store, migrating, sweeper, collector))
        else:
            sweeper.start()
        try:
            addresses = {
                "otlp_http": collector.http_address,
                "otlp_grpc": collector.grpc_address or "",
                "store": store.url,
            }
            ready(addresses, ready_file)
            if as_json:
                print_json_line({"event": "ready", **addresses})
            else:
                console().print(address_table(addresses))
            await stop.wait()
        finally:
            if later is not None:
                later.cancel()
            await collector.stop()
            await asyncio.to_thread(sweeper.stop)
            not_ready(ready_file)


async def _trouble_soon(store: Store, migrating: asyncio.Future[object]) -> str:
    """Wait for the tables, but not for long: spans can be accepted without them. Return why there are none yet.

    Raises:
        StorageError: the embedded engine fails, or the tables are of a later version.
    """
    patience = None if store.embedded_path else _PATIENCE_SECONDS
    await asyncio.wait({migrating}, timeout=patience)
    if not migrating.done():
        trouble = f"{store.url} has not answered within {_PATIENCE_SECONDS:g} s"
        logger.warning("%s; spans wait in the spool until it does", trouble)
        return trouble
    try:
        migrating.result()
    except SchemaMismatch:
        raise
    except StorageError as error:
        if store.embedded_path:
            raise
        logger.warning("%s; spans wait in the spool until it answers", error)
        return str(error)
    return ""


async def _migrate_later(
    store: Store, migrating: asyncio.Future[object], sweeper: Sweeper, collector: Collector
) -> None:
    """Create the tables as soon as the server answers: waiting spans cannot be stored without them."""
    while True:
        try:
            await migrating
        except (SchemaMismatch, ConfigurationError) as error:
            collector.without_tables = str(error)
            logger.error("spans stay in the spool: %s", error)  # noqa: TRY400
            return
        except StorageError as error:
            logger.debug("the database does not take the tables yet: %s", error)
        else:
            collector.without_tables = ""
            sweeper.start()
            return
        await asyncio.sleep(_MIGRATE_AGAIN_SECONDS)
        migrating = in_daemon_thread(lambda: migrate(store))
