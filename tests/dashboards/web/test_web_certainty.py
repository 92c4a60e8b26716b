"""Pages say no more than a verdict knows: no step that it does not name, no percentage unmeasured."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from web_runs import BARE, HEALTHY, LIVE, LONG, SHORT, T0, UNSURE, abstained, judged, message, root

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards.certainty import way_words
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import Place

if TYPE_CHECKING:
    import httpx

    from mast_trace_collector.storage import Store

NOT_MEASURED = "was not measured on runs like this one"


def test_no_step_is_decisive_that_the_verdict_does_not_name(client: httpx.Client) -> None:
    for address in (f"/runs/{UNSURE}", f"/compare?run={UNSURE}&run={BARE}"):
        page = client.get(address).text
        assert "DECISIVE" not in page
        assert "step c0 decisive" not in page
    assert "DECISIVE" in client.get(f"/compare?run={SHORT}&run={BARE}").text


def test_an_unknown_agent_is_blamed_for_its_own_step(client: httpx.Client, store: Store) -> None:
    """Not before the run is judged, not where no step is decisive, nor where the step is another agent's or gone."""
    run, told = "7e" * 16, "made the decisive error"
    said = [message(run, number, "planner", f"{number}") for number in range(4)]
    operation, handed = "gen_ai.operation.name", {"mast.handoff.target.name": "planner"}
    for row in (said[0], said[2]):
        row["SpanAttributes"] = {operation: "execute_tool", "gen_ai.tool.name": "pass_on", **handed}
    store.insert("otel_traces", [root(run, "nameless"), *said])
    assert told not in client.get(f"/runs/{run}").text
    for step, more, marked in (
        (0, abstained("failure", 0.9), None),
        (1, {}, "planner"),
        (2, {}, "unknown"),
        (9, {"modes": ()}, None),
    ):
        save(
            store, [judged(store, run, 4, step, judged_at=T0 + timedelta(seconds=step + 1), **more)]
        )
        page = client.get(f"/runs/{run}").text
        assert (f">◆ {marked}<" in page) is (marked is not None), (step, marked)
        assert page.count(">◆ ") == (marked is not None)
        assert (told in page) is (marked is not None)


def test_the_way_of_a_wrong_value_is_marked_in_the_lanes(
    client: httpx.Client, store: Store
) -> None:
    run = "7f" * 16
    said = [message(run, number, "planner", f"{number}") for number in range(5)]
    store.insert("otel_traces", [root(run, "inherited"), *said])
    place = Place(step=1, agent="planner", basis="record", why="Says 181.", heirs=(2, 3, 4))
    place = place.model_copy(update={"possible_heirs": (3,), "reaches_answer": True})
    save(store, [judged(store, run, 5, 1, look_first=(place,))])
    page = client.get(f"/runs/{run}").text
    ticks = re.findall(r'class="(tick [^"]*)" href="#step-(\d+)"', page)
    assert [int(n) for names, n in ticks if "heir" in names] == [2, 3, 4]
    assert [int(n) for names, n in ticks if "possible" in names] == [3]
    assert way_words(place) in page


def test_the_way_of_a_wrong_value_in_words() -> None:
    many = Place(step=0, agent="a", basis="rule", why="", heirs=tuple(range(1, 9)))
    assert way_words(many) == "The value goes on to steps 1, 2, 3, 4, 5, 6 and 2 more."
    assert way_words(many.model_copy(update={"heirs": ()})) == ""


def test_candidates_without_a_calibration_have_no_percentages(client: httpx.Client) -> None:
    page = client.get(f"/runs/{UNSURE}").text
    for text in ("no step stands out", "which is no evidence", "first actor"):
        assert text in page
    assert NOT_MEASURED not in page
    assert "43\xa0%" not in page
    measured = client.get(f"/runs/{SHORT}").text
    assert NOT_MEASURED not in measured
    assert "70\xa0% sure" in measured


def test_a_run_of_which_nothing_is_shown_has_no_candidates(client: httpx.Client) -> None:
    page = client.get(f"/runs/{HEALTHY}").text
    assert "Nothing shows that the run failed" in page
    assert "andidate" not in page
    assert NOT_MEASURED not in page
    whole = client.get(f"/runs/{HEALTHY}/download.json").json()
    assert len(whole["verdict"]["candidates"]) == 2


def test_a_mode_below_the_threshold_is_possible(client: httpx.Client) -> None:
    """It is folded, and marks no step, where nothing else speaks against the run."""
    page = client.get(f"/runs/{HEALTHY}").text
    folded = page.split("<summary>Possible failure modes, none of which counts as shown</summary>")
    assert "possible, 30\xa0%" in folded[1].split("</details>")[0]
    assert "2.1 restarts?" not in page
    assert "possible" not in client.get(f"/runs/{UNSURE}").text
    rows = client.get("/?mode=2.1").text
    assert f"/runs/{UNSURE}" in rows
    assert f"/runs/{HEALTHY}" not in rows


def test_what_was_not_examined_is_said(client: httpx.Client) -> None:
    page = client.get(f"/runs/{UNSURE}").text
    assert "Not examined: 1.1, 1.2, 1.4, 1.5, 2.2, 2.3, 2.4, 2.5, 2.6, 3.1, 3.2, 3.3." in page
    assert "Not examined: 1.1." in client.get(f"/runs/{SHORT}").text


def test_an_old_verdict_does_not_say_what_it_examined(client: httpx.Client, store: Store) -> None:
    old = judged(store, LONG, 5000, 4321, examined=(), judge_version="v0")
    later = old.model_copy(update={"judged_at": old.judged_at.replace(year=old.judged_at.year + 1)})
    save(store, [later])
    page = client.get(f"/runs/{LONG}").text
    assert "its examined modes are not known" in page


def test_a_share_of_nothing_is_not_examined(store: Store, client: httpx.Client) -> None:
    page = client.get("/patterns").text
    rows = {
        code: page.split(f">{mode_words(code)}</a>", 1)[1].split("</tr>", 1)[0]
        for code in ("1.3", "1.1")
    }
    assert "0\xa0%" in rows["1.3"]
    assert "not examined" not in rows["1.3"]
    assert "not examined" in rows["1.1"]
    assert "%" not in rows["1.1"]


def test_outcomes_have_one_vocabulary(client: httpx.Client) -> None:
    """A run without an outcome may still go on: then its state is shown alone."""
    unknown = client.get("/?outcome=unknown").text
    for run in (UNSURE, HEALTHY, BARE, LIVE):
        assert f"/runs/{run}" in unknown
    assert f"/runs/{SHORT}" not in unknown
    assert '<span class="outcome unknown">unknown</span>' in client.get(f"/runs/{BARE}").text


def test_a_page_says_how_many_blind_labels_a_model_has(client: httpx.Client, store: Store) -> None:
    place = Place(step=0, agent="researcher", basis="model", why="It began so.")
    more = {"calibrated": False, "model": "m1", "method": "fused", "look_first": (place,)}
    read = judged(store, UNSURE, 4, 1, **more, model_step=0, outcome="failure")
    later = read.judged_at.replace(year=read.judged_at.year + 1)
    save(store, [read.model_copy(update={"judged_at": later, "judge_version": "m"})])
    runs = [f"{number:032x}" for number in range(0xA0, 0xA9)]
    save(store, [read.model_copy(update={"trace_id": run}) for run in runs])
    save_labels(
        store,
        [
            HumanLabel(run, "ada", "failure", decisive_step=0, blind=n < 7)
            for n, run in enumerate(runs)
        ],
    )
    for address in (f"/runs/{UNSURE}", "/queue"):
        assert "The model m1 has 7 of 20 blind labels" in client.get(address).text
    assert "70\xa0% sure" not in client.get(f"/runs/{UNSURE}").text


def test_agents_are_blamed_by_what_they_did(store: Store, client: httpx.Client) -> None:
    """Few errors in very many steps are no share of 0."""
    rows = {row["Agent"]: row for row in QUERIES["decisive_by_agent"].run(store)}
    page = client.get("/agents").text
    for row in rows.values():
        assert f"{row['Errors']:,} of {row['Acts']:,} (" in page
    busy = rows["researcher"]
    assert busy["Acts"] > 1000 * busy["Errors"] > 0
    assert f"{busy['Errors']:,} of {busy['Acts']:,} (0.0" in page
    assert "No judged run" in client.get("/agents?until=2001-01-01").text
