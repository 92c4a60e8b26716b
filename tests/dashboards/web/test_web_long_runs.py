"""Pages of what is long or many: bounded, and a word wherever something is left out."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import pytest
from long_runs import calls, many_agents, stored
from long_runs import root as long_root
from stored_spans import spans_of
from web_runs import LONG, SHORT, T0, message, root

from mast_trace.exceptions import StorageError
from mast_trace.trajectory import read_trajectory, trajectory_from_dict
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards import stored_run
from mast_trace_dashboards.stored_run import OutlineCache, StoredRun
from mast_trace_dashboards.web import loaded_run
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import load_latest, save
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store

CROWD, BROKEN = "6" * 32, "7" * 32
BEGIN = time.time_ns() // 10**6 * 10**6 - 3600 * 10**9


@pytest.fixture(scope="module")
def client(store: Store, client: httpx.Client) -> httpx.Client:
    """Beside the usual runs: one of very many agents, one of errors alone, very many services."""
    store.insert("otel_traces", stored(many_agents(400), CROWD, BEGIN))
    failed = [
        dataclasses.replace(
            calls(n, "clerk", "look", n, ""), status="Error", status_message="x" * 5000
        )
        for n in range(2, 2503)
    ]
    store.insert("otel_traces", stored([long_root(2503), *failed], BROKEN, BEGIN))
    services = [{**root(f"{n:032x}", "one"), "ServiceName": f"service {n}"} for n in range(300)]
    store.insert("otel_traces", services)
    return client


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has been looked at yet."""
    monkeypatch.setattr(stored_run, "_CACHE", OutlineCache())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of spans that each query returns."""
    counts: list[int] = []
    select = RunSpans._select

    def counted(self: RunSpans, *arguments: Any) -> Sequence[SpanRecord]:
        found = select(self, *arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(RunSpans, "_select", counted)
    return counts


@pytest.mark.usefixtures("forgotten")
def test_the_verdict_comes_before_a_count_of_steps(client: httpx.Client, read: list[int]) -> None:
    with client.stream("GET", f"/runs/{LONG}") as answer:
        pieces = answer.iter_text()
        first = ""
        while first.count("so far") < 2:
            first += next(pieces)
        assert "It misread the price." in first
        assert 'href="#step-4321"' in first
        assert 'id="step-0"' not in first
        rest = "".join(pieces)
    assert 'id="step-499"' in rest
    assert "Steps 0 to 499 of 5,000; the others come on request." in rest
    assert rest.rstrip().endswith("</html>")
    assert sum(read) < 5001 + 600


def test_the_name_of_a_long_run_waits_for_no_price(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its outline is known."""
    client.get(f"/runs/{LONG}")

    def failing(*_: Any) -> Any:
        raise StorageError("no price")

    monkeypatch.setattr(loaded_run, "run_costs", failing)
    answer = client.get(f"/runs/{LONG}")
    assert answer.status_code == 200
    assert "<h1>long" in answer.text
    assert "could not be read: the database does" in answer.text


def test_further_steps_read_no_more_than_they_show(client: httpx.Client, read: list[int]) -> None:
    client.get(f"/runs/{LONG}")
    read.clear()
    page = client.get(f"/runs/{LONG}/steps?from=4000&to=4500").text
    assert page.count('class="step ') == 500
    assert sum(read) == 500
    read.clear()
    assert "Step 77." in client.get(f"/runs/{LONG}/steps/77").text
    assert sum(read) <= 2


def test_what_is_known_is_not_sent_again(client: httpx.Client, read: list[int]) -> None:
    page = client.get(f"/runs/{LONG}?part=1")
    version = page.text.split('data-version="')[1].split('"')[0]
    read.clear()
    again = client.get(f"/runs/{LONG}", params={"part": "1", "known": version})
    assert (again.status_code, again.text, read) == (204, "", [])


@pytest.mark.usefixtures("forgotten")
def test_a_cut_page_says_so(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise StorageError("password of the database")

    monkeypatch.setattr(stored_run, "outline_of", failing)
    page = client.get(f"/runs/{LONG}").text
    assert "It misread the price." in page
    assert "could not be read: the database does" in page
    assert "password" not in page


def test_very_many_agents_are_folded(client: httpx.Client) -> None:
    page = client.get(f"/runs/{CROWD}").text
    assert "and 140 more" in page
    assert 'class="asked">asked {' in page
    assert "One box stands for the" in page
    assert 'aria-label="Messages in the graph"' in page
    assert page.count('class="node') == 16
    table = page.split('class="pairs-of-agents"')[1].split("</table>")[0]
    assert table.count('<td class="number">') == 133  # each message has another pair
    assert len(page) < 750_000


def test_long_errors_are_cut_and_whole_on_request(client: httpx.Client) -> None:
    page = client.get(f"/runs/{BROKEN}").text
    assert ">2,001 more steps</a>" in page
    assert len(page) < 1_500_000
    assert "x" * 1501 not in page
    assert "x" * 5000 in client.get(f"/runs/{BROKEN}/steps/0").text


def test_very_many_services_can_be_typed(client: httpx.Client) -> None:
    page = client.get("/").text
    assert 'list="service-values"' in page
    assert page.count("<option value=") < 450
    assert "service 299" in client.get("/", params={"service": "service 299"}).text


def test_very_many_labels_are_counted(client: httpx.Client, store: Store) -> None:
    people = [HumanLabel(CROWD, f"person {n:03d}", "failure") for n in range(300)]
    save_labels(store, people)
    page = client.get(f"/runs/{CROWD}").text
    assert "person 049" in page
    assert "person 050" not in page
    assert "and 250 more people" in page
    assert "300 of all 300 say failure" in page


def test_very_much_evidence_is_counted(client: httpx.Client, store: Store) -> None:
    verdict = load_latest(store, LONG)
    assert verdict is not None
    steps = tuple(range(5000))
    many = ModeFinding(
        code="1.3", probability=0.8, evidence=Evidence.EXACT, steps=steps, quotes=("Step 19.",)
    )
    later = verdict.model_copy(
        update={
            "modes": (*verdict.modes, many),
            "judge_version": "v2",
            "judged_at": T0.replace(microsecond=0),
            "status_reason": "the judge read the first 10 steps",
        }
    )
    save(store, [later.model_copy(update={"judged_at": later.judged_at.replace(year=2100)})])
    page = client.get(f"/runs/{LONG}").text
    assert "and 4,988 more" in page
    assert 'href="#step-19">step 19</a></blockquote>' in page
    assert "Note: the judge read the first 10 steps." in page
    assert len(page) < 700_000
    save(store, [verdict.model_copy(update={"judged_at": later.judged_at.replace(year=2101)})])


@pytest.mark.parametrize("trace_id", [SHORT, LONG, CROWD])
def test_downloads_are_whole(client: httpx.Client, store: Store, trace_id: str) -> None:
    whole = client.get(f"/runs/{trace_id}/download.json").json()
    spans = spans_of(store, trace_id)
    assert trajectory_from_dict(whole["trajectory"]) == read_trajectory(spans)
    sent = client.get(f"/runs/{trace_id}/download.otlp").json()
    assert sum(
        len(scope["spans"]) for each in sent["resourceSpans"] for scope in each["scopeSpans"]
    ) == len(spans)


def test_long_runs_are_compared_by_all_their_steps(client: httpx.Client, store: Store) -> None:
    other = "8" * 32
    rows = [message(other, n, "researcher", f"Step {n}.") for n in range(5000)]
    store.insert("otel_traces", [root(other, "long"), *rows])
    page = client.get(f"/compare?run={LONG}&run={other}").text
    assert "They differ from step 4,321, which comes after what is shown here." in page
    assert "no such step" not in page
    assert page.count("the first 500 of 5,000 steps.") == 2


def test_outlines_are_forgotten_beyond_what_is_kept(store: Store) -> None:
    cache = OutlineCache(most=2_000_000)
    for trace_id in (LONG, BROKEN, CROWD):
        summary = run_summary(store, trace_id)
        assert summary is not None
        cache.read(("", "", "", trace_id, summary.fingerprint), RunSpans(store, trace_id))
        assert cache.size > 0
    assert cache.size <= 2_000_000
    assert cache.find(("", "", "", CROWD, summary.fingerprint))


def test_a_run_is_read_anew_when_something_came(store: Store) -> None:
    before = StoredRun(store, CROWD, "").count
    store.insert("otel_traces", stored([calls(900, "late", "look", 1, "found")], CROWD, BEGIN))
    assert StoredRun(store, CROWD, "").count == before + 1
