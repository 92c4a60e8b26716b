"""A verdict says which failure modes were looked for, and which of what it found people are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import JudgeScript, judged, run_of, trip
from judge.store.verdicts import finding, verdict

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.local.rules import RULES, examined_modes, find_modes
from mast_trace_judge.local.rules._registry import code_of, explains_failures, needs_end

NO_RULE = {"2.3"}
RUN = RunBuilder().asks().says("lead", "Go on.", to="coder").says("coder", "Done.").build()
FAILED = replace(RUN, outcome="failure")
OPEN = replace(FAILED, finished=False)


def test_of_a_failed_run_all_modes_are_examined_that_have_a_rule() -> None:
    assert set(examined_modes(FAILED)) == FAILURE_MODES.keys() - NO_RULE


def test_rules_that_explain_failures_examine_no_other_run() -> None:
    others = {code_of(rule) for rule in RULES if not explains_failures(rule)}
    assert set(examined_modes(RUN)) == others


def test_what_may_still_come_is_not_examined_in_a_run_without_an_end() -> None:
    others = {code_of(rule) for rule in RULES if not needs_end(rule)}
    assert set(examined_modes(OPEN)) == others
    assert {found.code for found in find_modes(OPEN)} <= others


async def test_a_model_that_has_read_the_run_has_looked_for_all() -> None:
    read = (await judged(JudgeScript())).verdict
    assert read.examined == tuple(FAILURE_MODES)


async def test_a_model_that_is_away_has_looked_for_nothing() -> None:
    config = JudgeConfig.load(
        judge_model="m", judge_base_url="http://127.0.0.1:9/v1", judge_attempts=1
    )
    run = trip(outcome="failure")
    judge = Judge(config)
    judged_run = await judge.judge(run_of(run), run)
    await judge.aclose()
    assert set(judged_run.examined) == set(examined_modes(run))
    assert "without the model: the model's endpoint failed" in judged_run.status_reason


async def test_why_there_is_no_model_is_said_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    run = trip(outcome="failure")
    without = await Judge(JudgeConfig.load(judge_model="")).judge(run_of(run), run)
    assert without.status_reason == ""
    config = JudgeConfig.load(judge_model="small-1", judge_base_url="", judge_api_key="")
    assert not config.uses_model
    judged_run = await Judge(config).judge(run_of(run), run)
    assert judged_run.status_reason.startswith(
        "without the model: MAST_TRACE_JUDGE_MODEL names small-1, but there is neither a key"
    )
    assert (judged_run.status, judged_run.modes) == (without.status, without.modes)


async def test_what_was_found_was_looked_for() -> None:
    judge = Judge(JudgeConfig.load(judge_model=""))
    for run in (RUN, FAILED, OPEN, trip(outcome="failure")):
        judged_run = await judge.judge(run_of(run), run)
        assert {mode.code for mode in judged_run.modes} <= set(judged_run.examined)
        assert not judged_run.calibrated, "no profile was fitted to such runs"


def test_half_is_shown_and_less_is_possible() -> None:
    judged_run = verdict(
        modes=(finding("1.3", probability=0.5), finding("2.6", probability=0.4999))
    )
    assert [mode.code for mode in judged_run.shown] == ["1.3"]


@pytest.mark.parametrize(
    ("outcome", "probability", "named"),
    [("failure", 0.1, 2), ("unknown", 0.5, 2), ("unknown", 0.4, 0), ("success", 0.9, 0)],
)
def test_candidates_are_named_where_something_says_that_the_run_failed(
    outcome: str, probability: float, named: int
) -> None:
    found = (finding(probability=probability),)
    judged_run = verdict(outcome=outcome, modes=found, decisive=None, abstained=True)
    assert len(judged_run.named_candidates) == named
    assert len(judged_run.to_json()["candidates"]) == 2
