"""Reading models' answers and joining them with the local distribution."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.opinions import (
    FusionWeights,
    Opinion,
    contradicts_itself,
    fuse,
    read_opinion,
)

RUN = RunBuilder().asks().says("lead", "Go.").says("coder", "Done.").says("lead", "4").build()
FLAT = {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        ('{"agent_name": "coder", "step_number": 2, "reason": "x"}', Opinion(2, "coder")),
        ('Well.\n```json\n{"agent": "coder", "step": "2"}\n```', Opinion(2, "coder")),
        ('{"step": 1} no, rather {"step": "step_2", "agent": "coder"}', Opinion(2, "coder")),
        ('{"step": 2, "agent": "coder"} {that is all}', Opinion(2, "coder")),
        ('{"agent": "coder"}', Opinion(None, "coder")),
        ('{"step": 2, "agent": ["coder"]}', Opinion(2, "")),
        ('{"step": ' + "[" * 100_000 + "}", None),
        ('{"step": true, "agent": 7}', None),
        ('{"step": 2, "agent": "cod', None),
        ("I cannot help with that.", None),
        ("", None),
    ],
)
def test_answers_are_read_or_unscored(text, opinion):
    assert read_opinion(text) == opinion


@given(st.text())
def test_reading_never_fails(text):
    """Models write anything; what holds no braces holds no opinion."""
    read_opinion(text)
    assert read_opinion(text.replace("{", "")) is None


STEPS = {4: 4, -1: -1, "7": 7, "step_12 or so": 12, "none": None, True: None, 2.5: None, None: None}
AGENTS = {"coder": "coder", "": "", 7: "", None: ""}
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("step", "step_number"), st.sampled_from(list(STEPS))),
        **dict.fromkeys(("agent", "agent_name"), st.sampled_from(list(AGENTS))),
        "reason": st.text(st.characters(exclude_characters="{}"), max_size=10),
    },
)
PROSE = st.text(st.characters(exclude_characters="{}"), max_size=20)


def told(answer):
    """The opinion in a JSON object; the first spelling of a key counts."""
    step = next((STEPS[answer[key]] for key in ("step", "step_number") if key in answer), None)
    agent = next((AGENTS[answer[key]] for key in ("agent", "agent_name") if key in answer), "")
    return Opinion(step, agent) if step is not None or agent else None


@given(PROSE, st.lists(st.tuples(ANSWERS, PROSE), max_size=4))
def test_the_last_object_with_an_opinion_counts(before, answers):
    text = before + "".join(json.dumps(answer) + prose for answer, prose in answers)
    opinions = [opinion for answer, _ in answers if (opinion := told(answer))]
    assert read_opinion(text) == (opinions[-1] if opinions else None)


@pytest.mark.parametrize(
    ("opinion", "contradicts"),
    [
        (Opinion(2, "coder"), False),
        (Opinion(2, "Coder (thought)"), False),
        (Opinion(2, ""), False),
        (Opinion(0, "user"), False),
        (Opinion(4, ""), True),
        (Opinion(None, "coder"), False),
        (Opinion(2, "lead"), True),
        (Opinion(99, "coder"), True),
    ],
)
def test_an_answer_contradicts_itself_when_the_agent_does_not_speak_there(opinion, contradicts):
    """The cheapest sign of a guessed answer."""
    assert contradicts_itself(RUN, opinion) is contradicts


def test_overwhelming_evidence_is_certainty_and_no_overflow():
    """The result is a certainty, however large an exponent was fitted."""
    found = fuse(RUN, FLAT, [Opinion(2, "coder")], FusionWeights(step=1000.0))
    assert found == pytest.approx({1: 0, 2: 1, 3: 0})


def test_nothing_is_fused_from_nothing():
    assert fuse(RUN, {}, [Opinion(2, "coder")]) == {}
    assert fuse(RUN, FLAT, []) == pytest.approx(FLAT)


NAMES = {0: "user", 1: "lead", 2: "coder", 3: "lead"}


def fused(probabilities, opinions, weights):
    """Every opinion multiplies a step's odds by powers of e; in the end they add up to 1."""
    odds = {}
    for step, probability in probabilities.items():
        exponent = weights.local * math.log(max(probability, 1e-6))
        for opinion in opinions:
            name = opinion.agent.lower().removesuffix(" (thought)")
            named, own = opinion.step == step, name == NAMES[step]
            near = opinion.step in (step - 2, step - 1, step + 1, step + 2)
            speaker = NAMES.get(opinion.step)
            if opinion.step is None or (speaker is not None and name in ("", speaker)):
                exponent += weights.step * named + weights.neighbour * near + weights.agent * own
            else:
                exponent += weights.contradicted_step * named + weights.contradicted_agent * own
        odds[step] = math.exp(exponent)
    return {step: value / sum(odds.values()) for step, value in odds.items()}


OPINIONS = st.builds(
    Opinion,
    st.sampled_from([None, -1, 0, 1, 2, 3, 4, 99]),
    st.sampled_from(["", "lead", "coder", "Coder (thought)", "nobody"]),
)
EXPONENTS = st.builds(FusionWeights, *[st.floats(-2, 2)] * 6)


@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.lists(OPINIONS, max_size=4),
    st.one_of(st.none(), EXPONENTS),
)
@settings(deadline=None)
def test_the_formula(probabilities, opinions, weights):
    """With the weights that ship, and with any others."""
    given_ones = dict(enumerate(probabilities))
    expected = fused(given_ones, opinions, weights or FusionWeights())
    assert fuse(RUN, given_ones, opinions, weights) == pytest.approx(expected)


def test_recorded_answers_of_real_models_are_read_as_their_recorders_read_them():
    path = labelled_runs() / "recorded-judge" / "who-and-when-all-at-once.json"
    if not path.is_file():
        pytest.skip("no recorded answers in the folder with labelled runs")
    for record in json.loads(path.read_text(encoding="utf-8")):
        opinion = read_opinion(record["response"])
        assert (opinion.step if opinion else None) == record["pred_step"]
