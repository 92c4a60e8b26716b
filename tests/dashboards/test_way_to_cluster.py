"""One server's database, or a shard's, is copied into a cluster by `to-cluster.sql`, and every query keeps its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filled_store import fill
from server_users import store_with_users
from stores import new_store
from test_query_rows import CLOCK, LOW, QUERIES, rows_of

from mast_trace_collector.storage import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

COPYING = Path(__file__).parents[2] / "examples" / "production" / "clickhouse" / "to-cluster.sql"


@pytest.fixture(
    scope="module", params=["one server", pytest.param("another cluster", marks=pytest.mark.long)]
)
def copied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, dict[str, list[dict[str, Any]]]]]:
    """The cluster with the copy, and the rows of each query before it; a process has one engine at a time."""
    folder = tmp_path_factory.mktemp("backups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "backups_folder", lambda _: folder)
        alone = request.param == "one server"
        place = tmp_path_factory.mktemp("before")
        with new_store(place) if alone else store_with_users(place, shards=2) as server:
            fill(server)
            # Retention has dropped spans: what was computed from them is the only copy.
            spans = "otel_traces" if alone else "otel_traces_local"
            server.command(f"ALTER TABLE {spans} DELETE WHERE TraceId < repeat('0', 31) || '5'")
            before = {name: rows_of(server, name, LOW) for name in QUERIES if name not in CLOCK}
            name = server.database
            server.command(f"BACKUP DATABASE {name} TO File('{folder}/full')", use_database=False)
        with store_with_users(tmp_path_factory.mktemp("cluster"), shards=2) as cluster:
            cluster.command(
                f"RESTORE DATABASE {name} AS mast_trace_before FROM File('{folder}/full')",
                use_database=False,
            )
            sql = COPYING.read_text().replace("FORMAT TSVRaw;", "")
            for row in cluster.query(sql):
                cluster.command(row["statement"].replace(" ON CLUSTER main", "").rstrip(";"))
            cluster.command("DROP DATABASE mast_trace_before SYNC", use_database=False)
            yield cluster, before


def test_each_shard_has_its_part_of_the_runs(copied: tuple[Store, Any]) -> None:
    rows = copied[0].query("SELECT DISTINCT TraceId, _shard_num AS Shard FROM mast_run_states")
    assert {row["Shard"] for row in rows} == {1, 2}
    assert len(rows) == len({row["TraceId"] for row in rows})


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in CLOCK])
def test_every_query_keeps_its_rows(
    copied: tuple[Store, dict[str, list[dict[str, Any]]]], name: str
) -> None:
    assert rows_of(copied[0], name, LOW) == copied[1][name]


def test_views_compute_again_what_comes(copied: tuple[Store, Any]) -> None:
    """Last: the run would be one more in the rows above."""
    run = f"{777:032x}"
    copied[0].command(f"INSERT INTO otel_traces (TraceId, SpanId) VALUES ('{run}', 'a')")
    (found,) = copied[0].query(f"SELECT Spans FROM mast_runs WHERE TraceId = '{run}'")
    assert found == {"Spans": 1}
