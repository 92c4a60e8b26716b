"""A project's store gives the same rows from tables that are spread over two shards as from one table each.

Both shards are this process, each with its part of the rows: a condition that a shard would have to look up on all
shards for itself is refused (`distributed_product_mode`). Rows of all projects are compared in test_query_rows.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from filled_store import fill
from server_users import store_with_users
from stores import new_store
from test_query_rows import CLOCK, LOW, QUERIES, rows_of

from mast_trace_collector.storage.project_store import store_of_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The rows from one table each; a process has one engine at a time."""
    with new_store(tmp_path_factory.mktemp("single")) as store:
        fill(store)
        with store_of_project(store, "one") as one:
            return {name: rows_of(one, name, LOW) for name in QUERIES if name not in CLOCK}


@pytest.fixture(scope="module")
def cluster(
    expected: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, Store]]:
    """The store, and that of a project, from which pages and assistants are served."""
    with store_with_users(tmp_path_factory.mktemp("cluster"), shards=2) as store:
        fill(store)
        with store_of_project(store, "one") as one:
            yield store, one


def test_each_shard_has_its_part(cluster: tuple[Store, Store]) -> None:
    """A run lives on one shard, with its spans, states, verdicts and replays."""
    homes: dict[str, set[int]] = {}
    for table in ("otel_traces", "mast_run_states", "mast_verdicts", "mast_replays"):
        for row in cluster[0].query(f"SELECT DISTINCT TraceId, _shard_num AS Shard FROM {table}"):
            homes.setdefault(row["TraceId"], set()).add(row["Shard"])
    assert set().union(*homes.values()) == {1, 2}
    assert {len(shards) for shards in homes.values()} == {1}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_one_table(
    name: str, cluster: tuple[Store, Store], expected: dict[str, list[dict[str, Any]]]
) -> None:
    rows = rows_of(cluster[1], name, LOW)
    if name not in CLOCK:
        assert rows == expected[name]
