"""The page of a service's profile shows values with intervals, chance and reasons for silence."""

from __future__ import annotations

import html
import re
import shutil
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import scripted_teams as teams
from starlette.testclient import TestClient

import mast_trace
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.web.app import web_app
from mast_trace_lab.feedback.experiment import look_at, make_plan
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan
from mast_trace_lab.teams import page as profile_page

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

CHROMIUM = shutil.which("chromium")
EVIL = "<b>shop</b>"


def alone(_: random.Random) -> bool:
    with mast_trace.agent("solo"):
        mast_trace.message("solo", "user", "The code is 7.")
    return True


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(f"chdb://{tmp_path_factory.mktemp('web')}") as opened:
        migrate(opened)
        yield opened


@pytest.fixture(scope="module")
def client(store: Store) -> Iterator[TestClient]:
    with TestClient(web_app(store), base_url="http://localhost") as made:
        yield made


def text_of(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.text.replace("\xa0", " ").split())


def test_an_empty_store_says_so(client: TestClient) -> None:
    assert "There are no runs yet." in text_of(client, "/profile")


def test_values_follow_new_runs_after_a_while(
    store: Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams.stored(store, EVIL, teams.hidden_profile, 19)
    before = text_of(client, "/profile")
    assert "19 runs read" in before
    assert "19 of at least 20 runs" in before
    teams.stored(store, EVIL, teams.hidden_profile, 5)
    assert text_of(client, "/profile") == before
    monkeypatch.setattr(profile_page, "FRESH_SECONDS", 0.0)
    after = text_of(client, "/profile?service=%3Cb%3Eshop%3C/b%3E")
    assert "24 runs read, 24 of them of several agents." in after
    assert "Uptake of what is new: 100 %" in after
    assert 0 < after.find("one agent makes the answer: try it alone") < after.find("<table")
    assert EVIL not in after


def test_the_measures_that_lead_to_an_action_stand_above_the_agents(client: TestClient) -> None:
    """They come after the page: measuring takes seconds."""
    page = text_of(client, "/agents")
    (source,) = re.findall(r'data-src="([^"]*)"', page)
    assert page.index(source) < page.index("No judged run")
    part = text_of(client, html.unescape(source))
    assert "24 runs read" in part
    assert "<html" not in part
    items = re.findall(r'class="said-item">(.*?)</p>', part)
    assert [item.partition(":")[0] for item in items] == [
        "<strong>Largest part of the answer from one agent",
        "<strong>Price of talk",
        "<strong>Yield of reviews",
    ]
    assert "100 %" in items[0]
    assert "not measured, 0 of at least 20" in items[2]
    (whole,) = re.findall(r'href="(/profile[^"]*)"', part)
    assert "Uptake of what is new: 100 %" in text_of(client, html.unescape(whole))
    nobody = text_of(client, "/profile?part=1&service=nobody")
    assert "There are no such finished runs." in nobody
    assert "said-item" not in nobody


def test_without_variants_the_page_says_how_to_run_them(client: TestClient) -> None:
    page = text_of(client, "/profile")
    assert "No variants were run: no experiment of this service has arms" in page
    assert "mast-trace experiment crew-or-one --plan" in page


def test_variants_are_compared_and_no_look_is_counted(store: Store, client: TestClient) -> None:
    arms = {EVIL: "<i>team", "solo": "one agent", "pair": "cut"}
    teams.stored(store, "solo", alone, 22)
    teams.stored(store, "pair", teams.relay, 3)
    for experiment in ("size", "late"):
        rows = store.query("SELECT TraceId, toString(ServiceName) AS Service, Start FROM mast_runs")
        if experiment == "size":
            make_plan(
                store, "", ExperimentPlan("size", arms=("<i>team", "one agent", "cut", "unused"))
            )
        store.insert(
            "mast_experiment_runs",
            [
                {
                    "TraceId": row["TraceId"],
                    "Experiment": experiment,
                    "Arm": arms[row["Service"]],
                    "Task": row["TraceId"],
                    "Start": row["Start"],
                    "ServiceName": row["Service"],
                }
                for row in rows
            ],
        )
    page = text_of(client, f"/profile?service={quote(EVIL)}")
    look = look_at(store, "", "size", count=False)
    section = page.split('id="variants"')[1]
    assert "No variants" not in section
    (heads, *_) = re.findall(r"<thead>(.*?)</thead>", section.split("Arms of size")[1])
    assert re.findall(r"<th[^>]*>(.*?)</th>", heads)[-3:] == [
        "Agents a run",
        "Lacks",
        "Tokens a run",
    ]
    assert re.findall(r'<th scope="row">(&lt;i&gt;team|one agent|cut|unused)</th>', section) == [
        "&lt;i&gt;team",
        "one agent",
        "cut",
        "unused",
    ]
    assert '<td class="number">4.0</td><td>-</td>' in section
    assert '<td class="number">1.0</td><td>one, solver, three, two</td>' in section
    for each in look.conclusion.contrasts:
        assert f'<td class="number">{each.low:+.2f} to {each.high:+.2f}</td>' in section
        assert f"<strong>{each.word}</strong>" in section
    assert f"{look.conclusion.contrasts[0].difference:+.2f}</td>" in section
    assert '<th scope="row">cut - &lt;i&gt;team</th><td class="number">-</td>' in section
    assert "Below 20 runs with an outcome in both arms no difference is given." in section
    assert "Nothing can be told of it: the experiment" in section
    assert store.query("SELECT count() AS n FROM mast_experiment_looks") == [{"n": 0}]
    listed = text_of(client, "/experiments").split("/experiments/size")[1]
    assert re.findall(r'<th scope="row">(.*?)</th>', listed) == [
        "&lt;i&gt;team",
        "one agent",
        "cut",
        "unused",
    ]
    (row,) = [
        each
        for each in EXPERIMENT_ARMS.run(store)
        if (each["Experiment"], each["Arm"]) == ("size", "one agent")
    ]
    assert (row["Runs"], row["AgentsPerRun"], row["Agents"]) == (22, 1, ["solo"])
    assert (row["Differ"], row["TokensPerRun"]) == (1, None)


def test_runs_that_retention_left_out_are_counted(store: Store, client: TestClient) -> None:
    assert "Retention has left out" not in text_of(client, "/profile?service=solo")
    at = datetime.now(timezone.utc)
    gone = {"ServiceName": "solo", "LeftOutAt": at, "RunStart": at, "RunEnd": at}
    store.insert("mast_left_out", [{**gone, "TraceId": f"{n}", "Done": n < 2} for n in range(3)])
    page = text_of(client, "/profile?service=solo")
    assert "Retention has left out the spans of 2 successful runs of this service" in page
    assert "Retention" not in text_of(client, f"/profile?service={quote(EVIL)}")


def test_a_service_or_version_without_runs(client: TestClient) -> None:
    assert "There are no such finished runs." in text_of(client, "/profile?service=nobody")
    assert "There are no such finished runs." in text_of(client, "/profile?version=9")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_is_accessible_and_fits(served: str, width: int) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    from test_web_browser import FLAGS, violations

    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": width, "height": 800}, base_url=served)
        page.goto("/profile")
        page.wait_for_load_state("networkidle")
        assert page.locator("h2").first.inner_text().startswith("Uptake")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()


def test_an_arm_without_runs_has_no_other_agents_than_the_others(store: Store) -> None:
    make_plan(store, "", ExperimentPlan("alike", arms=("a", "b", "unused")))
    rows = store.query(
        "SELECT TraceId, Start FROM mast_runs WHERE ServiceName = 'solo' ORDER BY TraceId LIMIT 4"
    )
    of_all = {"Experiment": "alike", "Task": "t", "ServiceName": "solo"}
    given = [{**row, **of_all, "Arm": "ab"[place % 2]} for place, row in enumerate(rows)]
    store.insert("mast_experiment_runs", given)
    found = [row for row in EXPERIMENT_ARMS.run(store) if row["Experiment"] == "alike"]
    assert {row["Arm"]: (row["Agents"], row["Differ"]) for row in found} == {
        **dict.fromkeys("ab", (["solo"], 0)),
        "unused": ([], 0),
    }
