"""One server's database, or a shard's, is copied into a cluster by `to-cluster.sql`, and shows the same everywhere."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filled_store import fill
from mcp import Client
from server_users import store_with_users
from starlette.testclient import TestClient
from stores import new_store
from test_query_rows import CLOCK, LOW, QUERIES, RUN, rows_of

from mast_trace_collector.storage import embedded
from mast_trace_collector.storage.removal.retention import beyond_age
from mast_trace_dashboards.mcp_server.server import server_on
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.transfer.exporting import export_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace_collector.storage import Store

    Look = Callable[[Store], Any]

AT_ONCE = {"mutations_sync": 2}
CONCLUDED = Confirmation(status="confirmed", text="Replays have shown it.")
READABLE = {
    "mast_verdicts": "Method = 'local', Outcome = if(Outcome = '', 'unknown', Outcome) WHERE 1",
    "mast_confirmations": f"Json = '{CONCLUDED.model_dump_json()}' WHERE 1",
    "mast_human_labels": "Outcome = 'failure', Modes = ['1.3'], DecisiveStep = NULL WHERE 1",
}
"""Pages and exports refuse values that queries count."""
COPYING = Path(__file__).parents[2] / "examples" / "production" / "clickhouse" / "to-cluster.sql"


def page(path: str) -> Look:
    """The text of a page, without the time that has passed since and the tokens of its forms."""

    def look(store: Store) -> Any:
        with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
            answer = client.get(path)
        text = re.sub(r"[\w.]+ \w+ ago|value=\"[\w-]{40,}\"", "", answer.text)
        return answer.status_code, text

    return look


def tool(name: str, **arguments: Any) -> Look:
    """The answer of a tool of the MCP server, without the marks around it."""

    async def ask(store: Store) -> Any:
        async with Client(server_on(store)) as client:
            answer = await client.call_tool(name, arguments)
        return re.sub("recorded-data-[0-9a-f]{8}", "", str(answer.content))

    return lambda store: asyncio.run(ask(store))


def exported(store: Store) -> Any:
    return json.loads(json.dumps(list(export_runs(store)), default=str))


PATHS = ("/", "/?outcome=failure", "/agents", "/cost", "/patterns", "/queue", "/judge")
LOOKS: dict[str, Look] = {
    **{name: partial(rows_of, name=name, wanted=LOW) for name in QUERIES if name not in CLOCK},
    **{path: page(path) for path in (*PATHS, f"/runs/{RUN}")},
    "search_runs": tool("search_runs", text="refund"),
    "get_run": tool("get_run", run=RUN),
    "list_patterns": tool("list_patterns"),
    "export": exported,
    "retain": lambda store: beyond_age(store, 1).runs,
}
"""All that is compared: queries by name, pages by address, tools, and commands that read all."""


@pytest.fixture(
    scope="module", params=["one server", pytest.param("another cluster", marks=pytest.mark.long)]
)
def copied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, dict[str, Any]]]:
    """The cluster with the copy, and the rows of each query before it; a process has one engine at a time."""
    folder = tmp_path_factory.mktemp("backups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "backups_folder", lambda _: folder)
        alone = request.param == "one server"
        place = tmp_path_factory.mktemp("before")
        with new_store(place) if alone else store_with_users(place, shards=2) as server:
            fill(server)
            # Retention has dropped spans: what was computed from them is the only copy.
            end = "" if alone else "_local"
            old = "TraceId < repeat('0', 31) || '5'"
            server.command(f"ALTER TABLE otel_traces{end} DELETE WHERE {old}", settings=AT_ONCE)
            for table, mended in READABLE.items():
                server.command(f"ALTER TABLE {table}{end} UPDATE {mended}", settings=AT_ONCE)
            # The last of rows of one key and moment counts, and a copy comes in any order.
            for row in server.query(
                "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
            ):
                server.command(f"OPTIMIZE TABLE {row['name']} FINAL")
            before = {name: look(server) for name, look in LOOKS.items()}
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


@pytest.mark.parametrize("name", LOOKS)
def test_everything_is_as_before(copied: tuple[Store, dict[str, Any]], name: str) -> None:
    assert LOOKS[name](copied[0]) == copied[1][name]


def test_views_compute_again_what_comes(copied: tuple[Store, Any]) -> None:
    """Last: the run would be one more in the rows above."""
    run = f"{777:032x}"
    copied[0].command(f"INSERT INTO otel_traces (TraceId, SpanId) VALUES ('{run}', 'a')")
    (found,) = copied[0].query(f"SELECT Spans FROM mast_runs WHERE TraceId = '{run}'")
    assert found == {"Spans": 1}
