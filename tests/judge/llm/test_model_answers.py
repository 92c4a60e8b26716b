"""Models that answer badly: no verdict is lost, none is false, and the reason is given."""

import json

import pytest
from judge.llm.scripted_judge import (
    GOOD,
    JudgeScript,
    judged,
    mode,
    point,
    reading,
    trip,
    with_answers,
)
from scripted_llm import Reply

from mast_trace.exceptions import VerdictUnreadable
from mast_trace_judge.llm.answers import Mapping, Reading
from mast_trace_judge.llm.parsing import parse_answer

CUT = json.dumps(GOOD["read"])[:90]


def quotes_of(verdict):
    return [quote for found in verdict.modes for quote in found.quotes]


def assert_true_quotes(verdict, trajectory):
    """Every displayed quote stands, word for word, in a step of its finding."""
    for found in verdict.modes:
        texts = [
            text
            for index in found.steps
            for text in (trajectory.steps[index].text, trajectory.steps[index].arguments)
        ]
        for quote in found.quotes:
            assert any(quote in text for text in texts), (found.code, quote)


async def test_cut_json_is_asked_for_again():
    """An answer that breaks off is sent back once with what is wrong with it."""
    script = JudgeScript(first=[CUT])
    result = await judged(script)
    assert script.asked[:2] == ["read", "read"]
    assert "cannot be read" in str(result.requests[1]["messages"][-1]["content"])
    assert result.verdict.method == "fused"
    assert [call.status for call in result.ledger.calls][:2] == ["unreadable", "ok"]


@pytest.mark.parametrize(
    "answer",
    [CUT, "I think the run failed.", "{}", '{"outcome": "fine"}', "[]", "null", "{" * 5000],
    ids=["cut", "prose", "empty", "wrong", "list", "null", "nested"],
)
async def test_an_unreadable_answer_is_neither_pass_nor_fail(answer):
    """A run whose end is otherwise unknown stays unscored with the reason."""
    verdict = (await judged(JudgeScript({**GOOD, "read": answer}))).verdict
    assert (verdict.status, verdict.outcome, verdict.method) == ("unscored", "unknown", "local")
    assert "cannot be read" in verdict.status_reason
    assert verdict.calls == 2
    assert verdict.candidates


async def test_an_unreadable_answer_leaves_what_is_known():
    """If the run itself shows how it ended, the local verdict stands, with the reason."""
    verdict = (await judged(JudgeScript({**GOOD, "read": CUT}), trip(outcome="failure"))).verdict
    assert (verdict.status, verdict.outcome, verdict.method) == ("ok", "failure", "local")
    assert "without the model: read: the model's answer cannot be read" in verdict.status_reason
    assert verdict.candidates


async def test_invented_quotes_are_dropped_with_their_mode():
    """A mode that only invented quotes support is not reported; true quotes of others remain."""
    script = with_answers(
        map={
            "modes": [
                mode("1.1", [3], "a single room in Porto costs 75 EUR"),
                mode("2.6", [3], "a night in Porto", "costs 181 EUR a night"),
                mode("2.5", [5], ""),
            ]
        }
    )
    verdict = (await judged(script)).verdict
    reported = {found.code for found in verdict.modes if found.evidence == "model"}
    assert reported == {"2.6"}
    assert not any("Porto" in quote for quote in quotes_of(verdict))
    assert_true_quotes(verdict, trip())


async def test_a_quote_of_another_step_is_moved():
    """A quote that stands in exactly one other step proves the mode there."""
    script = with_answers(map={"modes": [mode("2.6", [5], "a double room: 118 EUR a night")]})
    verdict = (await judged(script)).verdict
    (found,) = [found for found in verdict.modes if found.code == "2.6"]
    assert 2 in found.steps
    assert_true_quotes(verdict, trip())


async def test_invented_steps_are_dropped():
    """Numbers of steps that the run does not have reach no verdict."""
    script = with_answers(
        read=reading(point(99, "nowhere to be found"), point(-1), point(3, "181 EUR")),
        map={"modes": [mode("2.6", [99, 3], "181 EUR a night"), mode("1.2", [77], "nowhere")]},
    )
    verdict = (await judged(script)).verdict
    existing = {step.index for step in trip().steps}
    assert {step for found in verdict.modes for step in found.steps} <= existing
    assert {candidate.step for candidate in verdict.candidates} <= existing
    assert "1.2" not in {found.code for found in verdict.modes if found.evidence == "model"}


async def test_a_refusal_is_no_verdict():
    """A model that refuses is not asked again, and its refusal is the reason."""
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": None, "refusal": "I cannot help."},
                }
            ],
        }
    )
    script = JudgeScript({**GOOD, "read": Reply(body=body)})
    verdict = (await judged(script)).verdict
    assert script.asked == ["read"]
    assert (verdict.status, verdict.outcome) == ("unscored", "unknown")
    assert "I cannot help" in verdict.status_reason


async def test_an_answer_cut_at_the_token_limit_is_no_verdict():
    """An answer that hit the limit of output tokens is reported as such."""
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length",
                    "message": {"role": "assistant", "content": CUT},
                }
            ],
        }
    )
    verdict = (await judged(JudgeScript({**GOOD, "read": Reply(body=body)}))).verdict
    assert verdict.status == "unscored"
    assert "limit of output tokens" in verdict.status_reason


async def test_a_failed_later_question_leaves_the_earlier_answers():
    """If only the mapping or one step cannot be read, the rest of the reading counts."""
    verdict = (await judged(JudgeScript({**GOOD, "map": CUT, "counterfactual": CUT}))).verdict
    assert (verdict.status, verdict.outcome, verdict.method) == ("ok", "failure", "fused")
    assert "failure modes were not mapped" in verdict.status_reason
    assert "was not tried" in verdict.status_reason


@pytest.mark.parametrize(
    "text",
    [
        '{"modes": []}',
        'Here you are:\n```json\n{"modes": []}\n```\nAnything else?',
        '<think>{"modes": "?"}</think>{"modes": []}',
        'The record says {"modes": [{"code": "9.9"}]}. My answer: {"modes": []}',
        '{"note": 1} {"modes": []}',
    ],
    ids=["plain", "fenced", "thinking", "after a repetition", "second object"],
)
def test_finds_the_answer_in_what_surrounds_it(text):
    """Prose, fences, thoughts and repeated passages do not hide the answer; the last one counts."""
    assert parse_answer(text, Mapping) == Mapping(modes=[])


HALF = reading(point(3, "181 EUR a night", what="the price \ud83d"))


@pytest.mark.parametrize(
    "answer",
    [json.dumps(HALF), json.dumps(HALF, ensure_ascii=False), "no JSON \ud83d"],
    ids=["spelled", "whole", "unreadable"],
)
async def test_half_a_character_of_a_model_is_stored_and_shown(answer):
    """JSON can hold one, UTF-8 cannot."""
    result = await judged(JudgeScript(first=[answer]))
    assert result.verdict.status == "ok"
    told = [result.verdict.to_json(), *(call.answer for call in result.ledger.calls)]
    assert json.dumps(told, ensure_ascii=False).encode()
    if "{" in answer:
        assert parse_answer(answer, Reading).points[0].what == "the price ?"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("failure_probability", 1.5),
        ("failure_probability", -0.1),
        ("outcome", "pass"),
        ("extra", 1),
    ],
)
def test_refuses_values_out_of_bounds(field, value):
    """Probabilities beyond 0 to 1, unknown words and unknown fields are no answer."""
    answer = {**reading(), field: value}
    with pytest.raises(VerdictUnreadable, match=field):
        parse_answer(json.dumps(answer), Reading)


def test_refuses_codes_that_the_taxonomy_does_not_have():
    """A model cannot invent a failure mode."""
    with pytest.raises(VerdictUnreadable, match="code"):
        parse_answer(json.dumps({"modes": [mode("1.6", [1], "x")]}), Mapping)
