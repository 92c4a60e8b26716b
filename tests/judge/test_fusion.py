"""Reading models' answers and joining them with the local distribution."""

import json
from collections import defaultdict

import pytest
from bench import attributed_runs
from hypothesis import given
from hypothesis import strategies as st
from judge.builders import RunBuilder
from judge.data import labelled_runs
from published.opinions import Opinion, join, paired_rows, read_opinion, recorded_answers

from mast_trace_judge.study.bench.methods import HeldOut, held_out
from mast_trace_judge.study.labelled import LabelledRun
from mast_trace_judge.study.training import REPEATS

RUN = RunBuilder().asks().says("lead", "Go.").says("coder", "Done.").says("lead", "4").build()


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
    ("opinion", "steps"),
    [
        (None, [3, 1, 2]),
        (Opinion(None, "coder"), [3, 1, 2]),
        (Opinion(2, "lead"), [2, 3, 1]),
        (Opinion(2, "", (2, 1)), [2, 1, 3]),
        (Opinion(0, "", (99,)), [3, 1, 2]),
    ],
)
def test_an_answer_is_joined_as_a_reading_is(opinion, steps):
    run = LabelledRun("s", "n", RUN, "g", 2, "coder")
    found = join(run, {1: 0.3, 2: 0.2, 3: 0.5}, opinion)
    assert sorted(found, key=found.get, reverse=True) == steps


def test_first_places_are_compared_run_by_run():
    """One partition of two runs: the joined place gives the first run and takes the second."""
    runs = [LabelledRun("s", str(n), RUN, "g", step, "coder") for n, step in enumerate((2, 3))]
    folds = [HeldOut({0: {1: 0.4, 2: 0.3, 3: 0.3}, 1: {2: 0.3, 3: 0.4}}, {})]
    said = {"m": {("s", "0"): Opinion(2), ("s", "1"): Opinion(2), ("s", "9"): Opinion(1)}}
    _, steps, agents = paired_rows(runs, said, folds)
    assert steps == ["m", "2", "steps", "1.0", "1.0", "1.0", "+1.0 -1.0", "+0.0 -0.0"]
    assert agents == ["m", "2", "agents", "0.0", "2.0", "2.0", "+2.0 -0.0", "+0.0 -0.0"]


def test_recorded_answers_of_real_models_are_read_as_their_recorders_read_them():
    path = labelled_runs() / "recorded-judge" / "who-and-when-all-at-once.json"
    if not path.is_file():
        pytest.skip("no recorded answers in the folder with labelled runs")
    for record in json.loads(path.read_text(encoding="utf-8")):
        opinion = read_opinion(record["response"])
        assert (opinion.step if opinion else None) == record["pred_step"]


@pytest.mark.long
@pytest.mark.parametrize("hand_crafted", ["hand-crafted", "agentrx"], ids=["first", "second"])
def test_joining_takes_no_more_right_places_than_it_gives(hand_crafted):
    """Over all recorded answers, for each model, steps and agents, by either team of labels."""
    data = labelled_runs()
    parts = attributed_runs(data)
    given_and_taken = defaultdict(lambda: [0.0, 0.0])
    for subset in ("algorithm-generated", hand_crafted):
        folds = held_out(parts[subset], REPEATS)
        for model, _, kind, *_, against in paired_rows(
            parts[subset], recorded_answers(data), folds
        )[1:]:
            for place, change in enumerate(against.split(" -")):
                given_and_taken[model, kind][place] += float(change)
    assert len(given_and_taken) == 6
    for who, (more, fewer) in given_and_taken.items():
        assert more >= fewer, who
