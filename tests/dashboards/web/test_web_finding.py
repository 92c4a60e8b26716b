"""Runs, steps and texts are found: by their input, their cost, their group, a text, and what a label would teach."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from buying import SYSTEM, store_buying
from scripted_llm import Call, Reply
from starlette.testclient import TestClient
from web_runs import abstained, judged, message, root

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.step_input import seen_at, why_unknown
from mast_trace_dashboards.stored_run import StoredRun
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.finding import pages, text_search
from mast_trace_dashboards.web.finding.run_costs import run_costs
from mast_trace_dashboards.web.finding.run_list import RunList
from mast_trace_dashboards.web.finding.seen_view import tree_rows
from mast_trace_dashboards.web.finding.text_search import pieces_with
from mast_trace_judge.pricing import OwnPrice, store_prices
from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels
from mast_trace_judge.store.verdicts import save

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixture_types import Patch

CLOSE, SURE, FINE = ("a" * 32, "b" * 32, "c" * 32)


def _script(request: dict[str, Any]) -> Reply | str:
    told = request["messages"]
    if told[-1]["role"] == "tool":
        return "A bolt costs 12 EUR."
    if "slowly" in told[0]["content"]:
        return "Thirteen, I think."
    return Reply(calls=(Call("price_of", {"item": "bolt"}),))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A run whose model calls have their input, and judged runs, the candidates of one close together."""
    with Store.open(f"chdb://{tmp_path_factory.mktemp('finding')}") as opened:
        migrate(opened)
        store_buying(opened, _script)
        for run in (CLOSE, SURE, FINE):
            version = {"ResourceAttributes": {"service.version": "2" if run == FINE else "1"}}
            rows = [root(run, "team"), *(message(run, n, "writer", f"Said {n}.") for n in range(4))]
            opened.insert("otel_traces", [{**row, **version} for row in rows])
        record_outcome(opened, FINE, "success")
        fine = {"outcome": "success", "decisive": None, "candidates": (), "modes": ()}
        save(
            opened,
            [
                judged(opened, CLOSE, 4, 1, **abstained("failure", 0.6)),
                judged(opened, SURE, 4, 1),
                judged(opened, FINE, 4, 1, **fine),
            ],
        )
        store_prices(opened, {"m": OwnPrice(input=Decimal(1), output=Decimal(2))})
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    with TestClient(web_app(store), base_url="http://localhost") as opened:
        yield opened


@pytest.fixture(scope="module")
def buying(store: Store) -> StoredRun:
    [row] = [row for row in QUERIES["runs"].run(store) if row["Name"] == "buying"]
    return StoredRun(store, row["TraceId"], row["Project"])


class TestInput:
    """The input of an agent at a step, and the difference to its previous one."""

    def test_the_first_input_has_nothing_before_it(self, buying: StoredRun) -> None:
        run = buying.read()
        tool = next(step.index for step in run.steps if step.tool)
        seen = seen_at(run, tool)
        assert seen is not None
        assert seen.first
        assert [each.role for each in seen.shown] == ["system", "user"]

    def test_a_history_that_grows_keeps_its_beginning(self, buying: StoredRun) -> None:
        run = buying.read()
        calls = [each for each in run.invocations if each.kind == "model"]
        answer = next(step.index for step in run.steps if "12 EUR." in step.text)
        seen = seen_at(run, answer)
        assert seen is not None
        assert [each.state for each in seen.messages] == ["kept", "kept", "new", "new"]
        assert seen.previous_step == next(step.index for step in run.steps if step.tool)
        # The prompt is rebuilt exactly: what the program sent, in order.
        said = [each.message.content for each in seen.shown if each.message]
        assert said[:2] == [SYSTEM, "What is a bolt?"]
        assert said[3] == "bolt: 12 EUR"
        assert len(calls[1].input_ids) == len(seen.shown)

    def test_what_was_left_out_is_told(self, buying: StoredRun) -> None:
        run = buying.read()
        seen = seen_at(run, next(step.index for step in run.steps if "Thirteen" in step.text))
        assert seen is not None
        assert [each.state for each in seen.messages] == ["gone", "new", "kept", "gone", "gone"]

    def test_a_step_without_an_input_says_so(self, store: Store) -> None:
        run = StoredRun(store, CLOSE, "").read()
        assert seen_at(run, 0) is None
        assert why_unknown(run, 0).startswith("No model call with its input")

    def test_the_page_shows_changed_words(self, client: TestClient, buying: StoredRun) -> None:
        number = next(step.index for step in buying.read().steps if "Thirteen" in step.text)
        page = client.get(f"/runs/{buying.trace_id}/steps/{number}/input").text
        assert "<ins>slowly </ins>" in page or "<ins> slowly</ins>" in page
        assert "2 no longer shown" not in page.split("Against")[0]
        seen = seen_at(buying.read(), number)
        assert seen is not None
        shown = f" ({', '.join(seen.parameters)})" if seen.parameters else ""
        assert f", model {seen.model}{shown}" in page.replace(".\n", "").split("Against")[0]
        assert "()" not in page
        assert client.get(f"/runs/{buying.trace_id}/steps/99/input").status_code == 404
        without = client.get(f"/runs/{CLOSE}/steps/0/input").text
        assert "No model call with its input was recorded" in without


class TestCost:
    """Tokens and cost stand at steps, agents and runs; an unknown price is never 0."""

    def test_calls_belong_to_the_steps_they_made(self, buying: StoredRun, store: Store) -> None:
        costs = run_costs(buying)
        assert (costs.total.calls, costs.total.unpriced) == (3, 1)
        assert sum(each.calls for each in costs.by_step.values()) == 3
        assert [agent for agent, _ in costs.by_agent] == ["buyer"]
        whole = QUERIES["costs"].one(store, only=[buying.trace_id], parts=["total"])
        assert whole is not None
        assert costs.total.cost == pytest.approx(whole["Cost"], abs=1e-12)
        assert costs.total.tokens == whole["InputTokens"] + whole["OutputTokens"]

    def test_the_list_and_the_run_say_the_same(self, client: TestClient, buying: StoredRun) -> None:
        words = run_costs(buying).total.words
        assert words.endswith("and 1 call of unknown price")
        assert words in client.get("/").text
        page = client.get(f"/runs/{buying.trace_id}").text
        assert words in page
        assert "price unknown" in page

    def test_the_most_expensive_run_comes_first(self, client: TestClient) -> None:
        rows = client.get("/export.jsonl?sort=cost").text.splitlines()
        assert [json.loads(row)["Name"] for row in rows] == ["buying", "team", "team", "team"]


class TestList:
    """Time ranges, orders, groups and files of the run list."""

    def test_orders(self, client: TestClient) -> None:
        def order(sort: str) -> list[str]:
            rows = client.get(f"/export.jsonl?sort={sort}").text.splitlines()
            return [json.loads(row)["TraceId"] for row in rows]

        newest = order("")
        assert order("oldest")[-1] == newest[0]
        assert order("took")[-1] == newest[0]
        steps = [
            json.loads(row)["Steps"]
            for row in client.get("/export.jsonl?sort=steps").text.splitlines()
        ]
        assert steps == sorted(steps, reverse=True)

    @pytest.mark.parametrize(
        ("address", "words", "sizes"),
        [
            ("/", "Older runs", [3, 1]),
            *((f"/?sort={sort}", "More runs", [3, 1]) for sort in ("took", "cost")),
            ("/groups/version", "Older versions", [1, 1]),
        ],
    )
    def test_the_link_to_further_rows(
        self, client: TestClient, address: str, words: str, sizes: list[int], monkeypatch: Patch
    ) -> None:
        """Every page but the last has it, and no row is on two of them."""
        monkeypatch.setattr(RunList.page, "__defaults__", (3,))
        monkeypatch.setattr(pages, "PER_PAGE", 1)
        first = client.get(address).text
        [link] = re.findall(rf'<a class="more" href="([^"]+)">{words}</a>', first)
        last = client.get(unescape(link)).text
        assert 'class="more"' not in last
        row = r'(?:name="run" value|scope="row"><a href)="([^"]+)"'
        before, after = re.findall(row, first), re.findall(row, last)
        assert [len(before), len(after)] == sizes
        assert not set(before) & set(after)

    @pytest.mark.parametrize("name", ["since", "until", "page"])
    @pytest.mark.parametrize("place", ["/", "/search", "/cost", "/agents", "/groups/user"])
    def test_what_cannot_be_read_is_told(self, client: TestClient, place: str, name: str) -> None:
        said = "The page is no number" if name == "page" else "No time can be read from"
        assert said in client.get(f"{place}?{name}=yesterdayish").text
        assert said not in client.get(f"{place}?{name}={'2' if name == 'page' else '2h'}").text

    @pytest.mark.parametrize("name", ["since", "until", "before"])
    def test_a_file_of_what_cannot_be_read_is_refused(self, client: TestClient, name: str) -> None:
        assert client.get(f"/export.csv?{name}=yesterdayish").status_code == 400

    def test_a_time_range_leaves_out_what_is_older(self, client: TestClient) -> None:
        assert "No run matches" in client.get("/?since=1970-01-02&until=1980-01-01").text
        assert "buying" in client.get("/?since=30m").text
        assert ">team<" not in client.get("/?since=30m").text

    @pytest.mark.parametrize(
        ("address", "names"),
        [
            ("user=ada", {"buying"}),
            ("session=talk-1", {"buying"}),
            ("version=1", {"team"}),
            ("user=nobody", set()),
            ("user=ada&version=1", set()),
        ],
    )
    def test_a_group_filters(self, client: TestClient, address: str, names: set[str]) -> None:
        rows = client.get(f"/export.jsonl?{address}").text.splitlines()
        assert {json.loads(row)["Name"] for row in rows} == names

    def test_groups_have_rates_with_intervals(self, client: TestClient) -> None:
        page = client.get("/groups/version").text.replace("\N{NO-BREAK SPACE}", " ")
        assert "2 of 2 (100 %, 34 to 100 %)" in page
        assert "0 of 1 (0 %, 0 to 79 %)" in page
        assert "no outcome is known" in client.get("/groups/user").text
        assert client.get("/groups/nonsense").status_code == 404

    @pytest.mark.parametrize(
        ("by", "told"),
        [("user", "user.id"), ("session", "conversation_id="), ("version", "service.version=")],
    )
    def test_a_page_without_groups_says_how_runs_name_them(
        self, client: TestClient, by: str, told: str
    ) -> None:
        page = client.get(f"/groups/{by}?since=1970-01-02&until=1980-01-01").text
        empty = page.split('class="empty">')[1].split("</p>")[0]
        assert f"No run of these names its {by}." in empty
        names = ("user.id", "conversation_id=", "service.version=")
        assert [each for each in names if each in empty] == [told]

    def test_csv_holds_no_formula(self, store: Store, client: TestClient) -> None:
        evil = "d" * 32
        rows = [root(evil, "=1+1"), message(evil, 0, "writer", "x")]
        store.insert("otel_traces", rows)
        table = list(csv.DictReader(io.StringIO(client.get(f"/export.csv?run={evil}").text)))
        assert [row["Name"] for row in table] == ["'=1+1"]
        assert client.get("/export.xls").status_code == 404
        store.command(f"DELETE FROM otel_traces WHERE TraceId = '{evil}'")
        store.command(f"DELETE FROM mast_run_states WHERE TraceId = '{evil}'")


class TestSearch:
    """Hits, their marks and their number."""

    @pytest.mark.parametrize("text", ["BUYING", "buyer", "ada", "talk-1"])
    def test_the_list_finds_runs_by_names_and_tags(self, store: Store, text: str) -> None:
        """The run, its agents, its user and its session."""
        listed = RunList(store, idle=60.0)
        assert [row["Name"] for row in listed.page(Filters.of({"text": text})).rows] == ["buying"]

    def test_hits_are_marked_and_lead_there(self, client: TestClient, buying: StoredRun) -> None:
        page = client.get("/search?text=bolt%20COSTS&since=1h").text
        assert "<mark>bolt costs</mark>" in page
        address = page.split('<ol class="hits">')[1].split('href="')[1].split('"')[0]
        reached = client.get(address, follow_redirects=False)
        assert reached.status_code == 303
        assert f"/runs/{buying.trace_id}" in reached.headers["location"]
        assert client.get(f"/runs/{CLOSE}/spans/nothing").status_code == 404

    def test_a_count_of_at_least(self, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_search, "MOST_HITS", 3)
        page = client.get("/search?text=said&since=3d").text
        assert "3 of the texts are shown" in page
        assert "12 spans of 3 runs have the text." in page
        monkeypatch.setattr(text_search, "COUNTED_SECONDS", -1.0)
        assert "At least 0 spans of 0 runs" in client.get("/search?text=said&since=3d").text

    def test_old_hits_have_pages(self, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_search, "MOST_HITS", 5)
        address, seen, moments = "/search?text=said&since=3d", [], []
        for number in range(3):
            page = client.get(address).text
            assert "12 spans of 3 runs have the text." in page
            listed = "".join(part.split("</ol>")[0] for part in page.split('<ol class="hits">')[1:])
            seen += re.findall(r'href="([^"]+)"', listed)
            moments += re.findall(r"[\d-]+ [\d:]+ UTC", listed)
            older = re.search(r'href="([^"]+)" rel="next"', page)
            assert (older is None) == (number == 2)
            if older:
                address = older[1].replace("&amp;", "&")
        assert len(set(seen)) == len(seen) == 12
        assert moments == sorted(moments, reverse=True)
        assert "no further spans" in client.get("/search?text=said&since=3d&page=9").text
        monkeypatch.setattr(text_search, "READ_WHOLE", 11)
        page = client.get("/search?text=said&since=3d").text
        assert "shown, the first that were found" in page
        assert 'rel="next"' not in page

    def test_the_last_day_is_searched_without_a_time(self, client: TestClient) -> None:
        assert "12 texts in 3 runs" in client.get("/search?text=said").text
        assert "No message" in client.get("/search?text=said&since=1m").text

    def test_a_text_is_shown_once_with_its_run_and_where_to_look(self, client: TestClient) -> None:
        page = client.get("/search?text=bolt%20COSTS&since=1h").text
        assert page.count("<mark>bolt costs</mark>") == 1
        found = client.get("/search?text=said&since=3d").text.split('<section class="found"')[1:]
        assert len(found) == 3
        of_run = next(each for each in found if SURE in each)
        assert 'class="outcome failure"' in of_run
        assert f'href="/runs/{SURE}#step-1"' in of_run

    def test_a_search_in_a_run_finds_its_texts_alone(self, client: TestClient) -> None:
        """The time does not matter; the page of the run has the form."""
        found = client.get(f"/search?text=said&run={SURE}&until=9999-12-31").text
        assert "4 texts in 1 run." in found
        assert f"/runs/{SURE}/spans/" in found
        form = client.get(f"/runs/{SURE}").text.split('action="/search"')[1].split("</form>")[0]
        assert f'name="run" value="{SURE}"' in form

    def test_special_characters_are_plain(self) -> None:
        pieces = list(pieces_with("a.b A.B axb", "a.b"))
        assert [piece.text for piece in pieces if piece.quoted] == ["a.b", "A.B"]


class TestTree:
    """The spans of a run below each other."""

    def test_spans_stand_below_their_parents(self, client: TestClient, buying: StoredRun) -> None:
        page = client.get(f"/runs/{buying.trace_id}/tree").text
        assert page.index("invoke_workflow") < page.index("invoke_agent") < page.index("chat")
        assert 'row depth-2"' in page
        # Each span with others below it folds.
        assert page.count("<details open>") == page.count(" inside</span>") > 1
        assert page.count("<li id=") == page.count("</li>")

    def test_a_circle_and_an_unknown_parent_lose_no_span(self) -> None:
        def span(identity: str, parent: str) -> dict[str, Any]:
            return {"SpanId": identity, "ParentSpanId": parent, "StartNs": 0, "DurationNs": 1}

        spans = [span("a", "b"), span("b", "a"), span("c", "gone"), span("d", "c"), span("e", "e")]
        rows = tree_rows(spans, {"d": 7})
        assert sorted(row.span["SpanId"] for row in rows) == ["a", "b", "c", "d", "e"]
        found = {row.span["SpanId"]: row for row in rows}
        assert found["c"].orphan
        assert (found["c"].inside, found["d"].step, found["d"].depth) == (1, 7, 1)


class TestQueue:
    """Runs to label, and labels with several steps."""

    def test_the_least_sure_unlabelled_run_is_first(self, client: TestClient, store: Store) -> None:
        rows = QUERIES["label_queue"].run(store)
        assert [row["TraceId"] for row in rows] == [CLOSE, SURE, FINE]
        first = client.get("/queue/next", follow_redirects=False).headers["location"]
        assert first == f"/runs/{CLOSE}?queue=1#label"
        skipped = client.get(f"/queue/next?after={CLOSE}", follow_redirects=False)
        assert SURE in skipped.headers["location"]
        form = {"annotator": "ada", "outcome": "failure", "decisive_step": "3, 1"}
        wrong = client.post(f"/runs/{SURE}/label", data={**form, "decisive_step": "1, 4"})
        assert wrong.status_code == 400
        saved = client.post(f"/runs/{SURE}/label?queue=1", data=form, follow_redirects=False)
        assert saved.headers["location"] == f"/queue/next?labelled={SURE}"
        following = client.get(saved.headers["location"], follow_redirects=False)
        assert following.headers["location"] == f"/runs/{CLOSE}?labelled={SURE}&queue=1#label"
        [label] = labels_of(store, SURE)
        assert (label.decisive_step, label.decisive_steps) == (3, (1, 3))
        assert [row["TraceId"] for row in QUERIES["label_queue"].run(store)] == [CLOSE, FINE]
        others = QUERIES["label_queue"].run(store, annotator="bob")
        assert {row["TraceId"] for row in others} == {CLOSE, SURE, FINE}
        save_labels(store, [HumanLabel(SURE, "amy", decisive_step=0)])
        page = client.get("/queue").text.replace("\N{NO-BREAK SPACE}", " ")
        assert page.index("1 (100 %, 21 to 100 %)") < page.index("1 (50 %, 9 to 91 %)")
        assert "decisive steps <a" in client.get(f"/runs/{SURE}").text

    def test_the_judges_word_is_hidden_until_the_label_is_saved(
        self, client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save_labels(store, [HumanLabel(SURE, "zoe", note="I know", project="")])
        told = (
            *("DECISIVE", "said-lead", "Then: ", "by the judge"),
            *('class="chip"', "I know"),
        )
        monkeypatch.setattr("mast_trace_dashboards.web.pages.PAGE", 2)
        steps = f"/runs/{SURE}/steps?from=0&to=4"
        plain = client.get(f"/runs/{SURE}").text
        assert [word for word in told if word in plain] == list(told)
        assert "is not blind" in plain
        assert "DECISIVE" in client.get(steps).text
        # A proxy's user has not labelled the run that somebody else did.
        proxy = {"web_trusted_proxies": "127.0.0.1", "web_user_header": "x-user"}
        config = WebConfig.load(**proxy, web_public_names="localhost", web_rights="read,label")
        proxied = web_app(store, Access(config))
        with TestClient(proxied, base_url="http://localhost", client=("127.0.0.1", 1)) as named:
            bob = {"x-user": "bob"}
            for address in (f"/runs/{SURE}?queue=1", f"/runs/{SURE}?queue=1&part=1"):
                page = named.get(address, headers=bob).text
                assert [word for word in told if word in page] == []
                assert "Hidden until your label" in page
                assert "download.json" not in page
                assert "Said 1." in page
            further = named.get(f"{steps}&queue=1", headers=bob).text
            assert [word for word in told if word in further] == []
            assert "from=2&amp;to=4&amp;queue=1" in further
            listed = named.get("/queue", headers=bob).text
            assert 'class="chip"' not in listed
            assert "failure</td>" not in listed
            zoe = named.get(f"/runs/{SURE}?queue=1", headers={"x-user": "zoe"}).text
            assert "said-lead" in zoe
            form = {"outcome": "failure"}
            same_site = {**bob, "origin": "http://localhost", "sec-fetch-site": "same-origin"}
            saved = named.post(f"/runs/{SURE}/label?queue=1", data=form, headers=same_site)
            assert f'href="/runs/{SURE}">The judge' in saved.text
            assert "said-lead" in named.get(f"/runs/{SURE}?queue=1", headers=bob).text
        assert "said-lead" in client.get(f"/runs/{SURE}?queue=1").text
        assert "is saved" not in client.get("/queue?labelled=%3Cb%3E").text

    def test_a_label_without_a_list_of_steps_has_its_one_step(self, store: Store) -> None:
        save_labels(store, [HumanLabel(FINE, "eve", decisive_step=2)])
        [label] = labels_of(store, FINE)
        assert label.decisive_steps == (2,)


def test_the_list_has_the_first_line_of_each_task(client: TestClient, buying: StoredRun) -> None:
    """Those runs say nothing of theirs; the whole of it is on the run's page."""
    [line] = re.findall(r'class="small line asked" title="[^"]*">([^<]*)<', client.get("/").text)
    assert unescape(line) == buying.task() == buying.outline.run.task


def test_a_run_is_compared_with_the_nearest_good_one(client: TestClient) -> None:
    page = client.get(f"/compare?run={SURE}").text
    assert f'B: <a href="/runs/{FINE}"' in page
    assert client.get(f"/compare?run={FINE}").status_code == 404, "no other one has succeeded"
