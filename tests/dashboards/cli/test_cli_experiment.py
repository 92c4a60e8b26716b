"""`mast-trace lessons` and `mast-trace experiment` on stored runs, and the same over HTTP."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from markupsafe import escape
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from starlette.testclient import TestClient

import mast_trace
from mast_trace.experiment.assignment import Arm
from mast_trace.experiment.marks import Feedback, task_hash
from mast_trace.testing import capture_spans
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.removal.erasure import erase, of_project, of_runs
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.web.app import web_app
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import CLI
    from fixture_types import Patch


def failing(task: str, *, given: Feedback | Arm | None = None, reason: str = "") -> None:
    """A run whose clerk misreads a price, and answers with it."""
    with mast_trace.using_feedback(given or Feedback()), mast_trace.run("desk", input=task):
        with mast_trace.agent("clerk"):
            with mast_trace.tool("hotel_price", {"city": "Lisbon"}) as call:
                call.result("Double room: 118 EUR per night")
            said = "The hotel search says that a double room costs 181 EUR a night."
            mast_trace.message("clerk", "user", said)
        mast_trace.record_outcome(False, reason)


@pytest.fixture
def desk(empty: CLI) -> CLI:
    """A store with failed runs of two tasks."""
    for task in ("the first task", "the second task"):
        empty.record(lambda task=task: failing(task))
    return empty


def store_all(cli: CLI, program: Callable[[], None]) -> list[str]:
    """Store the runs of a program, without judging them; return their ids."""
    with capture_spans(frameworks=[]) as spans:
        program()
        request = encode_spans(spans.spans).SerializeToString()
        ids = [each.trace_id for each in spans.trajectories()]
    with Store.open(cli.recorded.url) as store:
        SpanWriter(store).write([request], token=ids[0])
    return ids


@contextmanager
def web(cli: CLI) -> Iterator[TestClient]:
    with Store.open(cli.recorded.url) as store:
        yield TestClient(web_app(store), base_url="http://127.0.0.1")


def run_of(arm: str, task: Any, ended: bool | None = True, **more: Any) -> None:
    """One run of the experiment `e`."""
    given = Arm(arm, experiment="e", task=str(task), **more)
    told = Feedback(text="x", id="x", arm=given) if arm != "none" else given
    with mast_trace.using_feedback(told), mast_trace.run("desk", input=f"task {task}"):
        if ended is not None:
            mast_trace.record_outcome(ended)


def test_lessons_are_printed_and_served_alike(desk: CLI, monkeypatch: Patch) -> None:
    out = desk.out("lessons", "--workflow", "desk")
    assert "«clerk» erred in step" in out
    assert "Reasoning-action mismatch" in out
    assert "181" not in out
    told = desk.json("lessons", "--workflow", "desk")
    assert told["text"].strip() == out.strip()
    assert {each["evidence"] for each in told["items"]} == {"exact"}
    with web(desk) as view:
        assert view.get("/lessons?workflow=desk").json() == told
        one = view.get("/lessons?last=1").json()
        assert len(one["items"]) == 1
        assert view.get("/lessons?budget=10").json()["text"] == ""
        for other in ("agent=nobody", "workflow=another", "run=" + "0" * 32):
            assert view.get(f"/lessons?{other}").json()["text"] == ""
        with Store.open(desk.recorded.url) as store:
            runs = [
                row["TraceId"] for row in store.query("SELECT DISTINCT TraceId FROM mast_findings")
            ]
        assert len(runs) == 2
        for run in runs:
            of_one = view.get(f"/lessons?run={run}").json()["items"]
            assert {each["run"] for each in of_one} == {run}
        # Programs do not wait for lessons that take long to find.
        monkeypatch.setattr("mast_trace_lab.feedback.pages._PATIENCE_SECONDS", -1)
        assert view.get("/lessons?workflow=desk").json()["items"] == []


def test_nothing_is_said_where_nothing_is_known(empty: CLI) -> None:
    status, out, err = empty("lessons")
    assert (status, out) == (1, "")
    assert "No run has a confirmed, labelled or exact finding" in err


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("last=x", "`last`"),
        ("last=1&budget=-1", "`budget`"),
        ("last=99999999999999", "`last`"),
        ("last=%D9%A3", "`last`"),
        ("last=999999999&budget=999999999", ""),
        ("run=%27%20OR%201=1&workflow=%00&agent=%F0%9F%98%80", ""),
        ("experiment=e&key=" + "k" * 5000, ""),
        ("project=nobody", ""),
    ],
)
def test_no_parameter_is_an_error_of_the_server(desk: CLI, query: str, wrong: str) -> None:
    with web(desk) as view:
        answer = view.get(f"/lessons?{query}")
    assert answer.status_code == (400 if wrong else 200)
    told = answer.json()
    assert told["detail"].startswith(wrong) if wrong else len(told["text"]) <= 4000


def test_an_experiment_is_planned_once_and_before_its_runs(desk: CLI) -> None:
    out = desk.out("experiment", "e", "--plan", "--workflow", "desk", "--baseline", ".6")
    assert "590 tasks in each of 3 arms (1,770 runs in all) find 0.60 -> 0.70" in out
    assert "354 with a single look" in out
    assert "frozen as version" in out
    err = desk.err("experiment", "e", "--plan", "--effect", ".3", status=2)
    assert "has a plan, which cannot be changed" in err
    store_all(desk, lambda: run_of("none", 1))


def test_frozen_lessons_stay_and_are_of_other_tasks(desk: CLI) -> None:
    plan = desk.json("experiment", "e", "--plan", "--workflow", "desk")
    with web(desk) as view:

        def lessons(task: str, key: str = "k") -> dict[str, Any]:
            query = f"experiment=e&key={key}&task={task_hash(task)}&workflow=desk"
            found: dict[str, Any] = view.get(f"/lessons?{query}").json()
            return found

        before = lessons("another task")
        assert before["version"] == plan["version"]
        assert before["text"]
        # Equal agent and mode are frozen once, from the latest run, which is that of the second task.
        assert lessons("The  SECOND task")["text"] == ""
        assert lessons("x", key="the second task")["text"] == ""
        assert view.get("/lessons?experiment=e&key=k").json()["text"] == ""
        assert view.get("/lessons?experiment=e&run=last").json()["text"] == ""
    desk.record(lambda: failing("a third task"))
    with web(desk) as view:
        assert lessons_of(view, "another task") == before
    newest = desk.json("lessons", "--workflow", "desk")["items"][0]["run"]
    assert newest not in {each["run"] for each in before["items"]}


def lessons_of(view: TestClient, task: str) -> dict[str, Any]:
    query = f"experiment=e&key=k&task={task_hash(task)}&workflow=desk"
    found: dict[str, Any] = view.get(f"/lessons?{query}").json()
    return found


def test_runs_that_were_told_something_teach_no_experiment(empty: CLI) -> None:
    """Nor do the arms of an earlier one, except that without any text."""
    told = Feedback(text="x", id="x")
    empty.record(lambda: failing("one", given=told))
    empty.record(lambda: failing("two", given=Arm("placebo", experiment="old", task="2")))
    empty.record(lambda: failing("three", given=Arm("single agent", experiment="old", task="3")))
    assert empty.json("lessons")["text"], "outside of experiments they teach"
    assert empty.json("experiment", "first", "--plan")["version"] == ""
    control = empty.record(lambda: failing("four", given=Arm("none", experiment="old", task="4")))
    assert empty.json("experiment", "second", "--plan")["version"] != ""
    with web(empty) as view:
        query = f"experiment=second&key=k&task={task_hash('other')}"
        items = view.get(f"/lessons?{query}").json()["items"]
    assert {each["run"] for each in items} == {control}
    assert {each["task_key"] for each in items} == {"4"}


def in_arms(tasks: int, success: Callable[[str], bool | None]) -> Callable[[], None]:
    def program() -> None:
        for task in range(tasks):
            arm = mast_trace.assign("e", key=task, repetition=0)
            run_of(str(arm), task, success(str(arm)))

    return program


def test_a_look_says_who_is_better(empty: CLI) -> None:
    empty.json("experiment", "e", "--plan", "--baseline", ".2", "--effect", ".6")
    store_all(empty, in_arms(60, lambda arm: arm == "feedback"))
    out = empty.out("experiment", "e")
    assert "Look 1: 60 tasks, 60 runs." in out
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("feedback -")] == [
        "better",
        "better",
    ]
    look = empty.json("experiment", "e")
    assert (look["looks"], look["conclusion"]["contrasts"][0]["word"]) == (2, "better")
    assert look["conclusion"]["contrasts"][0]["low"] > 0
    uncounted = empty.json("experiment", "e", "--no-count")
    assert uncounted["looks"] == 0
    assert empty.json("experiment", "e")["looks"] == 3


def test_pages_say_the_same_and_count_no_look(empty: CLI) -> None:
    empty.json("experiment", "e", "--plan", "--baseline", ".2", "--effect", ".6")
    with web(empty) as view:
        assert "there are no runs" in view.get("/experiments/e").text
    store_all(empty, in_arms(60, lambda arm: None if arm == "placebo" else arm == "feedback"))
    store_all(empty, lambda: run_of("stranger", 1))
    store_all(empty, lambda: run_of("none", "", True))
    look = empty.json("experiment", "e", "--no-count")
    with web(empty) as view:
        page = view.get("/experiments/e").text.replace("\xa0", " ")
        listed = view.get("/experiments").text
        assert view.get("/experiments/nothing").status_code == 404
    for each in look["conclusion"]["contrasts"]:
        assert f"<strong>{each['word']}</strong>" in page
        assert f"{each['low']:+.2f} to {each['high']:+.2f}" in page
    for text in (*look["conclusion"]["objections"], *look["warnings"]):
        assert escape(text) in page
    assert 'href="/experiments/e' in listed
    assert "(not planned)" in listed
    with Store.open(empty.recorded.url) as store:
        assert store.query("SELECT count() AS n FROM mast_experiment_looks") == [{"n": 0}]
        rows = {row["Arm"]: row for row in EXPERIMENT_ARMS.run(store)}
    for arm in look["conclusion"]["arms"]:
        row = rows[arm["arm"]]
        told = (arm["tasks"], arm["runs"], arm["successes"], arm["missing"], arm["delivered"])
        assert told == (row["Tasks"], row["Runs"], row["Succeeded"], row["Missing"], row["Told"])
    assert rows["stranger"]["Planned"] == 0
    assert sum(row["WithoutTask"] for row in rows.values()) == look["conclusion"]["without_task"]


def test_a_page_without_a_plan_or_with_a_strange_name(empty: CLI) -> None:
    evil = "<b>a/b?c\u202e"
    empty.json("experiment", evil, "--plan", "--arm", "base", "--arm", "<i>other")
    store_all(empty, in_arms(3, lambda _: True))
    with web(empty) as view:
        listed = view.get("/experiments").text
        (link,) = re.findall(r'href="(/experiments/%3Cb[^"]*)"', listed)
        page = view.get(link).text
        assert view.get("/experiments/e").status_code == 200  # late, with the default plan
    for text in (listed, page):
        for part in ("<b>a", "<i>other", "\u202e"):
            assert part not in text
    assert "&lt;i&gt;other" in page
    with Store.open(empty.recorded.url) as store:
        assert store.query("SELECT Name FROM mast_experiments") == [{"Name": evil}]


def test_a_program_without_outcomes_is_never_decided(empty: CLI) -> None:
    store_all(empty, in_arms(60, lambda _: None))
    out = empty.out("experiment", "e")
    assert "better" not in out.replace("e better", "")
    assert "lack planned outcomes" in out
    assert "no plan before the first 60 runs" in out


def test_a_persons_outcome_counts(empty: CLI) -> None:
    ids = store_all(empty, in_arms(1, lambda _: None))
    missing = empty.json("experiment", "e")["conclusion"]["arms"]
    assert sum(arm["missing"] for arm in missing) == 1
    assert empty("outcome", ids[0], "success")[0] == 0
    arms = empty.json("experiment", "e")["conclusion"]["arms"]
    assert (sum(arm["missing"] for arm in arms), sum(arm["successes"] for arm in arms)) == (0, 1)


def test_arms_of_ones_own_need_a_plan_and_make_a_panel(empty: CLI) -> None:
    names = ["team", "single agent", "other model"]

    def program() -> None:
        for task in range(90):
            arm = mast_trace.assign("panel", key=task, arms=names, repetition=0)
            with mast_trace.using_feedback(arm), mast_trace.run("desk"):
                mast_trace.record_outcome(arm == "other model")

    options = [part for name in names for part in ("--arm", name)]
    empty.json("experiment", "panel", "--plan", *options)
    store_all(empty, program)
    look = empty.json("experiment", "panel")
    words = {each["treatment"]: each["word"] for each in look["conclusion"]["contrasts"]}
    assert words == {"single agent": "not decided", "other model": "better"}
    assert look["threshold"] == 40


def test_runs_that_share_a_conversation_are_told_of(empty: CLI) -> None:
    def program() -> None:
        for repetition in range(3):
            arm = mast_trace.assign("e", key="t", design="pairs", repetition=repetition)
            given = mast_trace.run("desk", conversation_id="one for all")
            with mast_trace.using_feedback(arm), given:
                mast_trace.record_outcome(True)

    store_all(empty, program)
    assert any("fresh memory" in text for text in empty.json("experiment", "e")["warnings"])


def test_erasure_takes_lessons_and_runs_of_experiments(desk: CLI) -> None:
    plan = desk.json("experiment", "e", "--plan", "--workflow", "desk")
    assert plan["version"]
    ids = store_all(desk, in_arms(9, lambda _: True))
    with Store.open(desk.recorded.url) as store:
        source = store.query("SELECT DISTINCT TraceId FROM mast_lessons")
        erase(store, *of_runs(store, [source[0]["TraceId"], ids[0]]))
        assert store.query("SELECT count() AS n FROM mast_lessons") == [{"n": 0}]
    look = desk.json("experiment", "e")
    assert (look["lessons"], look["conclusion"]["runs"]) == (0, 8)
    with Store.open(desk.recorded.url) as store:
        erase(store, of_project(store, ""))
        for table in ("mast_experiments", "mast_experiment_looks", "mast_experiment_runs"):
            assert store.query(f"SELECT count() AS n FROM {table}") == [{"n": 0}]


def test_hostile_names_are_harmless_in_a_terminal(empty: CLI) -> None:
    evil = "\x1b[2J[red]arm\u202e"
    empty.json("experiment", "e", "--plan", "--arm", "base", "--arm", evil)
    _, out, _ = empty("experiment", "e")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "[red]" in out
    assert json.loads(empty("experiment", "e", "--json")[1])["plan"]["arms"] == ["base", evil]
