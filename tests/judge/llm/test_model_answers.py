"""Models that answer badly: what is right is kept, nothing is false, and the reason is given."""

import json

import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import (
    GOOD,
    OPINION,
    PRICES_OF_TWO,
    JudgeScript,
    completion,
    judged,
    mode,
    point,
    reading,
    trip,
    what_if,
    with_answers,
)

from mast_trace.exceptions import VerdictUnreadable
from mast_trace_judge.llm.answers import (
    Correction,
    MappedMode,
    NotedError,
    Reading,
    SegmentNotes,
    json_schema,
    parse_answer,
)
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.verification import Verifier, corrected

CUT = json.dumps(GOOD["read"])[:90]
ANSWER = {"marks": "a b", **GOOD["read"]}
TEXT = json.dumps(ANSWER)


async def test_cut_json_is_asked_for_again():
    script = JudgeScript(first=[CUT])
    result = await judged(script)
    assert script.asked == ["read", "read"]
    assert "cannot be read" in str(result.requests[1]["messages"][-1]["content"])
    assert result.verdict.method == "fused"
    assert [call.status for call in result.ledger.calls] == ["unreadable", "ok"]


@pytest.mark.parametrize(
    "answer",
    [CUT, "I think the run failed.", "{}", '{"outcome": "failure"}', "[]", "null", "{" * 5000],
    ids=["cut", "prose", "empty", "little", "list", "null", "nested"],
)
@pytest.mark.parametrize("recorded", ["", "failure"])
async def test_an_unreadable_answer_leaves_what_is_known(answer, recorded):
    verdict = (await judged(with_answers(read=answer), trip(outcome=recorded))).verdict
    assert verdict.method == "local"
    assert (verdict.status, verdict.outcome) == (
        ("ok", "failure") if recorded else ("unscored", "unknown")
    )
    assert "read: the model's answer cannot be read" in verdict.status_reason
    assert verdict.calls == 2
    assert verdict.candidates


async def test_a_step_that_could_not_be_corrected_stays_suggested():
    script = with_answers(counterfactual=CUT)
    verdict = (await judged(script, trip(outcome="failure"), judge_candidates=1)).verdict
    assert verdict.candidates[0].step == 3
    assert "step 3 was not tried" in verdict.status_reason


@pytest.mark.parametrize(
    "text",
    [
        TEXT[:-1] + ",}",
        TEXT.replace('"solution"', '// thinking\n"solution"'),
        TEXT.replace('"solution"', '/* thinking */ "solution"'),
        str(ANSWER).replace("None", "null").replace("False", "false"),
        str(ANSWER),
        TEXT.replace("three nights", "three\nnights"),
        json.dumps({**ANSWER, "extra": 1}),
        json.dumps({"answer": ANSWER}),
        json.dumps({"result": {"reading": ANSWER, "time": 3}}),
        json.dumps([ANSWER]),
        json.dumps({key.upper(): value for key, value in ANSWER.items()}),
        json.dumps({**ANSWER, "outcome": "FAILED"}),
        json.dumps({**ANSWER, "failure_probability": "90%"}),
        json.dumps({**ANSWER, "failure_probability": 90}),
        json.dumps({**ANSWER, "ranking": ["[3]", "x"]}),
        json.dumps({**ANSWER, "ranking": 3}),
        json.dumps({**ANSWER, "confidence": "high"}),
        json.dumps({**ANSWER, "errors": [{"step": "?"}, 5, *ANSWER["errors"]]}),
        json.dumps({**ANSWER, "errors": ANSWER["errors"][0]}),
        json.dumps({**ANSWER, "errors": [point("[3]", quotes="181 EUR a night")]}),
        json.dumps({**ANSWER, "errors": [{"step": 3, "quotes": ["181 EUR a night"]}]}),
        json.dumps({**ANSWER, "modes": [{**ANSWER["modes"][0], "code": "2.6 Reasoning-action"}]}),
        json.dumps({**ANSWER, "modes": [{**ANSWER["modes"][0], "code": "Reasoning-Action Mismatch"}]}),
        json.dumps({**ANSWER, "modes": [{"code": "9.9"}, *ANSWER["modes"]]}),
        json.dumps({**ANSWER, "modes": {"2.6": {"steps": "3"}}}),
        json.dumps({**ANSWER, "modes": ["2.6 Reasoning-Action Mismatch"]}),
        json.dumps({**ANSWER, "ranking": [{"step": 3}]}),
        json.dumps({**ANSWER, "ranking": "Step 3"}),
        json.dumps({**ANSWER, "decisive": "Step 3: it says 181"}),
        json.dumps({**ANSWER, "decisive": [{**ANSWER["decisive"], "step": {"index": 3}}]}),
        json.dumps({**ANSWER, "outcome": "The run failed"}),
        json.dumps({**ANSWER, "errors": [point(3, {"step": 3, "quote": "181 EUR a night"})]}),
        json.dumps({**ANSWER, "failure_probability": "0,9"}),
        json.dumps({"function": {"arguments": TEXT}}),
        TEXT.replace("failure_probability", "failureProbability"),
        json.dumps({**ANSWER, "failure_probability": "9/10"}),
        json.dumps({**ANSWER, "failure_probability": "9 out of 10"}),
        json.dumps({**ANSWER, "errors": json.dumps(ANSWER["errors"])}),
        json.dumps({**ANSWER, "modes": json.dumps(ANSWER["modes"])}),
        json.dumps({**ANSWER, "errors": {"errors": ANSWER["errors"]}}),
        json.dumps({**ANSWER, "modes": {"modes": ANSWER["modes"]}}),
        json.dumps({**ANSWER, "errors": [{"id": 3, "quote": "181 EUR a night"}]}),
        json.dumps({**ANSWER, "errors": [{"step_id": "3", "quotes": [["181 EUR a night"]]}]}),
        json.dumps({**ANSWER, "errors": [{"index": 3, "quotes": "181 EUR a night"}]}),
        json.dumps({**ANSWER, "modes": [{**ANSWER["modes"][0], "code": "Reasoning action mismatch"}]}),
        json.dumps({**ANSWER, "modes": [{**ANSWER["modes"][0], "code": "reasoning_action_mismatch"}]}),
        f"{TEXT}\nThe schema was {json.dumps(json_schema(Reading))}",
        f'{TEXT}\n{{"$schema": "x", "schema": {json.dumps(json_schema(Reading))}}}',
        f"<think>{{3?}}</think>{TEXT}",
        f"It says {{so}}.</think>{TEXT}",
        f"Here you are:\n```json\n{TEXT}\n```\nAnything else?",
        f'The record says {{"outcome": "success"}}. My answer: {TEXT}',
        TEXT.replace("this price", 'this \\"price').replace('\\"price', '"price"'),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_costs_no_more_than_its_point(text):
    read = parse_answer(text, Reading)
    assert (read.outcome, read.failure_probability) == ("failure", 0.9)
    assert ([each.step for each in read.errors], read.ranking, read.decisive.step) == ([3], [3], 3)
    assert [each.quotes for each in read.errors] == [["181 EUR a night"]]
    assert [each.code for each in read.modes] == ["2.6"]


@pytest.mark.parametrize("said", [None, "high", "missing"])
async def test_a_probability_that_cannot_be_read_costs_no_outcome(said):
    answer = {**GOOD["read"], "failure_probability": said}
    if said == "missing":
        del answer["failure_probability"]
    verdict = (await judged(with_answers(read=answer), trip(prices=PRICES_OF_TWO))).verdict
    assert verdict.status_reason == OPINION


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (".7", 0.7),
        ("about .7", 0.7),
        ("step.5", 0.05),
        ("0.7", 0.7),
        ("1e-1", 0.1),
        ("7E-1", 0.7),
        (1, 1.0),
        ("1", 1.0),
        ("1.0", 1.0),
        ("1%", 0.01),
        (100, 1.0),
        ("5/4", 0.5),
        ("7/0", 0.07),
    ],
)
def test_a_probability_may_begin_with_its_point(said, meant):
    assert parse_answer(json.dumps({**ANSWER, "confidence": said}), Reading).confidence == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *[(said, "cut off") for said in ("cut off", "cut_off", "CUT-OFF", "cutoff")],
        ("cut off from outside", "cut off"),
        ("none", "nothing"),
        ("None", "nothing"),
        ("several steps", "several"),
        (None, "single"),
    ],
)
def test_a_kind_is_read_in_any_spelling(said, meant):
    answer = {**ANSWER, "decisive": {"kind": said, "step": None}}
    assert parse_answer(json.dumps(answer), Reading).decisive.kind == meant


@pytest.mark.parametrize("before", ["", '{"outcome": "success", "errors": []} is no answer. '])
def test_an_answer_of_two_fields_is_one(before):
    text = json.dumps({key: ANSWER[key] for key in ("outcome", "decisive")})
    read = parse_answer(f"{before}{text}", Reading)
    assert (read.outcome, read.decisive.step, read.modes) == ("failure", 3, [])
    assert parse_answer(f"{text} {TEXT}", Reading).ranking == [3]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("not a failure", "unclear"),
        ("a success at first, then it failed", "unclear"),
        ("the run was a success", "success"),
        ("Successful", "success"),
    ],
)
def test_an_outcome_in_a_sentence_is_read_where_it_is_plain(said, meant):
    assert parse_answer(json.dumps({**ANSWER, "outcome": said}), Reading).outcome == meant


@pytest.mark.parametrize("left_out", GOOD["read"])
def test_a_missing_field_costs_itself_alone(left_out):
    """The marks are the first field of nine."""
    told = {name: value for name, value in ANSWER.items() if name != left_out}
    read, whole = parse_answer(json.dumps(told), Reading), Reading(**ANSWER)
    for name in told:
        assert getattr(read, name) == getattr(whole, name)


@pytest.mark.parametrize(
    ("text", "asked"),
    [(f"{{}}{' ' * 9}", 1), ("{} and so", 1), ("", 2)],
    ids=["blank", "words", "cut"],
)
async def test_a_whole_answer_is_taken_though_the_limit_has_ended_it(text, asked):
    script = JudgeScript()

    def limited(request):
        answer = script(request)
        told = text.replace("{}", answer) or answer[: answer.index('"modes"') - 2]
        return completion({"content": told}, finish="length")

    result = await judged(limited, trip(outcome="failure"))
    assert (script.asked.count("read"), result.verdict.method == "fused") == (asked, asked == 1)


@pytest.mark.parametrize(
    ("message", "is_read"),
    [
        ({"content": [{"type": "text", "text": TEXT[:50]}, {"type": "text", "text": TEXT[50:]}]}, True),
        ({"content": None, "reasoning_content": TEXT}, True),
        ({"content": "", "reasoning": TEXT}, True),
        (
            {
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "answer", "arguments": TEXT}}
                ],
            },
            True,
        ),
        (
            {
                "content": "I report it by a call.",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "answer", "arguments": TEXT}}
                ],
            },
            True,
        ),
        ({"content": "\n\n", "reasoning_content": TEXT}, True),
        ({"content": "I cannot tell.", "reasoning_content": TEXT}, False),
        ({"content": None, "function_call": {"name": "answer", "arguments": TEXT}}, True),
        ({"content": "", "function_call": {"name": "answer"}, "reasoning": TEXT}, True),
        ({"content": None, "parsed": ANSWER}, True),
        ({"content": None, "reasoning_details": [{"text": TEXT[:50]}, {"text": TEXT[50:]}, {}, 7]}, True),
        ({"content": None}, False),
    ],
)  # fmt: skip
async def test_an_answer_is_taken_from_where_it_stands(message, is_read):
    told = {**message}
    told = json.loads(json.dumps(told).replace("a b", "MARKS"))
    answer = completion(told)

    def marked(request):
        marks = [
            line[6:]
            for line in str(request["messages"][1]["content"]).split("\n")
            if line[:6] == "Mark: "
        ]
        return type(answer)(body=answer.body.replace("MARKS", " ".join(marks)))  # fmt: skip

    verdict = (await judged(marked, trip(outcome="failure"))).verdict
    assert (verdict.method == "fused") is is_read


def verified(*errors):
    """The errors of a reading after verification, and the verifier."""
    verifier = Verifier(QuoteCheck(trip()), len(trip().steps))
    return verifier.points(NotedError(**each) for each in errors), verifier


@pytest.mark.parametrize(
    ("told", "step", "quotes"),
    [
        (point(3, "181 EUR a night"), 3, ("181 EUR a night",)),
        (point(5, "I agree", "nowhere in it"), 5, ("I agree",)),
        # Every quote is in another step: that one is meant.
        (point(5, "a double room: 118 EUR a night"), 2, ("a double room: 118 EUR a night",)),
        (point(5, "I agree", "a double room: 118 EUR a night"), 5, ("I agree",)),
        (point(6, "a double room: 118 EUR a night"), 2, ("a double room: 118 EUR a night",)),
        (point(99, "nowhere to be found"), None, ()),
        (point(-1), None, ()),
        (point(3), None, ()),
    ],
)
def test_an_error_stands_at_a_step_that_has_a_quote_of_it(told, step, quotes):
    found, verifier = verified(told)
    assert [(each.step, each.quotes) for each in found] == (
        [] if step is None else [(step, quotes)]
    )
    assert verifier.ungrounded == ([told["step"]] if step is None else [])


def test_a_step_without_text_of_its_own_is_named_by_its_number():
    """One that repeats an earlier text, and one whose content was not recorded; no other."""
    run = RunBuilder("x").says("a", "The room costs 181 EUR a night.").says("b", "I think so, too.")
    run.says("c", "The room costs 181 EUR a night.").says("d", "", content_hash="ab")
    verifier = Verifier(QuoteCheck(run.build()), 4)
    assert [each.step for each in verifier.points(NotedError(step=n) for n in range(4))] == [2, 3]


def test_a_call_that_repeats_an_earlier_one_is_named_by_its_number():
    run = RunBuilder("x").calls("a", "search", {"page": 1}, "nothing found here")
    run.calls("a", "search", {"page": 1}, "nothing found here")
    run.calls("a", "search", {"page": 2}, "nothing found here")
    check = QuoteCheck(run.build())
    assert [check.has_no_text_of_its_own(step) for step in range(3)] == [False, True, False]


def test_a_cause_lies_before_its_error():
    for step in (-1, 0, 2, 3, 4, None):
        (found,), _ = verified(point(3, "181 EUR a night", inherited_from=step))
        assert found.inherited_from == (step if step in {0, 2} else None)


QUOTES = {3: "181 EUR a night", 4: "together 939 EUR", 5: "I agree"}


@pytest.mark.parametrize(
    ("decisive", "ranking", "harmless", "suggested"),
    [
        ({"step": 4}, [4, 3, 5], (), [4, 3, 5]),
        ({"step": 4}, [3, 5], (), [4, 3, 5]),
        ({"step": None}, [5, 3], (), [5, 3]),
        ({"step": 2}, [3], (), [3]),  # no error was quoted there
        ({"step": 5, "quotes": ["181 EUR a night"]}, [], (), [3]),
        ({"step": 4}, [4, 3], {3}, [4]),
        ({"step": 3, "kind": "several"}, [3, 5], (), [3, 5]),
        ({"step": 3, "kind": "cut off"}, [3], (), []),
        ({"step": 3, "kind": "nothing"}, [3], (), []),
    ],
)
def test_the_steps_that_a_reading_suggests(decisive, ranking, harmless, suggested):
    told = reading(
        *(point(step, quote, harmless=step in harmless) for step, quote in QUOTES.items())
    )
    told["decisive"] |= {"quotes": [QUOTES.get(decisive["step"], "nowhere in it")], **decisive}
    verifier = Verifier(QuoteCheck(trip()), len(trip().steps))
    found = verifier.suggestions(Reading(**{**told, "ranking": ranking}))
    assert [each.step for each in found] == suggested
    assert [each.weight for each in found] == [1 / rank for rank in range(1, len(found) + 1)]
    assert all(QUOTES[each.step] in each.quotes for each in found)


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        ({}, True),
        ({"uses_only_earlier_information": False}, False),
        ({"corrected_text": " "}, False),
        ({"corrected_text": "x" * 8000}, True),
        ({"corrected_text": "x" * 8001}, False),
        ({"corrected_calls": [{"name": "book", "arguments": "{}"}]}, True),
        ({"corrected_calls": [{"name": "book", "arguments": {"room": 3}}]}, True),
        ({"corrected_calls": [{"name": " ", "arguments": "{}"}]}, False),
        ({"corrected_calls": [{"name": "book", "arguments": "[]"}]}, False),
    ],
)
def test_half_an_answer_is_no_corrected_step(answer, is_kept):
    assert (corrected(Correction(**what_if(**answer))) is not None) is is_kept


@pytest.mark.parametrize(
    ("answers", "found", "ungrounded"),
    [
        ([mode("2.6", [3], "181 EUR", probability=0.25)], {"2.6": (0.25, (3,))}, []),
        ([mode("2.6", [3], "181 EUR", probability=0.24)], {}, []),
        ([{**mode("2.6", [3], "181 EUR"), "harmless": True}], {}, []),
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


@pytest.mark.parametrize(
    ("finish", "message", "told", "calls"),
    [
        ("stop", {"content": None, "refusal": "I cannot help."}, "I cannot help", 1),
        ("content_filter", {"content": TEXT}, "a content filter stopped", 1),
        ("length", {"content": CUT}, "limit of output tokens", 2),
    ],
)
async def test_an_answer_that_is_none_is_no_verdict(finish, message, told, calls):
    """The words of the model or of its server are the reason."""
    script = with_answers(read=completion(message, finish))
    verdict = (await judged(script)).verdict
    assert script.asked == ["read"] * calls
    assert (verdict.status, verdict.outcome) == ("unscored", "unknown")
    assert told in verdict.status_reason


async def test_a_cut_answer_is_asked_for_once_more_with_more_room():
    script = JudgeScript(first=[completion({"content": CUT}, "length")])
    result = await judged(script)
    assert result.verdict.method == "fused"
    first, second = result.requests
    assert second["max_completion_tokens"] == 2 * first["max_completion_tokens"]
    assert "Keep this one short" in second["messages"][-1]["content"]


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
        assert parse_answer(answer, Reading).errors[0].what == "the price ?"


@pytest.mark.parametrize("value", [1.001 * 100, -0.001, "high", True, None, [1, 2]])
def test_a_number_out_of_bounds_is_none(value):
    read = parse_answer(json.dumps({**ANSWER, "failure_probability": value}), Reading)
    assert read.failure_probability == 0.5


def test_a_mode_or_an_error_without_its_subject_is_none():
    told = {"summary": "", "errors": [{"what": "no step"}, {"step": None}, {"step": "two"}]}
    assert parse_answer(json.dumps(told), SegmentNotes).errors == []
    with pytest.raises(VerdictUnreadable, match="code"):
        parse_answer(json.dumps(mode("1.6", [1], "x")), MappedMode)


@pytest.mark.parametrize("shape", [Reading, SegmentNotes, Correction])
def test_schemas_are_what_strict_servers_take(shape):
    """Every object is closed, and every property required; reasons stand before conclusions."""
    objects = [json_schema(shape)]
    while objects:
        schema = objects.pop()
        if "properties" in schema:
            assert (schema["required"], schema["additionalProperties"]) == (
                list(schema["properties"]),
                False,
            )
            assert not schema.keys() & {"$ref", "title", "default"}
        objects += [each for value in schema.values() for each in _schemas(value)]
    order = list(Reading.model_fields)
    assert order.index("errors") < order.index("decisive") < order.index("confidence")


def _schemas(value):
    several = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return [value] * isinstance(value, dict) + [
        each for inner in several for each in _schemas(inner)
    ]
