"""Every named query gives the rows that it gave: no change of a text goes unseen.

``query_rows.golden.json`` holds a number and a hash of the rows for each query and each set of filters.
`MAST_TRACE_WRITE_GOLDEN=1 pytest tests/dashboards/test_query_rows.py` writes it anew; the rows themselves are
then in ``build/query_rows``: compare those of before and after. The same holds for the pages of the web view, in
``pages.golden.json`` and ``build/pages``.
"""

from __future__ import annotations

import json
import os
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filled_store import A_TOOL, BEGIN, END, FIRST, LAST, MIDDLE, TWIN, fill, start_of
from server_users import store_with_users
from starlette.testclient import TestClient
from stores import new_store

from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.plugins import named_queries
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.queries.query import Query

QUERIES = named_queries()

GOLDEN = Path(__file__).with_name("query_rows.golden.json")
SHOWN = Path(__file__).parents[2] / "build" / "query_rows"
WRITE = bool(os.environ.get("MAST_TRACE_WRITE_GOLDEN"))
RUN = f"{8:032x}"
LOW: dict[str, Any] = {
    "min_runs": 2,
    "min_hits": 1,
    "min_ratio": 1.1,
    "evidence": 0.1,
    "hours": 35,
    "windows": [600, 3000],
    "run": RUN,
    "text": "refund",
    "limit": 400,
    "below": 1.1,
    "idle": 1e9,
    "until": END,
    "moment": start_of(MIDDLE),
    "bucket": 14_400,
    "recent_days": 2,
    "pattern": "aa",
}
"""Values with which each query finds something; filters of runs come in one case alone."""
FILTERS: list[dict[str, Any]] = [
    {},
    {"projects": ["one"], "since": BEGIN + timedelta(days=1), "at_least": 0.7, "sort": "took"},
    {
        "services": ["shop", "trips"],
        "frameworks": ["ag2"],
        "since": BEGIN + timedelta(days=4),
        "until": BEGIN + timedelta(days=6),
    },
    {"offset": 2, "limit": 5, "ascending": 1, "stage": "read", "idle": 0},
    {"modes": ["1.1", "1.3"], "versions": ["1.1"], "user": "u1", "first": f"{9:032x}"},
    {"agents": ["writer"], "session": "c1", "last": f"{40:032x}", "word": "%refund%"},
    {"decisive_agents": ["critic"], "version": "1.1", "phrase": "%asks%"},
    {
        "outcomes": ["failure"],
        "before": int(start_of(TWIN).timestamp()) * 10**9,
        "before_run": f"{TWIN + 1:032x} two",
        "annotator": "ann",
    },
    {"states": ["judged", "open"], "begun": BEGIN + timedelta(days=5)},
    {"patterns": ["aa"], "only": [f"{number:032x}" for number in range(1, 30)], "model": "small"},
    {"since": start_of(FIRST), "until": start_of(LAST)},
    {"since": start_of(FIRST) + A_TOOL, "until": start_of(LAST) + A_TOOL},
    {"sort": "tokens", "outcomes": ["unknown"]},
    {"sort": "steps", "outcomes": ["suspect"], "ascending": 1},
    {"sort": "errors", "states": ["changed"]},
]
TIES = {"cost_of_calls", "run", "search_hits", "team_runs", "tool_errors"}
"""Queries that may cut among equal rows."""
CLOCK = {"arrival", "judge_lag", "table_sizes"}
"""Queries whose rows depend on the time of day."""
CASES = [
    (name, number)
    for name, query in QUERIES.items()
    for number, filters in enumerate(FILTERS)
    if name not in CLOCK and (not filters or filters.keys() & query.params.keys())
]
PLACES = ["one table", "two shards"]
ON_SHARDS = {0, 1, 4}
"""Numbers of the filters that are tried on two shards, too."""


@pytest.fixture(scope="module", params=PLACES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """The rows in one table each, and the same rows over two shards, each of which has its part."""
    folder = tmp_path_factory.mktemp("rows")
    with (
        new_store(folder)
        if request.param == "one table"
        else store_with_users(folder, shards=2) as opened
    ):
        fill(opened)
        yield opened


@pytest.fixture(scope="module")
def golden() -> Iterator[dict[str, str]]:
    known: dict[str, str] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    yield known
    if WRITE:
        names = [f"{name} {number}" for name, number in CASES]
        GOLDEN.write_text(json.dumps({each: known[each] for each in names}, indent=0) + "\n")


@pytest.fixture(scope="module")
def patterns(store: Store) -> list[str]:
    rows = QUERIES["patterns"].run(store, min_runs=2)
    return sorted(str(row["PatternId"]) for row in rows)


@pytest.mark.parametrize("name", dict(CASES))
def test_rows_are_those_of_before(
    request: pytest.FixtureRequest,
    store: Store,
    golden: dict[str, str],
    patterns: list[str],
    name: str,
) -> None:
    sharded = request.node.callspec.params["store"] == PLACES[1]
    differing = []
    for number in (each for query, each in CASES if query == name):
        if sharded and number not in ON_SHARDS:
            continue
        given = LOW | {"pattern": patterns[0]} | FILTERS[number]
        if "patterns" in given:
            given |= {"patterns": patterns[:2]}
        rows = rows_of(store, name, given)
        text = json.dumps(rows, indent=1, default=str)
        case = f"{name} {number}"
        found = f"{len(rows)} {sha256(text.encode()).hexdigest()[:12]}"
        if WRITE or golden.get(case) != found:
            SHOWN.mkdir(parents=True, exist_ok=True)
            (SHOWN / f"{case}.json").write_text(text)
        if WRITE:
            golden[case] = found
        if golden.get(case) != found:
            differing.append(SHOWN / f"{case}.json")
    assert differing == [], "these files have the rows of now"


SINCE = f"since={BEGIN.date()}T00:00Z"
JUDGED = [f"/runs/{number:032x}" for number in (1, 3)]
PAGES = [
    *("/", f"/?{SINCE}&sort=cost", "/?outcome=failure&sort=steps", "/?sort=tokens&page=2"),
    *("/?agent=critic&mode=1.3", "/?basis=rule&sort=took", "/?text=refund&service=shop"),
    *("/?project=one&user=u1&decided_by=writer", "/?version=1.1&model=small&sort=oldest"),
    *("/?nonsense=1&mode=9.9&since=never", "/?session=c1&sort=errors&until=2026-03-06T00:00Z"),
    *("/patterns", "/patterns?project=one", f"/cost?{SINCE}", f"/cost?{SINCE}&service=shop"),
    *(f"/agents?{SINCE}&until=2026-03-11T00:00Z", f"/agents?{SINCE}&version=1.1"),
    *(f"/groups/{by}?{SINCE}" for by in ("user", "session", "version", "model")),
    *("/queue", "/queue?project=one", f"/search?q=refund&{SINCE}", f"/search?q=asks&run={RUN}"),
    *(f"/export.csv?{SINCE}", f"/export.jsonl?{SINCE}&outcome=failure", "/runbooks"),
    *(f"{run}{part}" for run in JUDGED for part in ("", "/tree", "/steps", "/steps/3")),
    *(f"{run}{part}" for run in JUDGED for part in ("/steps/1/input", "/download.json")),
    f"/compare?run={JUDGED[0][6:]}&run={JUDGED[1][6:]}",
]


@pytest.mark.parametrize("store", ["one table"], indirect=True, scope="module")
def test_pages_are_those_of_before(store: Store, patterns: list[str]) -> None:
    """Without what depends on the present."""
    place, shown = GOLDEN.with_name("pages.golden.json"), SHOWN.with_name("pages")
    shown.mkdir(parents=True, exist_ok=True)
    found = {}
    with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
        for page in (*PAGES, *(f"/patterns/{each}" for each in patterns[:2])):
            answer = client.get(page)
            text = re.sub(
                r"(?!2026-03)20\d\d-\d\d-\d\d[ T][\d:.]+|\d+\s\w+ ago", "now", answer.text
            )
            (shown / re.sub(r"\W+", "_", page)).write_text(text, "utf-8")
            found[page] = f"{answer.status_code} {sha256(text.encode()).hexdigest()[:12]}"
    if WRITE:
        place.write_text(json.dumps(found, indent=0) + "\n")
    assert found == json.loads(place.read_text()), f"the pages of now are in {shown}"


@pytest.fixture(scope="module")
def one(store: Store) -> Iterator[Store]:
    """The store of a project, from which pages and assistants are served."""
    with store_of_project(store, "one") as of_one:
        yield of_one


@pytest.fixture(scope="session")
def known() -> dict[str, Any]:
    """The rows of the project by query, from the tables that were asked first."""
    return {}


@pytest.mark.parametrize("name", QUERIES)
def test_a_project_has_the_same_rows_from_two_shards(
    one: Store, known: dict[str, Any], name: str
) -> None:
    """A condition that a shard would have to look up on all shards for itself is refused (`distributed_product_mode`)."""
    rows = rows_of(one, name, LOW)
    assert name in CLOCK or rows == known.setdefault(name, rows)


@pytest.mark.parametrize("store", PLACES[1:], indirect=True, scope="module")
def test_each_shard_has_its_part(store: Store) -> None:
    """A run lives on one shard, with its spans, states, verdicts and replays."""
    homes: dict[str, set[int]] = {}
    for table in ("otel_traces", "mast_run_states", "mast_verdicts", "mast_replays"):
        for row in store.query(f"SELECT DISTINCT TraceId, _shard_num AS Shard FROM {table}"):
            homes.setdefault(row["TraceId"], set()).add(row["Shard"])
    assert set().union(*homes.values()) == {1, 2}
    assert {len(shards) for shards in homes.values()} == {1}


def rows_of(store: Store, name: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a query with those of the wanted values that it takes, without what differs between days."""
    query = QUERIES[name]
    wanted = wanted | ({"limit": 10_000} if name in TIES else {})
    given = {each: value for each, value in wanted.items() if _fits(query, each, value)}
    rows = [
        {column: plain(value) for column, value in row.items()} for row in query.run(store, **given)
    ]
    return sorted(rows, key=str) if name in TIES else rows


def _fits(query: Query, name: str, value: Any) -> bool:
    if name not in query.params:
        return False
    return isinstance(value, list) == query.params[name].type.startswith("Array") and (
        name != "evidence" or query.params[name].type == "Float64"
    )


def plain(value: Any) -> Any:
    """Return a value without what differs between engines and days."""
    if isinstance(value, datetime):
        return (
            "now"
            if value.replace(tzinfo=timezone.utc).year > 2026 or _is_new(value)
            else str(value)
        )
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Decimal | date):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def _is_new(moment: datetime) -> bool:
    return moment.replace(tzinfo=timezone.utc) > END + timedelta(days=90)
