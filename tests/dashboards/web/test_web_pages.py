"""The pages' answers, without a browser."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from replayed_runs import PROVED
from web_runs import BARE, LONG, LOOP, SHORT

from mast_trace.trajectory import Step, StepKind
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.web.app import _environment
from mast_trace_dashboards.web.comparisons import compared
from mast_trace_dashboards.web.rows import Row, pieces_of, shown
from mast_trace_dashboards.web.run_view import _lanes
from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    import httpx

    from mast_trace_collector.storage import Store


def test_the_last_days_say_what_their_links_list(client: httpx.Client) -> None:
    tiles = re.findall(r'<li><a href="([^"]+)">(.*?)</a></li>', client.get("/week").text, re.DOTALL)
    assert len(tiles) == 5
    for address, tile in tiles[:4]:
        assert "since=" in address
        counted = re.search(r"(\d+) in 7 days", tile)
        assert counted
        listed = client.get(unescape(address)).text
        assert listed.count('<td class="what">') == int(counted[1])
    assert "2.6 misread" in tiles[2][1]
    assert "researcher" in tiles[3][1]
    assert not client.get("/week?service=none").text.strip()


def test_the_list_shows_runs_with_modes_and_the_place_to_look_at(client: httpx.Client) -> None:
    page = client.get("/").text
    for text in (
        "trip &amp; &lt;i&gt;co&lt;/i&gt;",
        "researcher</span>, step 1</a>",
        ">2.6 misread</a>",
    ):
        assert text in page


def test_the_last_run_has_an_address(client: httpx.Client) -> None:
    newest = re.findall(r'<td class="what"><a href="([^"]+)"', client.get("/").text)[0]
    assert client.get("/runs/last").headers["location"] == newest


@pytest.mark.parametrize(("query", "kept"), [("", ""), ("?at=3", "?at=3")])
def test_the_beginning_of_an_id_leads_to_its_run(
    client: httpx.Client, query: str, kept: str
) -> None:
    answer = client.get(f"/runs/{SHORT[:12]}{query}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{SHORT}{kept}")
    assert client.get("/runs/zz").status_code == 404


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("mode=2.6", {SHORT, LONG}),
        ("mode=1.1", set()),
        ("text=181%20eur", {SHORT, LONG}),
        ("text=nowhere%20to%20be%20found", set()),
        ("text=TRIP", {SHORT}),
        ("text=hop", {SHORT, LONG, BARE}),
        ("text=aaaaaaaa", {SHORT}),
        ("text=aaaaa", set()),
        ("outcome=failure&framework=ag2", {SHORT, LONG}),
        ("framework=crewai", set()),
    ],
)
def test_filters_narrow_the_list(client: httpx.Client, query: str, found: set[str]) -> None:
    page = client.get(f"/?{query}").text
    assert {run for run in (SHORT, LONG, BARE) if f"/runs/{run}" in page} == found


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "outcome=failed",
            "No run has the outcome <code>failed</code>. Known are <code>failure</code>,",
        ),
        ("mode=2.7", "No run has the mode <code>2.7</code>. Known are <code>1.1</code>"),
        ("framework=crewai", "No run has the framework <code>crewai</code>. Known "),
        ("agent=%3Cb%3E", "No run has the agent <code>&lt;b&gt;</code>."),
        ("service=Shop&agent=nobody", "No run has the service <code>Shop</code>."),
        ("service=Shop&agent=nobody", "No run has the agent <code>nobody</code>."),
        ("project=nowhere", "No run has the project <code>nowhere</code>."),
        ("outcome=success", ""),
        ("mode=1.1&framework=ag2", ""),
        ("text=nowhere", ""),
        ("mode=2.6&part=1", ""),
        ("token=x&before=7&before_run=a&project=", ""),
        ("agnet=researcher", "There is no filter <code>agnet</code>:"),
        ("state=ok&Mode=2.6", "There are no filters <code>Mode</code>, <code>state</code>:"),
        ("%3Cb%3E=1", "There is no filter <code>&lt;b&gt;</code>:"),
    ],
)
def test_an_unknown_filter_or_value_is_named(client: httpx.Client, query: str, told: str) -> None:
    """With those that there are; a known value that narrows to nothing is no news."""
    page = " ".join(client.get(f"/?{query}").text.split())
    assert told in page, page[page.find('class="note"') :][:400]
    assert ("No run has the" in page) is told.startswith("No run")
    named = "narrows nothing. The filters are <code>project</code>" in page
    assert named is told.startswith("There")


def test_a_run_has_verdict_steps_and_reason(client: httpx.Client) -> None:
    page = client.get(f"/runs/{SHORT}").text
    for text in ("It misread the price.", "DECISIVE", "look 2"):
        assert text in page
    assert "same as step 3" not in page  # by another agent
    assert "<mark>A night costs 181 EUR.</mark>" in page
    assert '181 EUR.</mark> <a class="small" href="#step-1">step 1</a></blockquote>' in page
    assert page.count("<mark>") == 2


def test_who_writes_to_whom_is_drawn_and_written(client: httpx.Client) -> None:
    page = client.get(f"/runs/{LOOP}").text
    assert "most often researcher writes to writer, 5 times" in page
    assert page.count('class="arrow') == 1
    assert "<td>researcher</td><td>writer</td>" in page
    narrowed = client.get(f"/runs/{LOOP}?least=2").text
    form = 'aria-label="Messages in the graph"'  # two agents have nothing to choose, until something is hidden
    assert (form in page, form in narrowed) == (False, True)
    assert "style=" not in page


def test_an_agent_of_no_run_is_named_and_a_strange_number_refused(client: httpx.Client) -> None:
    page = client.get(f"/runs/{LOOP}?with=writer&with=%3Ci%3E").text
    assert "No agent of this run is named &lt;i&gt;." in page
    assert "is named writer" not in page
    assert "<i>" not in page
    refused = client.get(f"/runs/{LOOP}?least=many")
    assert refused.status_code == 400
    assert "least is a whole number, not &#39;many&#39;." in refused.text


def test_steps_that_only_repeat_are_folded(client: httpx.Client) -> None:
    page = client.get(f"/runs/{LOOP}").text
    assert "Steps 4 to 9 repeat earlier ones" in page
    assert page.index('id="step-3"') < page.index('class="fold"') < page.index('id="step-4"')


def test_a_part_of_a_page_is_answered_alone(client: httpx.Client) -> None:
    for address in ("/?part=1", f"/runs/{BARE}?part=1"):
        part = client.get(address).text
        assert "<html" not in part
        assert "bare" in part


def test_a_run_without_verdict_says_why(client: httpx.Client) -> None:
    page = client.get(f"/runs/{BARE}").text
    assert 'data-state="waiting"' in page
    assert "Not judged yet" in page


def test_texts_of_a_run_are_never_markup(client: httpx.Client) -> None:
    page = client.get(f"/runs/{SHORT}").text
    assert "<script>document" not in page
    assert "&lt;script&gt;document" in page
    for text in ("<b>writer", "\x1b", "\u202e"):
        assert text not in page
    assert "&lt;U+202E&gt;" in page
    assert "{{ 7*7 }}" in page


def test_a_huge_text_is_unfolded_on_request(client: httpx.Client) -> None:
    assert len(client.get(f"/runs/{SHORT}").text) < 100_000
    whole = client.get(f"/runs/{SHORT}/steps/5").text
    assert "x" * 60_000 in whole


@pytest.mark.parametrize("length", [3, 4])
def test_only_what_the_page_has_cut_is_unfolded(length: int) -> None:
    texts = [each * length for each in "xyz"]
    step = Step(0, StepKind.TOOL, "a", texts[0], arguments=texts[1], error=texts[2])
    shown = {
        "step": step,
        "clip": 3,
        "raw": None,
        "attributes": "",
        "longest_text": 9,
        "cut": False,
    }
    page = _environment().get_template("_step.html").render(shown)
    assert [text in page for text in texts] == [length > 3] * 3


def test_a_long_run_comes_in_parts(client: httpx.Client) -> None:
    page = client.get(f"/runs/{LONG}").text
    assert 'id="step-499"' in page
    assert 'id="step-500"' not in page
    rest = client.get(f"/runs/{LONG}/steps?from=4500").text
    assert 'id="step-4999"' in rest
    assert "data-more" not in rest


def test_downloads_are_json(client: httpx.Client) -> None:
    whole = client.get(f"/runs/{SHORT}/download.json").json()
    assert len(whole["trajectory"]["steps"]) == 6
    assert whole["verdict"]["decisive"]["step"] == 1
    spans = client.get(f"/runs/{SHORT}/download.otlp").json()
    assert len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 7
    json.dumps(spans)


def test_a_download_has_the_outcome_that_was_said_last(client: httpx.Client, store: Store) -> None:
    """As the page and the judge do; the spans know nothing of it."""
    record_outcome(store, BARE, "failure", reason="the customer wrote again")
    run = client.get(f"/runs/{BARE}/download.json").json()["trajectory"]
    assert (run["outcome"], run["outcome_reason"]) == ("failure", "the customer wrote again")


def test_a_label_is_stored(client: httpx.Client, store: Store) -> None:
    form = {"annotator": "ada", "outcome": "failure", "modes": ["2.6"], "decisive_step": "1"}
    answer = client.post(f"/runs/{SHORT}/label", data=form)
    assert answer.status_code == 303
    (label,) = labels_of(store, SHORT)
    assert (label.annotator, label.decisive_step) == ("ada", 1)
    assert label.decisive_agent == "<b>writer</b>"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"annotator": "ada", "decisive_step": "99"}, "steps 0 to 5"),
        ({"annotator": "ada", "decisive_step": "\u00b2"}, "steps 0 to 5"),
        ({"annotator": "ada", "decisive_step": "9" * 5000}, "steps 0 to 5"),
        ({"annotator": " "}, "needs the name"),
        ({"annotator": "ada", "modes": ["9.9"]}, "no failure mode 9.9"),
    ],
)
def test_a_label_that_cannot_be_is_refused(
    client: httpx.Client, form: dict[str, object], message: str
) -> None:
    answer = client.post(f"/runs/{SHORT}/label", data=form)
    assert answer.status_code == 400
    assert message in answer.text


@pytest.mark.parametrize("path", ["/runs/nope", "/runs/nope/steps", "/compare?run=x&run=y", "/x"])
def test_what_is_not_there_is_said_so(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "All runs" in answer.text


@pytest.mark.parametrize("number", ["%C2%B2", "9" * 5000, "-1", "1.5", "%D9%A3"])
def test_what_is_no_number_is_refused(client: httpx.Client, number: str) -> None:
    assert client.get(f"/runs/{SHORT}/steps/{number}").status_code == 404
    assert client.get(f"/runs/{SHORT}/steps?from={number}").status_code == 400
    assert client.get(f"/runs/{SHORT}/steps?to={number}").status_code == 400
    assert client.get(f"/?before={number}").status_code == 200


def test_two_runs_are_compared(client: httpx.Client) -> None:
    page = client.get(f"/compare?run={SHORT}&run={BARE}").text
    assert page.count('aria-label="Run ') == 2
    assert 'They differ from <a href="#first-difference">step 0</a>' in page
    assert page.count("no such step in B") == 6
    assert "step by step" in client.get(f"/compare?run={LONG}&run={LONG}").text
    assert client.get("/compare").status_code == 400


def test_figures_that_differ_are_marked_in_results_and_arguments() -> None:
    def step(figure: int) -> Step:
        asked = f'{{"sum": "3 * {figure}"}}'
        return Step(0, StepKind.TOOL, "auditor", f"It is {figure}.", tool="add", arguments=asked)

    (pair,) = compared([step(181)], [step(118)]).pairs
    for changes in (pair.changes, pair.asked):
        assert [each.text for each in changes if each.kind != "same"] == ["181", "118"]


def test_hand_overs_and_messages_are_arrows_between_lanes(client: httpx.Client) -> None:
    page = client.get(f"/runs/{PROVED}").text
    ways = re.findall(r'class="way in-(\d) to-(\d)', page)
    assert ways
    assert all(int(begin) < int(end) for begin, end in ways)


@pytest.mark.parametrize(
    ("text", "quotes", "seen"),
    [
        ('{"a": 1}', (), '{\n  "a": 1\n}'),
        ('{"a": 1}', ('{"a": 1}',), '{\n  "a": 1\n}'),
        ('{"a": 1, "b": 2}', ('1, "b"',), '{"a": 1, "b": 2}'),
        ('{"a": ', (), '{"a": '),
        ("[" * 100_000, (), "[" * 100_000),
        ("12", (), "12"),
    ],
)
def test_json_has_lines_unless_a_quote_would_be_torn(
    text: str, quotes: tuple[str, ...], seen: str
) -> None:
    assert shown(text, quotes) == seen


@pytest.mark.parametrize(
    ("text", "quotes", "has", "lacks"),
    [
        ("**Both** nights:\n- 118\n- 181", (), "<strong>Both</strong>", "**"),
        ("**Both** nights", ("Both",), None, ""),
        ("2 * 3 * 4 is 24_000", (), None, ""),
        ("- <script>x</script> `<b>`", (), "&lt;script&gt;", "<script"),
        (
            "- [a](javascript:x) [b](/sign-out) ![c](https://x.y/z.png)",
            (),
            "a",
            'href="j|href="/|<img',
        ),
        ("[a](https://x.y)", (), '<a href="https://x.y">', "[a]"),
        ("| night |\n|---|\n| 118 |", (), "<td>118</td>", "---"),
        ("# A heading", (), "A heading", "<h1"),
        ("- \u202egnol", (), "&lt;U+202E&gt;", "\u202e"),
        ('{"a": 1}', (), None, ""),
        (
            '{"<i>": {"list": ["a long text", "another long text", "and a third one"]}}',
            (),
            "<details open",
            "<i>",
        ),
    ],
)
def test_texts_are_formatted_safely_unless_they_are_quoted(
    text: str, quotes: tuple[str, ...], has: str | None, lacks: str
) -> None:
    """As Markdown where they have signs of it, and as JSON whose parts fold."""
    pieces = tuple(pieces_of(shown(text, quotes), quotes))
    made = Row(Step(0, StepKind.MESSAGE, "a", text), 0, pieces=pieces).formatted
    assert (made is None) == (has is None)
    if made is not None and has is not None:
        assert has in made
        assert not [each for each in lacks.split("|") if each in made]


@pytest.mark.parametrize(
    ("agents", "lanes"),
    [
        (["boss", *(f"worker-{n}" for n in range(20)), "judge"], [0, *[1] * 20, 2]),
        ([f"worker-{n}" for n in range(20)], [*range(7), *[7] * 13]),
        ([f"worker-{n}" for n in range(8)], [*range(8)]),
        ([*map(str, range(9)), "boss"], [*range(7), 7, 7, 7]),
    ],
)
def test_many_agents_share_lanes(agents: list[str], lanes: list[int]) -> None:
    """Those that differ in a number alone, unless all do."""
    assert [*_lanes(agents).values()] == lanes


def test_failures_that_nobody_judged_count_too(client: httpx.Client, store: Store) -> None:
    record_outcome(store, BARE, "failure", reason="the customer wrote again")
    test_the_last_days_say_what_their_links_list(client)
