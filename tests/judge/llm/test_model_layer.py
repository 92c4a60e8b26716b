"""The contribution of a reliable model to a verdict, and the cases in which it is asked."""

import json
import re
from datetime import datetime, timedelta, timezone

import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import (
    PRICES_OF_TWO,
    JudgeScript,
    judged,
    mode,
    point,
    reading,
    run_of,
    trip,
    with_answers,
)

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.llm import interview
from mast_trace_judge.llm.answers import Reading
from mast_trace_judge.llm.budget import DailyCap, RunBudget, UsageMeter
from mast_trace_judge.llm.endpoint import ModelEndpoint
from mast_trace_judge.llm.interview import RunContext
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.retry import AdaptiveLimit
from mast_trace_judge.llm.run_reader import RunReader, _Session
from mast_trace_judge.llm.verification import UNDECIDED
from mast_trace_judge.local.attribution import Attribution
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.local.outcome import RunOutcome
from mast_trace_judge.store.ledger import MemoryLedger
from mast_trace_judge.store.records import row_of, verdict_of
from mast_trace_judge.verdict import CorrectedStep, Evidence


async def test_one_reading_suggests_a_step_and_its_modes():
    """One call; a model's step is the likeliest, and not asserted. A rule's proof stands."""
    modes = [mode("2.6", [4], "together 939 EUR"), mode("3.2", [5], "I agree")]
    script = with_answers(read=reading(point(3, "181 EUR a night"), modes=modes))
    result = await judged(script, trip(outcome="failure"))
    verdict = result.verdict
    assert script.asked == ["read"]
    assert (verdict.status, verdict.method, verdict.outcome) == ("ok", "fused", "failure")
    assert verdict.calls == len(result.requests) == len(result.ledger.calls)
    assert verdict.model == "scripted"
    first = verdict.candidates[0]
    assert (first.step, first.agent, first.span_id) == (3, "researcher", "s3")
    assert "The model suggests it" in first.rule
    assert verdict.decisive is None
    found = {each.code: each for each in verdict.modes}
    assert (found["2.6"].evidence, found["2.6"].steps) == (Evidence.EXACT, (2, 3))
    asked = found["3.2"]
    assert (asked.evidence, asked.steps, asked.span_ids) == (Evidence.MODEL, (5,), ("s5",))
    assert asked.quotes == ("I agree",)


async def test_suggested_steps_are_written_anew_where_that_is_wished():
    """At most two, for the reader's own steps, with the same record in front, so that caches of it hold."""
    quotes = {3: "181 EUR a night", 4: "together 939 EUR", 5: "I agree"}
    script = with_answers(read=reading(*(point(*each) for each in quotes.items())))
    run = trip(outcome="failure")
    result = await judged(script, run, judge_candidates=2)
    assert sorted(script.asked) == ["counterfactual"] * 2 + ["read"]
    prompts = [request["messages"][1]["content"] for request in result.requests]
    assert len({text[: text.rindex("<<end record")] for text in prompts}) == 1
    asked = sorted(re.findall(r"only step (\d+) had", "".join(prompts)))
    assert asked == ["3", "4"]
    written = CorrectedStep(
        prompt=prompt("counterfactual").version, text="The room costs 118 EUR a night."
    )
    fixes = {place.step: place.corrected for place in result.verdict.look_first}
    assert [fixes[step] for step in quotes] == [written, written, None]
    assert verdict_of(row_of(result.verdict)).look_first == result.verdict.look_first
    with pytest.raises(ConfigurationError):
        JudgeConfig.load(judge_candidates=3)


@pytest.mark.parametrize("days", [-1, 400])
async def test_a_clock_that_jumps_during_a_call_makes_no_duration(monkeypatch, days):
    """The ledger's column holds neither a negative one nor one of a year."""
    moments = iter(
        datetime(2026, 1, 1, tzinfo=timezone.utc) + n * timedelta(days=days) for n in range(99)
    )

    class Jumping(datetime):
        @classmethod
        def now(cls, tz=None):
            return next(moments)

    monkeypatch.setattr(interview, "datetime", Jumping)
    result = await judged(JudgeScript())
    assert all(0 <= call.duration_ms < 170_000 for call in result.ledger.calls)


async def test_texts_are_whole_as_long_as_the_record_fits_the_window():
    """Sixty steps of a thousand characters, half as many tokens as the window has."""
    run = RunBuilder("What does the trip cost?", outcome="failure")
    for number in range(60):
        run.says(f"agent{number % 3}", f"Offer {number}: " + f"{number} EUR a night, " * 60)
    script = with_answers(read=reading(point(40, "Offer 40: 40 EUR a night")))
    result = await judged(script, run.build())
    (request,) = result.requests
    assert all(step.text in request["messages"][1]["content"] for step in run.build().steps)
    assert 40 in {each.step for each in result.verdict.candidates}


async def test_a_long_task_is_shown_whole_where_the_window_has_room():
    task = "".join(f"Item {number} has to be checked.\n" for number in range(900))
    run = RunBuilder(task, outcome="failure").says("clerk", "Done.", to="boss").build()
    asked = (await judged(JudgeScript(), run)).requests[0]["messages"][1]["content"]
    assert all(f"Item {number} has" in asked for number in range(900))


async def test_every_mode_is_explained_with_examples():
    result = await judged(JudgeScript())
    asked = result.requests[0]["messages"][1]["content"]
    for each in FAILURE_MODES.values():
        told = asked[asked.index(f"{each.code} {each.name}") :].split("\n")[:2]
        assert all(word in "".join(told) for word in ("Not: ", "Shown: ", "Look-alike: "))


async def test_an_outcome_and_its_reason_go_in_and_guesses_of_rules_do_not():
    run = trip(outcome="failure", outcome_reason="it costs 750")
    local = judge_by_rules(run)
    asked = (await judged(JudgeScript(), run)).requests[0]["messages"][1]["content"]
    assert "|it costs 750" in asked
    assert local.attribution.candidates
    assert not any(each.rule in asked for each in local.attribution.candidates if each.rule)
    assert not any(each.reason in asked for each in local.modes)


async def test_the_agent_follows_from_the_step():
    script = with_answers(read=reading(point(4, "543 EUR", what="it was the auditor's fault")))
    verdict = (await judged(script, trip(outcome="failure"))).verdict
    assert {candidate.step for candidate in verdict.candidates} >= {3, 4}
    for each in (*verdict.candidates, *verdict.look_first):
        assert each.agent == trip().steps[each.step].agent


@pytest.mark.parametrize("kind", ["several", "cut off", "nothing"])
async def test_a_failure_without_a_single_step_is_told(kind):
    told = reading(point(3, "181 EUR a night"))
    told["decisive"]["kind"] = kind
    verdict = (await judged(with_answers(read=told), trip(outcome="failure"))).verdict
    assert UNDECIDED[kind] in verdict.status_reason
    suggested = any("The model suggests" in each.rule for each in verdict.candidates)
    assert suggested is (kind == "several")


@pytest.mark.parametrize("seen", ["", "both wrong ones", 0, 1])
async def test_a_model_that_has_not_seen_both_ends_suggests_nothing(seen):
    script = JudgeScript()

    def answer(request):
        told = json.loads(script(request))
        marks = told["marks"].split()[seen] if isinstance(seen, int) else seen
        return json.dumps({**told, "marks": marks})

    verdict = (await judged(answer, trip(outcome="failure"))).verdict
    assert (verdict.method, verdict.outcome) == ("local", "failure")
    assert "did not see the whole record" in verdict.status_reason


async def test_a_recorded_outcome_stands():
    claims_failure = with_answers(read=reading(point(3, "181 EUR"), outcome="failure", p=0.99))
    verdict = (await judged(claims_failure, trip(outcome="success"))).verdict
    assert (verdict.outcome, verdict.failure_probability) == ("success", 0.0)
    assert (verdict.decisive, verdict.candidates, verdict.abstained) == (None, (), False)
    claims_success = with_answers(read=reading(outcome="success", p=0.01))
    verdict = (await judged(claims_success, trip(outcome="failure"))).verdict
    assert (verdict.outcome, verdict.failure_probability) == ("failure", 1.0)


async def test_a_success_that_a_model_sees_changes_nothing():
    script = with_answers(read=reading(outcome="success", p=0.05))
    run = trip(prices=PRICES_OF_TWO)
    verdict = (await judged(script, run)).verdict
    alone = (await judged(with_answers(read="no JSON"), run)).verdict
    assert (verdict.outcome, verdict.decisive) == ("unknown", None)
    assert (verdict.failure_probability, verdict.modes) == (alone.failure_probability, alone.modes)
    assert "reads the run as a success; no outcome was recorded" in verdict.status_reason


def session(trajectory, **settings):
    """One model's questions about a run, before any is asked."""
    context = RunContext(
        *("shop", trajectory.trace_id, "v", MemoryLedger()),
        *(RunBudget(10**6), DailyCap(None), UsageMeter()),
    )
    endpoint = ModelEndpoint(None, "m", limit=AdaptiveLimit(1))
    reader = RunReader(endpoint, JudgeConfig(**settings), context, None)
    return _Session(reader, trajectory, judge_by_rules(trajectory), 10_000)


@pytest.mark.parametrize(
    ("recorded", "told", "probability", "found"),
    [
        ("", "failure", 0.51, ("failure", 0.51)),
        ("", "failure", 0.5, ("unknown", 0.5)),
        ("", "success", 0.5, ("success", 0.5)),
        ("", "success", 0.51, ("unknown", 0.51)),
        ("", "unclear", 0.9, ("unknown", 0.9)),
        ("success", "failure", 0.9, ("success", 0.0)),
        ("failure", "success", 0.1, ("failure", 1.0)),
        ("failure", "unclear", 0.5, ("failure", 1.0)),
    ],
)
def test_an_outcome_at_odds_with_its_probability_is_none(recorded, told, probability, found):
    """A recorded one overrides both, and the verdict says where a model has contradicted itself."""
    asked = session(trip(outcome=recorded))
    assert asked._consistent(Reading(**reading(outcome=told, p=probability))) == found
    assert len(asked._problems) == (found[0] == "unknown" and told != "unclear")


async def test_without_a_model_nothing_is_asked():
    """No model, no endpoint, no key: the local layers judge, and say so."""
    judge = Judge(JudgeConfig())
    assert not judge.uses_model
    verdict = await judge.judge(run_of(trip(outcome="failure")), trip(outcome="failure"))
    assert (verdict.status, verdict.method, verdict.calls) == ("ok", "local", 0)
    assert verdict.status_reason == ""
    assert verdict.candidates


@pytest.mark.parametrize(
    ("environment", "asks"),
    [
        ({}, False),
        ({"OPENAI_API_KEY": "k"}, False),
        ({"MAST_TRACE_JUDGE_MODEL": "m"}, False),
        ({"OPENAI_API_KEY": "k", "MAST_TRACE_JUDGE_MODEL": "m"}, True),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "MAST_TRACE_JUDGE_MODEL": "m"}, True),
    ],
)
def test_the_environment_decides_whether_a_model_is_asked(monkeypatch, environment, asks):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert JudgeConfig().uses_model is asks


def test_says_where_the_endpoint_comes_from(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    origins = {setting.name: setting.origin for setting in JudgeConfig().effective()}
    assert origins["judge_base_url"] == "OPENAI_BASE_URL"
    assert origins["judge_api_key"] == "default"


def test_the_key_is_not_shown():
    config = JudgeConfig(judge_api_key="sk-secret")
    assert "sk-secret" not in f"{config!r} {config.effective()}"


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-\u20acsecret"])
def test_a_key_that_no_header_can_carry_is_refused_where_a_model_is_asked(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert not JudgeConfig().models
    with pytest.raises(ConfigurationError, match=r"OPENAI_API_KEY.* copied whole") as refused:
        JudgeConfig.load(judge_model="m")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"judge_sample_rate": 0.0}, [False, True, False, True]),
        ({"judge_sample_rate": 1.0}, [True] * 4),
        ({"judge_model": ""}, [False] * 4),
    ],
)
def test_a_sample_keeps_runs_that_failed_or_are_suspect(settings, asked):
    base = {"judge_model": "m", "judge_base_url": "http://127.0.0.1:9/v1"}
    judge = Judge(JudgeConfig(**{**base, **settings}))
    kinds = [("success", False), ("failure", False), ("unknown", False), ("unknown", True)]
    found = [
        LocalFindings((), Attribution(), RunOutcome(outcome, 0.5), suspect)
        for outcome, suspect in kinds
    ]
    assert [judge.wants_model(run_of(trip()), each) for each in found] == asked


def test_the_sample_follows_from_the_run():
    config = JudgeConfig(
        judge_model="m", judge_base_url="http://127.0.0.1:9/v1", judge_sample_rate=0.3
    )
    judges = [Judge(config), Judge(config)]
    runs = [run_of(trip(), f"{number:032x}") for number in range(500)]
    local = judges[0].apply_rules(trip(outcome="success"))
    drawn = [[judge.wants_model(run, local) for run in runs] for judge in judges]
    assert drawn[0] == drawn[1]
    assert 0.2 < sum(drawn[0]) / 500 < 0.4


async def test_the_version_says_what_a_verdict_depends_on():
    base = {"judge_model": "m", "judge_base_url": "http://127.0.0.1:9/v1"}
    version = Judge(JudgeConfig(**base)).version
    assert re.fullmatch("[0-9a-f]{12}", version)
    assert Judge(JudgeConfig(**base)).version == version
    same = {
        "judge_api_key": "k",
        "judge_concurrency": 1,
        "judge_prices": {"m": {"input": 1, "output": 1}},
    }
    assert Judge(JudgeConfig(**base, **same)).version == version
    for change in ({"judge_model": "n"}, {"judge_window_tokens": 9000}, {"judge_candidates": 1}):
        assert Judge(JudgeConfig(**{**base, **change})).version != version
    assert Judge(JudgeConfig()).version != version


def test_own_profiles_are_part_of_the_judge(tmp_path):
    weights = {"first_actor": 5.0}
    profile = Profile(name="ours", weights=weights, frameworks=("ours",), trained_on="ours")
    (tmp_path / "ours.json").write_text(profile.to_json(), encoding="utf-8")
    judge = Judge(JudgeConfig(judge_profiles_dir=tmp_path))
    assert judge.version != Judge(JudgeConfig()).version
    run = trip(outcome="failure", framework="ours")
    assert judge.apply_rules(run).attribution.profile == "ours"
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="profile"):
        Judge(JudgeConfig(judge_profiles_dir=tmp_path))
    with pytest.raises(ConfigurationError, match="no folder"):
        Judge(JudgeConfig(judge_profiles_dir=tmp_path / "absent"))
