"""The fixtures `tables` and `store`: a migrated store for tests that name it, empty for each of them.

In the folders `_COPIED` every other new store has its tables at once as well.

A folder of tests that needs another store overrides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stores import Tables

    from mast_trace_collector.storage import Store


_COPIED = ("dashboards", "judge", "ingest")
"""Folders whose tests make many stores, and are not on the making of tables."""


@pytest.fixture(autouse=True, scope="module")
def copied(request: pytest.FixtureRequest) -> Iterator[None]:
    """Copies tables instead of making them."""
    if not set(_COPIED) & set(request.path.parts):
        yield
        return
    try:
        from stores import copied_tables
    except ImportError:  # environments of single frameworks have no storage
        yield
        return
    with copied_tables():
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Tables]]:
    """The module's store."""
    from stores import Tables, new_store  # environments of single frameworks have no storage

    with new_store(tmp_path_factory.mktemp("store")) as opened:
        yield opened, Tables(opened, made=True)


@pytest.fixture
def store(tables: tuple[Store, Tables]) -> Store:
    """A store with all tables, and nothing in them."""
    opened, made = tables
    made.renew()
    return opened
