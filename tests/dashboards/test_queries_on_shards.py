"""Every named query runs where its tables are spread over two shards, for all projects and for one.

Both shards are this process: a condition that a shard would have to look up on all shards for itself is refused all
the same (`distributed_product_mode`). Only one engine is tried; results are those of one shard counted twice.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from server_users import store_with_users

from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.plugins import named_queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

QUERIES = named_queries()

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


@pytest.fixture(autouse=True, scope="module")
def copied() -> None:
    """Copies no tables: these are others."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with store_with_users(tmp_path_factory.mktemp("cluster"), shards=2) as store:
        store.insert(
            "otel_traces",
            [
                {
                    "TraceId": str(number) * 32,
                    "SpanId": "1" * 16,
                    "Timestamp": datetime.now(timezone.utc),
                    "ResourceAttributes": {"mast.project": project},
                }
                for number, project in enumerate(("ours", "theirs"), start=1)
            ],
        )
        yield store


@pytest.fixture(scope="module", params=["all projects", "one project"])
def cluster(request: pytest.FixtureRequest, whole: Store) -> Iterator[Store]:
    """The store, and that of a project, from which pages and assistants are served."""
    if request.param == "all projects":
        yield whole
        return
    with store_of_project(whole, "ours") as ours:
        yield ours


def test_the_store_of_a_project_shows_it_alone(cluster: Store, whole: Store) -> None:
    shown = {row["TraceId"] for row in QUERIES["runs"].run(cluster)}
    assert shown == ({"1" * 32, "2" * 32} if cluster is whole else {"1" * 32})


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_runs_on_shards(name: str, cluster: Store) -> None:
    query = QUERIES[name]
    given: dict[str, Any] = {key: value for key, value in GIVEN.items() if key in query.params}
    query.run(cluster, **given)
    query.run(cluster)
