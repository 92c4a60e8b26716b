"""The contribution of a reliable model to a verdict, and the cases in which it is asked."""

import re
from datetime import datetime, timedelta, timezone

import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import (
    GOOD,
    JudgeScript,
    judged,
    mode,
    point,
    reading,
    run_of,
    trip,
    what_if,
    with_answers,
)

from mast_trace.exceptions import ConfigurationError
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
from mast_trace_judge.llm.verification import Point
from mast_trace_judge.local.attribution import Attribution
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.local.outcome import RunOutcome
from mast_trace_judge.store.ledger import MemoryLedger
from mast_trace_judge.verdict import CorrectedStep, Evidence


async def test_reads_then_tries_then_maps():
    """One reading, the likeliest steps each tried once, one mapping; the verdict holds all three."""
    script = JudgeScript()
    result = await judged(script)
    verdict = result.verdict
    assert (script.asked[0], script.asked[-1]) == ("read", "map")
    assert 1 <= script.asked.count("counterfactual") <= 4
    assert (verdict.status, verdict.method, verdict.outcome) == ("ok", "fused", "failure")
    assert verdict.failure_probability == pytest.approx(0.9)
    assert verdict.calls == len(result.requests) == len(result.ledger.calls)
    assert verdict.model == "scripted"
    decisive = verdict.decisive
    assert (decisive.step, decisive.agent, decisive.span_id) == (3, "researcher", "s3")
    assert decisive.minimal_fix == "say 118 EUR, as the tool returned"
    version = prompt("counterfactual").version
    assert decisive.corrected == CorrectedStep(
        prompt=version, text="The room costs 118 EUR a night."
    )
    (found,) = [mode for mode in verdict.modes if mode.code == "2.6"]
    assert (found.evidence, found.steps, found.span_ids) == (Evidence.MODEL, (3,), ("s3",))
    assert found.quotes == ("costs 181 EUR a night",)


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


async def test_questions_share_their_beginning():
    """All have the record in front, word for word, where it is short, so that caches of it hold."""
    result = await judged(JudgeScript())
    prompts = [request["messages"][1]["content"] for request in result.requests]
    assert len(prompts) >= 3
    records = {prompt[: prompt.rindex("<<end record")] for prompt in prompts}
    assert len(records) == 1
    assert len({request["messages"][0]["content"] for request in result.requests}) == 1


async def test_questions_after_the_reading_have_a_shorter_record():
    """Questions about a long run share a condensed record, with the steps in question in full."""
    run = RunBuilder("What does the trip cost?", outcome="failure")
    for number in range(60):
        run.says(f"agent{number % 3}", f"Offer {number}: " + f"{number} EUR a night, " * 60)
    wrong = run.build().steps[40].text
    script = with_answers(
        read=reading(point(40, "Offer 40: 40 EUR a night", severity="decisive")),
        counterfactual=lambda step: what_if(0.9 if step == "40" else 0.0),
        map={"modes": []},
    )
    result = await judged(script, run.build())
    first, *others = [request["messages"][1]["content"] for request in result.requests]
    assert len(others) >= 2
    assert max(map(len, others)) < 0.6 * len(first)
    assert len({text[: text.rindex("<<end record")] for text in others}) == 1
    asked = next(text for text in others if "only step 40 had" in text)
    assert all(run.build().steps[step].text in asked for step in (38, 39, 40))
    assert wrong not in first
    assert result.verdict.decisive.step == 40


async def test_the_taxonomy_is_not_shown_before_the_reading():
    result = await judged(JudgeScript())
    shown = ["Premature termination" in str(request) for request in result.requests]
    assert len(shown) >= 3
    assert shown == [False] * (len(shown) - 1) + [True]


async def test_the_agent_follows_from_the_step():
    script = with_answers(
        counterfactual=lambda step: what_if(0.95 if step == "4" else 0.0),
        read=reading(point(4, "543 EUR", severity="decisive", what="it was the auditor's fault")),
    )
    verdict = (await judged(script, trip(outcome="failure"))).verdict
    steps = trip().steps
    assert verdict.candidates[0].step == 4
    assert len(verdict.candidates) == 3
    for candidate in verdict.candidates:
        assert candidate.agent == steps[candidate.step].agent


async def test_a_recorded_outcome_stands():
    claims_failure = with_answers(read=reading(point(3, "181 EUR"), outcome="failure", p=0.99))
    verdict = (await judged(claims_failure, trip(outcome="success"))).verdict
    assert (verdict.outcome, verdict.failure_probability) == ("success", 0.0)
    assert (verdict.decisive, verdict.candidates, verdict.abstained) == (None, (), False)
    claims_success = with_answers(read=reading(outcome="success", p=0.01))
    verdict = (await judged(claims_success, trip(outcome="failure"))).verdict
    assert (verdict.outcome, verdict.failure_probability) == ("failure", 1.0)


async def test_a_run_in_which_nothing_went_wrong_takes_one_call():
    script = with_answers(read=reading(outcome="success", p=0.05))
    verdict = (await judged(script)).verdict
    assert script.asked == ["read"]
    assert (verdict.outcome, verdict.decisive) == ("unknown", None)
    assert verdict.failure_probability > 0.0
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


@pytest.mark.parametrize(
    ("points", "most", "tried"),
    [
        # The local layers suspect the steps 3 and 4.
        ((), 4, [3, 4]),
        (((1, "minor"), (2, "major"), (4, "decisive"), (5, "decisive")), 4, [4, 5, 2, 3]),
        (((1, "minor"), (2, "major"), (4, "decisive"), (5, "decisive")), 3, [4, 5, 3]),
        (((1, "minor"), (2, "major"), (4, "decisive"), (5, "decisive")), 2, [4, 3]),
        (((1, "minor"), (5, "major")), 1, [5]),
        (((1, "minor"), (5, "major")), 0, []),
        (((1, "minor"), (5, "major")), 8, [5, 1, 3, 4]),
        (((5, "repaired"), (1, "minor")), 8, [1, 3, 4]),
        (((0, "decisive"),), 8, [3, 4]),  # nobody answers for the task
        (((3, "invented"),), 8, [4]),
    ],
)
def test_only_the_likeliest_steps_are_tried(points, most, tried):
    asked = session(trip(outcome="failure"), judge_candidates=most)
    noted = [
        Point(step, "", "decisive" if kind == "repaired" else kind, None, 5 if kind == "repaired" else None, ())
        for step, kind in points
        if kind != "invented"
    ]  # fmt: skip
    asked._verifier.ungrounded = [step for step, kind in points if kind == "invented"]
    assert asked._candidates(noted) == tried


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
    for change in ({"judge_model": "n"}, {"judge_clip_characters": 200}, {"judge_candidates": 1}):
        assert Judge(JudgeConfig(**{**base, **change})).version != version
    assert Judge(JudgeConfig()).version != version


async def test_modes_of_both_layers_are_merged():
    """A finding of a rule that the model confirms is more certain than either alone."""
    script = with_answers(map={"modes": [mode("2.6", [3], "181 EUR a night", probability=0.6)]})
    verdict = (await judged(script)).verdict
    (confirmed,) = [mode for mode in verdict.modes if mode.code == "2.6"]
    assert confirmed.probability > 0.6
    assert len({mode.code for mode in verdict.modes}) == len(verdict.modes)
    assert GOOD["map"] == {"modes": [mode("2.6", [3], "costs 181 EUR a night")]}


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
