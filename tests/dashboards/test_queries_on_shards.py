"""Every named query runs where its tables are spread over two shards.

Both shards are this process: a condition that a shard would have to look up on all shards for itself is refused all
the same (`distributed_product_mode`). Only one engine is tried; results are those of one shard counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_collector.storage import SchemaOptions, Store, embedded, render
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARD = "<shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>"
CLUSTER = f"""<timezone>UTC</timezone>
    <tcp_port>9000</tcp_port>
    <remote_servers><main>{SHARD}{SHARD}</main></remote_servers>"""
GIVEN = {
    "run": "a" * 32,
    "only": ["a" * 32],
    "text": "x",
    "versions": ["1.0"],
    "services": ["shop"],
    "projects": ["p"],
    "frameworks": ["ag2"],
    "agents": ["writer"],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with pytest.MonkeyPatch.context() as patch:
        config = embedded._CONFIG.replace("<timezone>UTC</timezone>", CLUSTER)
        patch.setattr(embedded, "_CONFIG", config)
        with Store.open(f"chdb://{tmp_path_factory.mktemp('cluster')}") as store:
            for statement in render(SchemaOptions(cluster="main", distributed=True)):
                store.command(statement.replace("ON CLUSTER main", ""), use_database=False)
            yield store


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_runs_on_shards(name: str, cluster: Store) -> None:
    query = QUERIES[name]
    given: dict[str, Any] = {key: value for key, value in GIVEN.items() if key in query.params}
    query.run(cluster, **given)
    query.run(cluster)
