"""A step as a trained profile sees it, feature by feature."""

import math
import statistics

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution.features import FEATURES, features

CODE = "```python\ntotal = sum(red_apples)\n```"
RUN = (
    RunBuilder("Count the red apples.", outcome="failure")
    .asks()
    .says("lead", "First, let's plan: check 12 boxes, then verify.", to="coder")
    .says("coder", CODE, to="lead")
    .calls("terminal", "terminal", {}, error="NameError: name 'red_apples' is not defined")
    .says("lead", "Sorry, it failed: an error. Please repeat.", to="coder")
    .says("coder", "Therefore **19** red apples. The answer is 19.")
    .says("coder", "Therefore **19** red apples. The answer is 19!")
    .calls("coder", "lookup", {}, "7 of 8")
    .says("tester", f"Confirmed.\n{CODE}")
    .says("lead", "FINAL ANSWER: 19")
    .build()
)
ACTORS = [1, 2, 4, 5, 6, 7, 8, 9]


def column(name, run=RUN):
    """The values of a feature, step by step."""
    place = FEATURES.index(name)
    return [row[place] for row in features(run)[1]]


def logs(*values):
    return [math.log(value) for value in values]


WANTED = {
    "first_actor": [1, 0, 0, 0, 0, 0, 0, 0],
    "log_position": logs(1, 2, 3, 4, 5, 6, 7, 8),
    "last_actor": [0, 0, 0, 0, 0, 0, 0, 1],
    "first_turn": [1, 1, 0, 0, 0, 0, 1, 0],
    "log_turn": logs(1, 1, 2, 2, 3, 4, 1, 3),
    "after_tool": [0, 0, 1, 0, 0, 0, 1, 0],
    "before_tool": [0, 1, 0, 0, 1, 0, 0, 0],
    "tool_fails_next": [0, 1, 0, 0, 0, 0, 0, 0],
    "before_first_failure": [0, 1, 0, 0, 0, 0, 0, 0],
    "introduces_answer": [0, 0, 0, 1, 0, 0, 0, 0],
    "surviving_code": [0, 1, 0, 0, 0, 0, 0, 0],
    "first_code": [0, 1, 0, 0, 0, 0, 0, 0],
    "log_numbers": logs(2, 1, 1, 3, 3, 3, 1, 2),
    # Words of three letters or more that neither the task nor an earlier step holds:
    # first let's plan check boxes then verify; python total sum red_apples; sorry failed error
    # please repeat; therefore answer; -; -; confirmed; final
    "log_new_words": logs(8, 5, 6, 3, 1, 1, 2, 2),
    "conclusion_words": [0, 0, 0, 1, 1, 0, 0, 1 / 3],
    "verification_words": [2 / 3, 0, 0, 0, 0, 0, 1 / 3, 0],
    "trouble_words": [0, 0, 1, 0, 0, 0, 0, 0],
    "plan_words": [2 / 3, 0, 0, 0, 0, 0, 0, 0],
    "worker": [0, 1, 0, 1, 1, 1, 1, 0],
    # It peaks between the second and the third reply of a worker.
    "early_reply": [0, 1 / 2.5, 0, 2 / 2.5, 2.5 / 3, 2.5 / 4, 2.5 / 5, 0],
    "instructs": [1, 1, 1, 0, 0, 0, 0, 0],
    "repeats": [0, 0, 0, 0, 1, 0, 0, 0],
}


@pytest.mark.parametrize("name", WANTED)
def test_a_feature_step_by_step(name):
    assert features(RUN)[0] == ACTORS
    assert column(name) == pytest.approx(WANTED[name])


def test_lengths_are_compared_within_the_run():
    """In standard deviations from the mean of their logarithms."""
    lengths = [math.log1p(len(RUN.steps[index].text)) for index in ACTORS]
    mean, spread = statistics.fmean(lengths), statistics.pstdev(lengths)
    assert column("relative_length") == pytest.approx([(each - mean) / spread for each in lengths])
    same = RunBuilder().says("a", "Yes.").says("b", "Nay!").build()
    assert column("relative_length", same) == [0, 0]
    assert column("relative_length", RunBuilder().says("a", "Yes.").build()) == [0]


def test_all_features_are_known_here():
    """A new one needs its line above."""
    assert {*WANTED, "relative_length"} == set(FEATURES)


@pytest.mark.parametrize(
    ("name", "word", "first", "last"),
    [
        ("conclusion_words", "Thus it is", -3000, -1),
        ("verification_words", "verify", 0, 6000),
        ("trouble_words", "sorry", 0, 6000),
        ("plan_words", "we need to", 0, 3000),
        ("log_numbers", "12", 0, 6000),
        ("log_new_words", "apple", 0, 6000),
    ],
)
def test_so_much_of_a_long_text_is_read(name, word, first, last):
    text, inside = "- " * 10_000, f" {word} "
    edge = last if first == 0 else len(text) + first
    reaches = {}
    for place in (edge - len(inside) - 20, edge + 20):
        long = text[:place] + inside + text[place + len(inside) :]
        reaches[place < edge] = column(name, RunBuilder().says("a", long).build())[0] > 0
    assert reaches == {True: first == 0, False: first != 0}


def test_tools_at_both_ends_of_a_run():
    """The first step has none before it, the last one none behind it."""
    begins = RunBuilder().calls("terminal", "terminal", {}, "7").says("a", "So 7.").build()
    assert column("after_tool", begins) == [1]
    ends = RunBuilder().says("a", "Run it.").calls("terminal", "terminal", {}, "7").build()
    assert (column("after_tool", ends), column("before_tool", ends)) == ([0], [1])


def test_who_is_a_worker_depends_on_who_gives_most_instructions():
    """Without addressed messages there are no workers."""
    run = RunBuilder().says("a", "Go.", to="b").says("b", "Yes.", to="a").says("b", "No.", to="a")
    assert column("worker", run.build()) == [1, 0, 0]
    alone = RunBuilder().says("a", "Go.").says("b", "Yes.").build()
    assert column("worker", alone) == [0, 0]
    assert column("early_reply", alone) == [0, 0]


def test_a_run_in_which_nobody_acts_has_no_features():
    assert features(RunBuilder().asks().build()) == ([], [])
