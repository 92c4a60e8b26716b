"""A project's key shows that project: no page, number or answer changes by what others have stored."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from two_projects import (
    CANARY,
    OURS,
    RUN,
    SECOND,
    T0,
    THEIR_OTHER,
    THEIR_RUN,
    THEIRS,
    door,
    store_ours,
    store_theirs,
)
from view_server import serve_app

from mast_trace.exceptions import StorageError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import NotFound, SharedId, resolve_run
from mast_trace_dashboards.web import views
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixture_types import Logs, Patch
    from starlette.types import ASGIApp

PLACES = {
    "/": [
        "/",
        "/?part=1",
        "/?text=shared%20text",
        f"/?text={CANARY}",
        f"/?service={CANARY}-service",
        f"/?agent={CANARY}-agent",
        "/?agent=planner",
        "/?mode=2.6",
        "/?outcome=failure",
        "/?sort=took",
        "/?sort=cost",
        "/?sort=oldest&since=9999d",
        f"/?user={CANARY}",
        "/?user=ada",
        f"/?project={THEIRS}",
        "/?before=9223372036854775807&before_run=zzz",
    ],
    "/lessons": ["/lessons"]
    + [
        f"/lessons?{query}"
        for query in (
            f"workflow={CANARY}",
            "workflow=plain",
            f"agent={CANARY}-agent",
            "agent=planner",
            f"run={THEIR_RUN}",
            f"run={RUN}",
            f"project={THEIRS}",
            "experiment=shared&key=k&task=t",
            f"experiment=theirs&key=k&task=t&project={THEIRS}",
        )
    ],
    "/groups/{by:str}": [
        *(f"/groups/{by}" for by in ("user", "session", "version", "anything")),
        f"/groups/user?service={CANARY}-service",
    ],
    "/queue": ["/queue", f"/queue?project={THEIRS}"],
    "/queue/next": ["/queue/next"],
    "/patterns": [
        "/patterns",
        f"/patterns?project={THEIRS}",
        f"/patterns?service={CANARY}-service",
        "/patterns?state=resolved",
    ],
    "/patterns/{pattern:str}": ["/patterns/nothing", f"/patterns/{CANARY}"],
    "/export.{kind:str}": [
        "/export.csv",
        "/export.jsonl?mode=2.6",
        f"/export.jsonl?run={RUN}&run={THEIR_RUN}",
        f"/export.csv?project={THEIRS}",
        "/export.anything",
    ],
    "/search": [
        "/search",
        "/search?text=shared%20text&since=9999d",
        f"/search?text={CANARY}&since=9999d",
    ],
    "/runs/{run:str}/tree": [f"/runs/{each}/tree" for each in (RUN, SECOND, THEIR_RUN)],
    "/runs/{run:str}/spans/{span:str}": [
        f"/runs/{run}/spans/{span}"
        for run in (RUN, THEIR_RUN)
        for span in (f"{0:016x}", f"{1:016x}", "f" * 16, "nothing")
    ],
    "/settings": ["/settings"],
    "/agents": ["/agents", f"/agents?project={THEIRS}", f"/agents?service={CANARY}-service"],
    "/cost": ["/cost", f"/cost?project={THEIRS}", f"/cost?service={CANARY}-service"],
    "/week": ["/week", f"/week?project={THEIRS}", f"/week?service={CANARY}-service"],
    "/judge": ["/judge", f"/judge?project={THEIRS}"],
    "/profile": [
        "/profile",
        f"/profile?project={THEIRS}",
        f"/profile?service={CANARY}-service",
        f"/profile?service={CANARY}-service&project={THEIRS}",
    ],
    "/experiments": ["/experiments", f"/experiments?project={THEIRS}"],
    "/experiments/{name:path}": [
        f"/experiments/{name}{asked}"
        for name in ("shared", "theirs", CANARY, "", "a/b")
        for asked in ("", f"?project={THEIRS}", "?project=")
    ],
    "/compare": [
        *(f"/compare?run={run}" for run in (RUN, THEIR_RUN)),
        f"/compare?run={RUN}&run={SECOND}",
        f"/compare?run={RUN}&run={THEIR_RUN}",
        f"/compare?run={THEIR_RUN}&run={THEIR_OTHER}",
    ],
    "/runs/{run:str}": [f"/runs/{each}" for each in (RUN, f"{RUN}?part=1", SECOND, THEIR_RUN)]
    + [f"/runs/{each[:-1]}" for each in (RUN, THEIR_RUN)]
    + [f"/runs/{RUN}?project={THEIRS}", f"/runs/{THEIR_RUN}?project={THEIRS}"],
    "/runs/{run:str}/steps": [f"/runs/{each}/steps?from=0" for each in (RUN, SECOND, THEIR_RUN)],
    "/runs/{run:str}/steps/{step:str}": [
        f"/runs/{run}/steps/{step}" for run in (RUN, SECOND, THEIR_RUN) for step in (0, 1, 2, 9)
    ],
    "/runs/{run:str}/steps/{step:str}/input": [
        f"/runs/{run}/steps/{step}/input" for run in (RUN, SECOND, THEIR_RUN) for step in (0, 1, 9)
    ],
    "/runs/{run:str}/download.{kind:str}": [
        f"/runs/{run}/download.{kind}"
        for run in (RUN, SECOND, THEIR_RUN)
        for kind in ("json", "otlp", "anything")
    ],
    "/runbooks": ["/runbooks"],
    "/runbooks/": ["/runbooks/"],
    "/runbooks/{name:str}": ["/runbooks/web-view-not-ready", f"/runbooks/{CANARY}"],
    "/healthz": ["/healthz"],
    "/readyz": ["/readyz"],
    "/sign-in": ["/sign-in"],
}
WRITTEN_BY_FORMS = {
    "/runs/{run:str}/label",
    "/runs/{run:str}/compare",
    "/patterns/{pattern:str}/state",
    "/sign-in",
    "/sign-out",
}


class Two:
    """A view on a store that has our project's runs, and by now those of the other, too."""

    def __init__(self, store: Store, keys: dict[str, str], app: ASGIApp) -> None:
        self.store = store
        self.keys = keys
        self.app = app
        self.pages: dict[str, tuple[int, str]] = {}
        self.rows: dict[str, Any] = {}

    def client(self, who: str) -> TestClient:
        headers = {"authorization": f"Bearer {self.keys[who]}"}
        return TestClient(self.app, base_url="http://localhost", headers=headers)

    def look(self) -> dict[str, tuple[int, str]]:
        """Return what each place answers to our key."""
        # Both looks are of one day: the list's tiles begin anew at midnight.
        with time_machine.travel(T0 + timedelta(hours=1)), self.client("reader") as client:
            answers = {place: client.get(place) for each in PLACES.values() for place in each}
        return {place: (answer.status_code, answer.text) for place, answer in answers.items()}

    def ask(self, store: Store) -> dict[str, Any]:
        """Return the rows of each named query, asked for our project."""
        given = {"run": RUN, "text": "shared text", "before": 2**63 - 1}
        with store_of_project(store, OURS) as ours:
            return {
                name: query.run(ours, **{k: v for k, v in given.items() if k in query.params})
                for name, query in QUERIES.items()
            }


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """The pages and rows before the other project stores anything are in `pages` and `rows`."""
    folder = tmp_path_factory.mktemp("two")
    access, keys = door(folder)
    with Store.open(f"chdb://{folder}/data") as store:
        migrate(store)
        store_ours(store)
        two = Two(store, keys, web_app(store, access))
        two.pages, two.rows = two.look(), two.ask(store)
        store_theirs(store)
        yield two


@pytest.fixture
def owners(two: Two) -> Iterator[Store]:
    """The store by the address that commands of the user write to."""
    app = ClickHouseHTTP(two.store, of_owner=True)
    for address in serve_app(app):
        with Store.open(address.replace("://", "://owner:owner@")) as store:
            yield store
    app.close()


def test_a_file_is_not_compared_with_a_run_of_another_project(two: Two) -> None:
    with two.client("reader") as client:
        whole = client.get(f"/runs/{RUN}/download.json").content
        files = {"file": ("run.json", whole)}
        assert client.post(f"/runs/{RUN}/compare", files=files).status_code == 200
        answer = client.post(f"/runs/{THEIR_RUN}/compare", files=files)
        assert answer.status_code == 404
        assert CANARY not in answer.text


def test_every_route_is_walked(two: Two) -> None:
    app: Any = two.app
    routes = [route for route in app._app.routes if not isinstance(route, Mount)]
    read = {route.path for route in routes if isinstance(route, Route) and "GET" in route.methods}
    written = {route.path for route in routes if "POST" in route.methods}
    assert (read, written) == (set(PLACES), WRITTEN_BY_FORMS)


def test_no_page_changes_by_what_another_project_stores(two: Two) -> None:
    after = two.look()
    assert {place for place in after if after[place] != two.pages[place]} == set()
    assert sum(status == 200 for status, _ in after.values()) > 25
    for place, (_, text) in after.items():
        if CANARY not in place:
            assert CANARY not in text, place
            assert THEIRS not in text or THEIRS in place, place


def test_the_operator_sees_what_the_key_does_not(two: Two) -> None:
    """The other project is really there, in as many places."""
    with two.client("operator") as client:
        places = (place for each in PLACES.values() for place in each)
        shown = islice((place for place in places if CANARY in client.get(place).text), 16)
        assert len(list(shown)) == 16


@pytest.mark.parametrize("way", ["embedded", "over http"])
def test_no_named_query_changes_by_what_another_project_stores(
    two: Two, way: str, request: pytest.FixtureRequest
) -> None:
    after = two.ask(two.store if way == "embedded" else request.getfixturevalue("owners"))
    changed = {name for name in after if _steady(after[name]) != _steady(two.rows[name])}
    assert changed == set()
    assert sum(bool(rows) for rows in after.values()) > 20
    assert CANARY not in str(after)
    assert THEIRS not in str(after)


def test_the_other_project_is_in_the_answers_of_most_queries(two: Two) -> None:
    whole = {name: QUERIES[name].run(two.store) for name in two.rows}
    assert sum(CANARY in str(rows) for rows in whole.values()) > 8


def _steady(rows: list[dict[str, Any]]) -> list[str]:
    """Without moments that an ongoing clock or the order of equal rows would change."""
    return sorted(
        str({k: v for k, v in row.items() if not isinstance(v, datetime) or k != "LastSpan"})
        for row in rows
    )


def test_another_projects_run_is_as_if_there_were_none(two: Two) -> None:
    nowhere = "0" * 32
    with two.client("reader") as client:
        for path in (
            *("", "/steps", "/steps/0", "/steps/0/input", "/tree", "/spans/f"),
            *("/download.json", "/download.otlp"),
        ):
            theirs, none = (client.get(f"/runs/{run}{path}") for run in (THEIR_RUN, nowhere))
            assert theirs.status_code == none.status_code == 404
            assert theirs.text.replace(THEIR_RUN, nowhere) == none.text
            assert theirs.headers.keys() == none.headers.keys()
    with two.client("labeller") as client:
        answers = [client.post(f"/runs/{run}/label", data={}) for run in (THEIR_RUN, nowhere)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].text.replace(THEIR_RUN, nowhere) == answers[1].text


def test_a_label_carries_the_keys_project(two: Two) -> None:
    form = {"annotator": "eve", "outcome": "success", "project": THEIRS, "modes": "2.6"}
    with two.client("labeller") as client:
        answer = client.post(
            f"/runs/{RUN}/label?project={THEIRS}", data=form, follow_redirects=False
        )
        assert answer.status_code == 303
        assert client.post(f"/runs/{THEIR_RUN}/label", data=form).status_code == 404
        assert "eve: success" in client.get(f"/runs/{RUN}").text
    eves = [label for label in labels_of(two.store) if label.annotator == "eve"]
    assert [(label.project, label.trace_id) for label in eves] == [(OURS, RUN)]
    with two.client("theirs") as client:
        assert "eve" not in client.get(f"/runs/{RUN}").text


def test_forms_are_shown_to_those_who_may_send_them(two: Two) -> None:
    for who, shown in (("reader", False), ("labeller", True)):
        with two.client(who) as client:
            assert ("Label this run" in client.get(f"/runs/{RUN}").text) == shown
            assert ("lacks the right to label" in client.get("/queue").text) != shown


def test_a_run_whose_id_another_project_uses_is_of_one_project(two: Two) -> None:
    """A writer of another project cannot add steps to a run."""
    with two.client("operator") as client:
        parts = ("", "/steps/0", "/tree", f"/spans/{0:016x}", "/download.otlp")
        asked = [client.get(f"/runs/{RUN}{part}") for part in parts]
        asked.append(client.get(f"/compare?run={RUN}&run={SECOND}"))
        whole = " ".join(client.get(f"/runs/{RUN}{part}?project={OURS}").text for part in parts)
        one = client.get(f"/runs/{RUN}?project={THEIRS}").text
        listed = client.get("/").text
        label = {"annotator": "op", "note": "of theirs"}
        assert client.post(f"/runs/{RUN}/label?project={THEIRS}", data=label).status_code == 200
        assert "of theirs" not in client.get(f"/runs/{RUN}?project={OURS}").text
        assert client.post(f"/runs/{RUN}/label", data=label).status_code == 300
        assert client.get(f"/runs/{RUN[:9]}").status_code == 300
        assert f"project={THEIRS}" in client.get(f"/runs/{THEIR_OTHER}").text
    assert {answer.status_code for answer in asked} == {300}
    for answer in asked:
        assert re.findall(r'<li><a href="\?[^"]*project=(\w+)', answer.text) == [OURS, THEIRS]
        assert "shared text" not in answer.text
    assert CANARY not in whole
    assert "shared text plain" in whole
    assert f'href="/runs/{RUN}?project={THEIRS}"' in listed
    for path in ("download.json", "label", "steps/0"):
        assert f'"/runs/{RUN}/{path}?project={THEIRS}"' in one
    assert "plain" not in one
    assert f"shared text {CANARY}" in one


def test_a_run_is_found_in_all_projects_or_in_one(two: Two) -> None:
    found = [find_run(two.store, RUN, who) for who in (OURS, THEIRS, "nobody")]
    assert [each and each.row["Project"] for each in found] == [OURS, THEIRS, None]
    for look in (find_run, resolve_run):
        with pytest.raises(SharedId, match=f"2 projects: {OURS}, {THEIRS}; add --project"):
            look(two.store, RUN)
    newest = [resolve_run(two.store, "last", who) for who in (None, OURS, THEIRS)]
    assert newest == [THEIR_OTHER, SECOND, THEIR_OTHER]
    for name, who in (("last", "nobody"), (SECOND, THEIRS), (THEIR_OTHER, OURS), ("", None)):
        with pytest.raises(NotFound):
            resolve_run(two.store, name, who)


def test_an_operator_may_look_at_one_project(two: Two) -> None:
    with two.client("operator") as client:
        page = client.get("/").text
        assert '<select name="project">' in page
        assert f"project {THEIRS}" in page
        narrowed = client.get(f"/?project={OURS}").text
        assert RUN in narrowed
        assert CANARY not in narrowed
        assert CANARY not in client.get(f"/judge?project={OURS}").text
        assert CANARY not in client.get("/?project=nobody").text


def test_an_operator_compares_runs_of_one_project(two: Two) -> None:
    with two.client("operator") as client:
        listed = client.get(f"/?project={THEIRS}").text
        assert f'<input type="hidden" name="project" value="{THEIRS}">' in listed
        assert 'type="hidden" name="project"' not in client.get("/").text
        page = client.get(f"/compare?project={THEIRS}&run={RUN}&run={THEIR_RUN}").text
    assert f"shared text {CANARY}" in page
    assert "shared text plain" not in page
    assert page.count(f"/runs/{RUN}?project={THEIRS}") >= 2


def test_words_of_the_database_are_operators(two: Two, monkeypatch: Patch, caplog: Logs) -> None:
    """An error's words tell of tables, limits and addresses."""
    broken = "SELECT throwIf(1, 'the limit is 7 GiB')"
    monkeypatch.setattr("mast_trace_dashboards.queries.query.Query.sql", broken)
    with two.client("reader") as client:
        answer = client.get("/")
        assert answer.status_code == 503
        assert "7 GiB" not in answer.text
        assert "The operator&#39;s log says why." in answer.text
    assert "7 GiB" in caplog.text
    with two.client("operator") as client:
        assert "7 GiB" in client.get("/").text


def test_projects_that_nobody_looks_at_keep_no_connections(two: Two, monkeypatch: Patch) -> None:
    monkeypatch.setattr(views, "_MOST_PROJECTS", 3)
    shown = views.PerProject(two.store, lambda its: [its])
    first = shown.of(OURS)
    for number in range(5):
        shown.of(f"p{number}")
        assert shown.of(OURS) is first
    assert list(shown._of_project) == ["p3", "p4", OURS]
    monkeypatch.setattr(views, "_IDLE_SECONDS", 0.0)
    closed = shown._of_project["p3"].store
    shown.of("last")
    assert list(shown._of_project) == ["last"]
    with pytest.raises(StorageError, match="closed"):
        closed.query("SELECT 1")


def test_the_run_of_the_project_without_a_name_is_one_of_those_offered(two: Two) -> None:
    trace = "e" * 32
    for project in ("", OURS):
        span = {"TraceId": trace, "SpanId": "1" * 16, "SpanName": f"of {project or 'nobody'}"}
        told = {"gen_ai.operation.name": "invoke_workflow"}
        owner = {"mast.project": project} if project else {}
        row = {**span, "Timestamp": T0, "ResourceAttributes": owner, "SpanAttributes": told}
        two.store.insert("otel_traces", [row])
    with two.client("operator") as client:
        offered = re.findall(r'<li><a href="([^"]+)"', client.get(f"/runs/{trace}").text)
        pages = [client.get(f"/runs/{trace}{each}").text for each in offered]
    assert offered == ["?project=", f"?project={OURS}"]
    assert ["of nobody" in page for page in pages] == [True, False]
    assert f'href="/runs/{trace}/download.json?project="' in pages[0]
