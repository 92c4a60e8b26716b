"""Models that answer badly: no verdict is lost, none is false, and the reason is given."""

import json

import pytest
from judge.llm.scripted_judge import (
    GOOD,
    JudgeScript,
    completion,
    judged,
    mode,
    point,
    reading,
    trip,
    what_if,
)

from mast_trace.exceptions import VerdictUnreadable
from mast_trace_judge.llm.answers import (
    Counterfactual,
    FailurePoint,
    MappedMode,
    Mapping,
    Reading,
    parse_answer,
)
from mast_trace_judge.llm.layer import vote
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.verification import Flip, ModelReading, Verifier

CUT = json.dumps(GOOD["read"])[:90]


async def test_cut_json_is_asked_for_again():
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
    verdict = (await judged(JudgeScript({**GOOD, "read": answer}))).verdict
    assert (verdict.status, verdict.outcome, verdict.method) == ("unscored", "unknown", "local")
    assert "cannot be read" in verdict.status_reason
    assert verdict.calls == 2
    assert verdict.candidates


@pytest.mark.parametrize(
    ("answers", "recorded", "method", "said"),
    [
        ({"read": CUT}, "failure", "local", "without the model: read: the model's answer cannot"),
        ({"map": CUT}, "", "fused", "failure modes were not mapped"),
        ({"counterfactual": CUT}, "", "fused", "was not tried"),
    ],
)
async def test_an_unreadable_answer_leaves_what_is_known(answers, recorded, method, said):
    script = JudgeScript({**GOOD, **answers})
    verdict = (await judged(script, trip(outcome=recorded))).verdict
    assert (verdict.status, verdict.outcome, verdict.method) == ("ok", "failure", method)
    assert said in verdict.status_reason
    assert verdict.candidates


def verified(*points):
    """The points of a reading after verification, and how many claims were dropped."""
    verifier = Verifier(QuoteCheck(trip()), len(trip().steps))
    found = verifier.points(FailurePoint(**each) for each in points)
    return found, verifier


@pytest.mark.parametrize(
    ("told", "step", "quotes", "dropped"),
    [
        (point(3, "181 EUR a night"), 3, ("181 EUR a night",), 0),
        (point(0, "What does the trip cost"), 0, ("What does the trip cost",), 0),
        (point(5, "I agree"), 5, ("I agree",), 0),
        (point(5, "I agree", "nowhere in it"), 5, ("I agree",), 1),
        # Every quote is in another step: that one is meant.
        (point(5, "a double room: 118 EUR a night"), 2, ("a double room: 118 EUR a night",), 0),
        (point(5, "I agree", "a double room: 118 EUR a night"), 5, ("I agree",), 0),
        (point(6, "a double room: 118 EUR a night"), 2, ("a double room: 118 EUR a night",), 1),
        (point(99, "nowhere to be found"), None, (), 2),
        (point(-1), None, (), 1),
        (point(3), None, (), 0),
    ],
)
def test_a_point_stands_at_a_step_that_has_a_quote_of_it(told, step, quotes, dropped):
    found, verifier = verified(told)
    assert [(each.step, each.quotes) for each in found] == (
        [] if step is None else [(step, quotes)]
    )
    assert verifier.ungrounded == ([told["step"]] if step is None else [])
    assert verifier.dropped == dropped


@pytest.mark.parametrize(("field", "known"), [("caused_by", {0, 2}), ("repaired_at", {4, 5})])
def test_a_cause_lies_before_its_error_and_a_repair_behind_it(field, known):
    """Within the run; else the model is wrong about it."""
    for step in (-1, 0, 2, 3, 4, 5, 6, None):
        (found,), _ = verified(point(3, "181 EUR a night", **{field: step}))
        assert getattr(found, field) == (step if step in known else None)


@pytest.mark.parametrize(
    ("answer", "weight", "is_kept"),
    [
        ({}, 0.8, True),
        ({"uses_only_earlier_information": False}, 0.4, False),
        ({"earlier_cause": 2}, 0.4, True),
        ({"earlier_cause": 0}, 0.4, True),
        ({"earlier_cause": 3}, 0.8, True),
        ({"earlier_cause": 5}, 0.8, True),
        ({"earlier_cause": -1}, 0.8, True),
        ({"uses_only_earlier_information": False, "earlier_cause": 2}, 0.2, False),
        ({"corrected_text": " "}, 0.8, False),
        ({"corrected_text": "x" * 8000}, 0.8, True),
        ({"corrected_text": "x" * 8001}, 0.8, False),
        ({"corrected_calls": [{"name": "book", "arguments": "{}"}]}, 0.8, True),
        ({"corrected_calls": [{"name": " ", "arguments": "{}"}]}, 0.8, False),
        ({"corrected_calls": [{"name": "book", "arguments": "[]"}]}, 0.8, False),
    ],
)
def test_late_and_secondary_steps_are_doubted(answer, weight, is_kept):
    """A fix that needs later knowledge, or whose step follows from another, counts half; no half answer is one."""
    flip = verified()[1].flip(Counterfactual(**what_if(0.8, **answer)), 3)
    assert flip.weight == pytest.approx(weight)
    assert (flip.corrected is not None) is is_kept
    assert (flip.minimal_fix, flip.reason) == (what_if()["minimal_fix"], what_if()["reason"])


@pytest.mark.parametrize(
    ("answers", "found", "ungrounded"),
    [
        ([mode("2.6", [3], "181 EUR", probability=0.25)], {"2.6": (0.25, (3,))}, []),
        ([mode("2.6", [3], "181 EUR", probability=0.24)], {}, []),
        ([mode("2.6", [99, 3], "181 EUR a night")], {"2.6": (0.9, (3,))}, []),
        ([mode("1.2", [77], "nowhere")], {}, ["1.2"]),
        (
            [
                mode("2.6", [3], "181 EUR", probability=0.5),
                mode("2.6", [5], "I agree", probability=0.7),
                mode("1.1", [4], "together 939 EUR", probability=0.6),
            ],
            {"2.6": (0.7, (5,)), "1.1": (0.6, (4,))},
            [],
        ),
        ([mode("2.6", [5], "a double room: 118 EUR a night")], {"2.6": (0.9, (2, 5))}, []),
    ],
)
def test_a_mode_needs_a_quote_and_is_told_once(answers, found, ungrounded):
    verifier = verified()[1]
    modes = verifier.modes(MappedMode(**each) for each in answers)
    assert {each.code: (each.probability, each.steps) for each in modes} == found
    assert verifier.ungrounded_modes == ungrounded


READINGS = [
    ModelReading("failure", 0.9, "", grounded=frozenset(steps)) for steps in ({1}, {1, 2}, {3}, ())
]


@pytest.mark.parametrize(
    ("flips", "grounded", "likeliest"),
    [
        ({2: 0.5, 1: 0.5}, {1, 2}, 1),
        ({1: 0.5, 2: 0.6}, {1, 2}, 2),
        ({1: 0.4, 2: 0.7}, {1}, 1),  # without a quote it counts half
        ({1: 0.3, 2: 0.7}, {1}, 2),
        ({1: 0.0}, {1}, None),
        ({}, {1}, None),
    ],
)
def test_the_likeliest_step_of_a_reading(flips, grounded, likeliest):
    tried = {step: Flip(weight, "", "") for step, weight in flips.items()}
    told = ModelReading("failure", 0.9, "", tried, grounded=frozenset(grounded))
    assert told.likeliest == likeliest


def test_a_step_is_shared_by_half_of_the_readings():
    voted = vote(READINGS)
    assert [voted.is_shared(step) for step in (1, 2, 3, 4)] == [True, False, False, False]
    assert [READINGS[1].is_shared(step) for step in (2, 3)] == [True, False]


@pytest.mark.parametrize(
    ("finish", "message", "told"),
    [
        ("stop", {"content": None, "refusal": "I cannot help."}, "I cannot help"),
        ("content_filter", {"content": json.dumps(GOOD["read"])}, "a content filter stopped"),
        ("length", {"content": CUT}, "limit of output tokens"),
    ],
)
async def test_an_answer_that_is_none_is_no_verdict_and_not_asked_again(finish, message, told):
    """The words of the model or of its server are the reason."""
    script = JudgeScript({**GOOD, "read": completion(message, finish)})
    verdict = (await judged(script)).verdict
    assert script.asked == ["read"]
    assert (verdict.status, verdict.outcome) == ("unscored", "unknown")
    assert told in verdict.status_reason


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
    ("shape", "field", "value"),
    [
        (Reading, "failure_probability", 1.001),
        (Reading, "failure_probability", -0.001),
        (Reading, "outcome", "pass"),
        (Reading, "extra", 1),
        (MappedMode, "code", "1.6"),
        (MappedMode, "probability", 1.001),
    ],
)
def test_refuses_values_out_of_bounds(shape, field, value):
    answer = {Reading: reading(), MappedMode: mode("1.1", [1], "x")}[shape]
    with pytest.raises(VerdictUnreadable, match=field):
        parse_answer(json.dumps({**answer, field: value}), shape)
    for limit in (0, 1) if field.endswith("probability") else ():
        assert getattr(parse_answer(json.dumps({**answer, field: limit}), shape), field) == limit
