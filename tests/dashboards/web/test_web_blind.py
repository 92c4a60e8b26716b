"""The queue tells nothing of a verdict: pages of runs that are judged otherwise are the same, byte for byte."""

from __future__ import annotations

import html
import itertools
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urljoin, urlsplit

import pytest
from replayed_runs import PROVED, SAID, TWIN, conclude, proof, team
from starlette.testclient import TestClient
from web_runs import T0, abstained, judged

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.finding.blind import blinded
from mast_trace_dashboards.web.loaded_run import LoadedRun
from mast_trace_dashboards.web.pages import Pages
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import save

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = (PROVED, TWIN)
"""A run without an outcome, and one whose program recorded a failure."""
SUCCESS: dict[str, Any] = {
    "outcome": "success",
    "failure_probability": 0.1,
    "decisive": None,
    "candidates": (),
    "modes": (),
}
FAILURE: dict[str, Any] = {
    "readings": 3,
    "agreeing": 1,
    "model": "m",
    "method": "fused",
    "cost_usd": 0.5,
}
UNSURE = abstained("unknown", 0.8)
_SECONDS = itertools.count()
_LINK = re.compile(r'\s(?:href|action|data-src)="([^"]*)"')
_FOLLOWED = re.compile(r"/queue|/runs/\w+(?!\w|/label|/compare|/steps/[^2])")
Answer: TypeAlias = "tuple[int, dict[str, str], str]"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Runs of one team with the calls of its models, which each test judges anew."""
    with Store.open(f"chdb://{tmp_path_factory.mktemp('blind')}") as opened:
        migrate(opened)
        for run in RUNS:
            first, *others = team(run)
            if run == TWIN:
                first["SpanAttributes"]["mast.run.outcome"] = "failure"
            opened.insert("otel_traces", [first, *others])
        yield opened


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A view that sends few steps at once, so that further ones come on request."""
    monkeypatch.setattr("mast_trace_dashboards.web.pages.PAGE", 3)
    with TestClient(web_app(store), base_url="http://localhost") as opened:
        yield opened


def judge(store: Store, *verdicts: dict[str, Any]) -> None:
    """Judge the runs anew."""
    at = T0 + timedelta(seconds=next(_SECONDS))
    given = zip(RUNS, verdicts, strict=True)
    save(store, [judged(store, run, len(SAID), 2, judged_at=at, **more) for run, more in given])


def pages_of_the_queue(client: TestClient) -> dict[str, Answer]:
    """Everything that the queue's own links, forms and refreshes lead to, by address."""
    seen: dict[str, Answer] = {}
    waiting = ["/queue", "/queue/next"]
    for run in RUNS:
        waiting += [f"/runs/{run}?queue=1&part=1", f"/runs/{run}/download.json?queue=1"]
        file = client.get(f"/runs/{TWIN}/download.json").content
        answer = client.post(f"/runs/{run}/compare?queue=1", files={"file": ("it.json", file)})
        seen[f"POST {run}"] = answer.status_code, dict(answer.headers), answer.text
        waiting += links_in("/", answer.text)
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        answer = client.get(address, follow_redirects=False)
        assert answer.status_code in (200, 303), address
        seen[address] = answer.status_code, dict(answer.headers), answer.text
        # Choices of agents in a graph lead to ever more choices.
        waiting += [] if "with=" in address else links_in(address, answer.text)
        waiting += [answer.headers["location"].split("#")[0]] if answer.is_redirect else []
    return seen


def links_in(address: str, page: str) -> list[str]:
    """Links to pages about runs and to the queue; the menu is left out, and of steps all but one."""
    main = page.split("</header>")[-1]
    found = {urljoin(address, html.unescape(link).split("#")[0]) for link in _LINK.findall(main)}
    return sorted(each for each in found if _FOLLOWED.match(each))


def test_pages_reached_from_the_queue_are_the_same_whatever_the_verdict(
    client: TestClient, store: Store
) -> None:
    """Links, titles, attributes, orders, headers and files; also after replays have shown something."""
    judge(store, SUCCESS, FAILURE)
    before, told = pages_of_the_queue(client), [client.get(f"/runs/{PROVED}").text]
    for verdicts in ((UNSURE, SUCCESS), (FAILURE, UNSURE)):
        judge(store, *verdicts)
        if verdicts[0] == FAILURE:
            conclude(store, PROVED, proof())
        told.append(client.get(f"/runs/{PROVED}").text)
        now = pages_of_the_queue(client)
        assert {address for address in {*before, *now} if now.get(address) != before.get(address)} == set()
    assert len(set(told)) == len(told)
    kinds = {urlsplit(address.replace(run, "RUN")).path for address in now for run in RUNS}
    assert {"/queue", "/queue/next", "/runs/RUN", "/runs/RUN/tree", "/runs/RUN/steps"} <= kinds
    assert {"/runs/RUN/steps/2", "/runs/RUN/steps/2/input", "/runs/RUN/download.otlp"} <= kinds
    assert ">failure</span>" in now[f"/runs/{TWIN}?queue=1"][2]


def test_nothing_of_a_row_follows_from_a_verdict(store: Store) -> None:
    """Also what no page shows today; whether a verdict could be reached is hidden too."""
    views = Pages(store, None, idle=60)  # type: ignore[arg-type]
    rows = []
    unscored = {"status": "unscored", "status_reason": "too long", "abstained": True, **SUCCESS}
    for verdict in (SUCCESS, FAILURE, UNSURE, unscored):
        judge(store, verdict, verdict)
        opened = views._open(PROVED)
        assert isinstance(opened, LoadedRun)
        rows.append((blinded(opened).row, blinded(opened).version, blinded(opened).costs))
        assert rows[-1] == rows[0], verdict
    assert opened.row["State"] == "unscored"
    assert rows[0][0].keys() == opened.row.keys()
    assert rows[0][0]["State"] == "judged"


def test_a_graph_does_not_say_again_that_a_label_is_saved(
    client: TestClient, store: Store
) -> None:
    judge(store, FAILURE, FAILURE)
    page = client.get(f"/runs/{PROVED}?queue=1&labelled={TWIN}").text
    assert "is saved" in page
    assert "labelled=" not in page
    assert "queue=1&amp;with=" in page


def test_the_queue_puts_services_without_labels_first(client: TestClient, store: Store) -> None:
    """The order by worth tells who failed: a run that failed has doubtful steps, and a success has none."""
    judge(store, SUCCESS, abstained("failure", 0.8))
    other = "e" * 32
    store.insert("otel_traces", [{**row, "ServiceName": "elsewhere"} for row in team(other)])
    save(store, [judged(store, other, len(SAID), 2, service="elsewhere", **SUCCESS)])
    save_labels(store, [HumanLabel(PROVED, "ada", outcome="failure")])
    worth = [row["TraceId"] for row in QUERIES["label_queue"].run(store)]
    assert worth == [TWIN, other]
    page = client.get("/queue").text
    assert page.index(f"/runs/{other}") < page.index(f"/runs/{TWIN}")
