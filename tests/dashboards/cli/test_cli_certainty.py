"""Terminals say no more than a verdict knows: no percentage unmeasured, no candidate without need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.output import console
from mast_trace_dashboards.cli.render import load, run_view
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.store.model_records import ModelRecord
from mast_trace_judge.verdict import Candidate, DecisiveError, Evidence, ModeFinding, Place, Verdict

if TYPE_CHECKING:
    from conftest import CLI

CANDIDATES = (
    Candidate(step=2, agent="analyst", probability=0.61, rule="it asked again"),
    Candidate(step=1, agent="analyst", probability=0.23),
)
DECISIVE = DecisiveError(step=2, agent="analyst", probability=0.61, reason="it asked again")
PLACES = (
    Place(step=2, agent="analyst", basis="model", why="it asked again"),
    Place(step=1, agent="analyst", basis="rule", why="first", right=3, cases=9),
)
NOT_MEASURED = "was not measured on runs like this one"


def mode(probability: float, evidence: Evidence = Evidence.HEURISTIC) -> ModeFinding:
    return ModeFinding(code="2.6", probability=probability, evidence=evidence, steps=(2,))


@pytest.fixture
def shown(cli: CLI, capsys: pytest.CaptureFixture[str]) -> Any:
    """Prints the recorded run with another verdict, and returns what it printed."""

    def shown(record: ModelRecord | None = None, **more: Any) -> str:
        with open_store(cli.recorded.url, None) as store:
            found = load(store, cli.recorded.ids["invoices"])
            assert isinstance(found.verdict, Verdict)
            given = {
                "candidates": CANDIDATES,
                "look_first": PLACES,
                "examined": tuple(FAILURE_MODES),
                "modes": (),
                **more,
            }
            verdict = found.verdict.model_copy(update=given)
            known = dataclasses.replace(found, verdict=verdict, record=record)
            for part in run_view(known):
                console().print(part)
        return " ".join(capsys.readouterr().out.split())

    return shown


def test_what_was_measured_has_percentages(shown: Any) -> None:
    out = shown(calibrated=True, decisive=DECISIVE)
    assert "Decisive error: analyst, step 2 (calibrated guess, 61% sure) it asked again" in out
    assert "Then: analyst, step 1 (by a rule, right in 3 of 9 labelled failures) first" in out
    assert "2 DECISIVE" in out
    assert NOT_MEASURED not in out
    assert "Not examined" not in out


def test_what_was_not_measured_has_none(shown: Any) -> None:
    out = shown(calibrated=False, decisive=None)
    assert "Look here first: analyst, step 2 (a model suggests it) it asked again Then: " in out
    assert NOT_MEASURED not in out
    assert "61%" not in out
    assert "DECISIVE" not in out


def test_an_exact_finding_needs_no_percentage(shown: Any) -> None:
    exact = shown(calibrated=False, decisive=DECISIVE, modes=(mode(0.9, Evidence.EXACT),))
    assert "Decisive error: analyst, step 2 (exact finding) it asked again" in exact
    other = shown(calibrated=False, decisive=DECISIVE, modes=(mode(0.9),))
    assert "Decisive error: analyst, step 2 (guess) it asked again" in other
    assert "61%" not in exact + other


READ = {"model": "gpt-5-mini", "method": "fused", "calibrated": False, "model_step": 2}


def known(right: int, cases: int) -> ModelRecord:
    return ModelRecord(
        "",
        "langgraph",
        "gpt-5-mini",
        "p",
        {"blind": right, "beside": 9},
        {"blind": cases, "beside": 9},
    )


def test_a_models_step_has_its_counts_where_it_is_asserted(shown: Any) -> None:
    """Its own numbers are never shown."""
    counted = PLACES[0].model_copy(update={"right": 18, "cases": 20})
    out = shown(known(18, 20), decisive=DECISIVE, look_first=(counted, PLACES[1]), **READ)
    measured = "quoted by a model, right in 18 of 20 labelled failures"
    assert f"Decisive error: analyst, step 2 ({measured}) it asked again" in out
    assert "right in 18 of 20 blind labels" in out
    assert "61%" not in out


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (known(7, 7), "gpt-5-mini has 7 of 20 blind labels"),
        (ModelRecord("", "langgraph", "gpt-5-mini", "p"), "gpt-5-mini has 0 of 20 blind labels"),
        (known(11, 20), "was right in 11 of 20 blind labels of such runs, so its step stays a sug"),
    ],
)
def test_a_model_whose_word_is_not_earned_suggests(
    shown: Any, record: ModelRecord, told: str
) -> None:
    out = shown(record, decisive=None, **READ)
    assert "Look here first: analyst, step 2 (a model suggests it) it asked again" in out
    assert told in out
    assert "%" not in out.partition("Look here first")[2]


def test_several_readings_say_how_many_agree(shown: Any) -> None:
    agree = "likeliest in 2 of 3 readings"
    out = shown(decisive=DECISIVE, readings=3, agreeing=2, **READ)
    assert f"Decisive error: analyst, step 2 (quoted by a model, {agree}) it asked again" in out
    assert out.count("readings") == 1
    unsure = shown(decisive=None, readings=3, agreeing=2, **READ)
    assert f"step 2 (a model suggests it, {agree}) it asked again" in unsure
    assert "readings" not in shown(decisive=DECISIVE, readings=1, agreeing=1, **READ)
    elsewhere = {**READ, "model_step": 1}
    assert "readings" not in shown(decisive=DECISIVE, readings=3, agreeing=2, **elsewhere)


def test_a_models_own_number_is_no_likelihood_of_a_mode(shown: Any) -> None:
    assert " likely model " in shown(modes=(mode(0.93, Evidence.MODEL),))
    out = shown(modes=(mode(0.31, Evidence.MODEL),))
    assert " possible model " in out
    assert "31%" not in out


def test_a_mode_below_the_threshold_is_possible(shown: Any) -> None:
    out = shown(modes=(mode(0.4),))
    assert "possible, 40%" in out
    assert " 2.6 misread? " in out
    assert "possible" not in shown(modes=(mode(0.5),))


def test_a_run_without_places_says_so(shown: Any) -> None:
    """A failed one says how much there is to read, and one of unknown outcome that nothing is known."""
    none = {"modes": (mode(0.4),), "abstained": True, "decisive": None, "look_first": ()}
    assert "Nothing shows that the run failed" in shown(outcome="unknown", **none)
    out = shown(outcome="failure", **none)
    assert "No evidence found" in out
    assert "steps to read" in out


def test_what_an_old_verdict_examined_is_not_known(shown: Any) -> None:
    assert "its examined modes are not known" in shown(examined=())


def test_what_the_rules_found_is_shown_where_the_model_was_away(shown: Any) -> None:
    away = {"status": "unscored", "status_reason": "without the model: no connection"}
    out = shown(modes=(mode(0.9),), **away)
    assert out.count("without the model: no connection") == 1
    assert "The rules found:" in out
    assert "2.6" in out


def test_the_expected_answer_of_a_run_is_shown(own_cli: CLI) -> None:
    run = own_cli.recorded.ids["invoices"]
    told = "map('mast.run.outcome', 'failure', 'mast.run.expected', '354 EUR')"
    with Store.open(own_cli.recorded.url) as store:
        store.command(
            f"INSERT INTO otel_traces SELECT * REPLACE (SpanId AS ParentSpanId, 'ee' AS SpanId, Duration + 1 AS Duration,"
            f" {told} AS SpanAttributes)"
            f" FROM otel_traces WHERE TraceId = '{run}' AND SpanName LIKE 'invoke_workflow%'"
        )
    out = own_cli.out("show", run)
    assert "Expected answer: 354 EUR" in out


def test_alerts_that_fire_are_shown_and_the_rest_on_request(own_cli: CLI) -> None:
    status, out, _ = own_cli("alerts", "check")
    assert (status, out.count("\n")) == (0, 1)
    assert "Nothing fires" in out
    out = own_cli.out("alerts", "check", "--all")
    assert "mast-judge-budget" in out
    assert "mode=1.3" in out
    assert "mode=2.3" not in out, "nobody looked for it"
    assert len(own_cli.json("alerts", "check")) > 10


def test_the_reason_why_no_model_judges_is_the_true_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    none = JudgeConfig.load(judge_model="")
    assert none.why_no_model == "MAST_TRACE_JUDGE_MODEL is not set"
    keyless = JudgeConfig.load(judge_model="small-1")
    assert "names small-1, but there is neither a key" in keyless.why_no_model
    assert JudgeConfig.load(judge_model="small-1", judge_api_key="k").why_no_model == ""
