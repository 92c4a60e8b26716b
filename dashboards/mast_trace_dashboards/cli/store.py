"""Which store a command reads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, check_schema
from mast_trace_dashboards import state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def open_store(
    url: str | None, data_dir: Path | None, config: Path | None = None, *, write: bool = False
) -> Iterator[Store]:
    """Open the store that was named, else that of the running `mast-trace up`, else its folder.

    Args:
        url: as named on the command line.
        data_dir: likewise.
        config: likewise.
        write: whether the command writes; the address that others are told only reads.

    Raises:
        StorageError: there is none, or it does not answer.
        SchemaMismatch: it belongs to another version of mast-trace.
    """
    with Store.open(locate(url, data_dir, config, write=write)) as store:
        check_schema(store)
        yield store


def locate(
    url: str | None, data_dir: Path | None, config: Path | None = None, *, write: bool = False
) -> str:
    """Return the address of that store."""
    settings = CollectorConfig.load(config, data_dir=data_dir, database_url=url or None)
    if settings.database_url:
        return settings.database_url
    running = state.find(settings.data_dir)
    if running is not None:
        return (running.owner if write else "") or running.clickhouse
    if not (settings.data_dir / "clickhouse").exists():
        raise StorageError(
            f"there are no runs yet: {settings.data_dir} holds no database. Start `mast-trace up`, "
            "or name a store by --url"
        )
    return settings.store_url
