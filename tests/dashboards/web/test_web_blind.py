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
from mast_trace_dashboards.web.finding.queue_view import blinded
from mast_trace_dashboards.web.loaded_run import LoadedRun
from mast_trace_dashboards.web.pages import Pages
from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import DecisiveError

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
    "decisive": DecisiveError(step=2, agent="researcher", probability=0.7, span_id=f"{2:016x}"),
}
UNSURE = abstained("unknown", 0.8)
_SECONDS = itertools.count()
_LINK = re.compile(r'\s(?:href|action|data-src)="([^"]*)"')
_FOLLOWED = re.compile(rf"/queue|/runs/{PROVED}(?!/label|/compare|/steps/[^2])")
Answer: TypeAlias = "tuple[int, dict[str, str], str]"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Runs of one team with the calls of its models, which each test judges anew."""
    with Store.open(f"chdb://{tmp_path_factory.mktemp('blind')}") as opened:
        migrate(opened)
        for run in RUNS:
            first, *others = team(run)
            if run == TWIN:
                told = {"mast.run.outcome": "failure", "mast.run.expected": "354 EUR"}
                first["SpanAttributes"] |= told
            opened.insert("otel_traces", [first, *others])
        yield opened


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A view that sends few steps at once, so that further ones come on request."""
    monkeypatch.setattr("mast_trace_dashboards.web.pages.PAGE", 4)
    with TestClient(web_app(store), base_url="http://localhost") as opened:
        yield opened


def judge(store: Store, *verdicts: dict[str, Any]) -> None:
    """Judge the runs anew."""
    at = T0 + timedelta(seconds=next(_SECONDS))
    given = zip(RUNS, verdicts, strict=True)
    save(store, [judged(store, run, len(SAID), 2, judged_at=at, **more) for run, more in given])


def pages_of_the_queue(client: TestClient, file: bytes) -> dict[str, Answer]:
    """Everything that the queue's own links, forms and refreshes lead to, by address."""
    asked = f"/runs/{PROVED}?queue=1"
    compared = client.post(f"/runs/{PROVED}/compare?queue=1", files={"file": ("it.json", file)})
    seen = {"POST": (compared.status_code, dict(compared.headers), compared.text)}
    waiting = ["/queue", "/queue/next", f"{asked}&part=1", f"/runs/{PROVED}/download.json?queue=1"]
    waiting += links_in("/", compared.text)
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        answer = client.get(address, follow_redirects=False)
        assert answer.status_code in (200, 303), address
        seen[address] = answer.status_code, dict(answer.headers), answer.text
        waiting += links_in(address, answer.text)
        waiting += [answer.headers["location"].split("#")[0]] if answer.is_redirect else []
    return seen


def links_in(address: str, page: str) -> list[str]:
    """Links to the queue and about its runs, without the menu.

    One run is followed, and of its steps and agents one each, as links to others are made alike.
    """
    main = page.rsplit("</header>", maxsplit=1)[-1]
    found = {urljoin(address, html.unescape(link).split("#")[0]) for link in _LINK.findall(main)}
    return sorted(
        each
        for each in found
        if _FOLLOWED.match(each) and each.count("with=writer") == each.count("with=")
    )


def test_pages_of_the_queue_are_the_same_for_any_verdict(client: TestClient, store: Store) -> None:
    file = client.get(f"/runs/{TWIN}/download.json").content
    judge(store, SUCCESS, FAILURE)
    before, plain = pages_of_the_queue(client, file), client.get(f"/runs/{PROVED}").text
    judge(store, FAILURE, SUCCESS)
    conclude(store, PROVED, proof())
    now = pages_of_the_queue(client, file)
    assert {each for each in {*before, *now} if now.get(each) != before.get(each)} == set()
    assert "confirmed by replay" not in plain
    assert "confirmed by replay" in client.get(f"/runs/{PROVED}").text
    kinds = {urlsplit(address.replace(PROVED, "RUN")).path for address in now}
    assert {"/queue", "/queue/next", "/runs/RUN", "/runs/RUN/tree", "/runs/RUN/steps"} <= kinds
    assert {"/runs/RUN/steps/2", "/runs/RUN/steps/2/input", "/runs/RUN/download.otlp"} <= kinds
    assert any("with=" in address for address in now)


def test_an_outcome_that_the_program_recorded_is_shown(client: TestClient, store: Store) -> None:
    judge(store, SUCCESS, SUCCESS)
    page = client.get(f"/runs/{TWIN}?queue=1").text
    assert '<span class="outcome failure">failure</span>' in page
    assert "Expected answer</span> 354 EUR" in page
    assert "by the judge" not in page


def test_nothing_of_a_row_follows_from_a_verdict(store: Store) -> None:
    """Also what no page shows today; whether a verdict could be reached is hidden too."""
    views = Pages(store, None, idle=60)  # type: ignore[arg-type]
    rows: list[Any] = []
    tokens: list[int] = []
    unscored = {"status": "unscored", "status_reason": "too long", "abstained": True, **SUCCESS}
    for verdict in (SUCCESS, FAILURE, UNSURE, unscored):
        judge(store, verdict, verdict)
        opened = views._open(PROVED)
        assert isinstance(opened, LoadedRun)
        rows.append((blinded(opened).row, blinded(opened).costs))
        assert rows[-1] == rows[0], verdict
        # The other run has no confirmation, which would say where to count from.
        twin = views._open(TWIN)
        assert isinstance(twin, LoadedRun)
        assert blinded(twin).costs.after.tokens == 0
        tokens.append(twin.costs.after.tokens)
    assert tokens[0] == 0 < tokens[1]
    assert opened.row["State"] == "unscored"
    assert rows[0][0].keys() == opened.row.keys()
    assert rows[0][0]["State"] == "judged"


def test_a_graph_does_not_say_again_that_a_label_is_saved(client: TestClient, store: Store) -> None:
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


@pytest.mark.parametrize(
    ("number", "queue", "seal", "blind"),
    [
        (1, "?queue=1", "own", True),
        (2, "?queue=1", "", False),
        (3, "?queue=1", "forged \N{SNOWMAN}", False),
        (4, "?queue=1", "of another run", False),
        (5, "", "own", False),
    ],
)
def test_a_label_is_blind_by_the_page_that_it_comes_from(
    client: TestClient, store: Store, number: int, queue: str, seal: str, blind: bool
) -> None:
    """A field of the form that says so is not believed, and a second label comes from who has seen the verdict."""
    run, other = f"{number:032x}", f"{number + 100:032x}"
    store.insert("otel_traces", [*team(run), *team(other)])
    seals = {
        name: re.findall('name="seal" value="(.*?)"', client.get(f"/runs/{one}?queue=1").text)[0]
        for name, one in (("own", run), ("of another run", other))
    }
    assert "seal" not in client.get(f"/runs/{run}").text
    form = {"annotator": "ada", "decisive_step": "1", "seal": seals.get(seal, seal), "blind": "1"}
    for expected in (blind, False):
        answer = client.post(f"/runs/{run}/label{queue}", data=form, follow_redirects=False)
        assert answer.status_code == 303
        assert [each.blind for each in labels_of(store, run)] == [expected]
