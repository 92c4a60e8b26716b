"""Opens the store that a command reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mast_trace.exceptions import StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, check_schema, migrate
from mast_trace_dashboards.local import announcement

EMBEDDED = "chdb:"


@contextmanager
def open_store(
    url: str | None, data_dir: Path | None, config: Path | None = None, *, make: bool = False
) -> Iterator[Store]:
    """Open the named store, else that of the running `mast-trace up`, else its folder.

    Args:
        url: as named on the command line.
        data_dir: likewise.
        config: likewise.
        make: make the tables of a folder that has none, or older ones, as `mast-trace up` does.

    Raises:
        StorageError: there is none, or it does not answer.
        SchemaMismatch: it belongs to another version of mast-trace.
    """
    with Store.open(locate(url, data_dir, config, make=make)) as store:
        if make and store.url.startswith(EMBEDDED):
            migrate(store)
        check_schema(store)
        yield store


def locate(
    url: str | None, data_dir: Path | None, config: Path | None = None, *, make: bool = False
) -> str:
    """Return the address of that store; with ``make`` it need not be there yet.

    Raises:
        StorageError: there is none, or its password is unknown here.
    """
    settings = CollectorConfig.load(config, data_dir=data_dir, database_url=url or None)
    if settings.database_url:
        return settings.database_url
    running = announcement.find(settings.data_dir)
    if running is not None:
        if running.needs_password:
            raise StorageError(
                f"`mast-trace up` of {settings.data_dir} stores on {running.clickhouse}, whose "
                "password is written down nowhere: name the address by --url, "
                "MAST_TRACE_DATABASE_URL or --config"
            )
        return running.owner or running.clickhouse
    if not make and not (settings.data_dir / "clickhouse").exists():
        raise StorageError(
            f"there are no runs yet: {settings.data_dir} holds no database. Start `mast-trace up`, "
            "or name a store by --url"
        )
    return settings.store_url
