"""Features of hand-overs, tool runs and their results."""

import sys

import pytest
from judge.builders import RunBuilder
from planted_runs import CHECKED, HANDED, LISTED, TOLD, planted

from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.cascade import answerable
from mast_trace_judge.local.attribution.features import FEATURES
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.local.attribution.recorded import (
    ALL_FEATURES,
    RECORDED,
    all_features,
    decisions,
    recorded_features,
)


def seen(run, step):
    """The features of a step that are not 0."""
    actors, rows = all_features(run)
    named = dict(zip(ALL_FEATURES, rows[actors.index(step)], strict=True))
    return {name: value for name, value in named.items() if name in RECORDED and value}


def test_a_hand_over_may_be_decisive_for_a_profile_of_recorded_runs():
    """The untrained cascade leaves it out: it names acts alone."""
    run = planted("2.6-number", 1).trajectory
    assert HANDED not in answerable(run.steps)
    assert HANDED in decisions(run.steps)
    assert set(answerable(run.steps)) < set(decisions(run.steps))
    profile = Profile("own", {"hand_over": 5.0, "receiver_again": -9.0}, frameworks=("mine",))
    assert attribute(run, (), [profile]).candidates[0].step == HANDED
    assert attribute(run, (), [profile]).candidates[0].rule == "a hand-over"
    plain = Profile("own", {"first_actor": 5.0}, frameworks=("mine",))
    assert HANDED not in plain.distribution(run)[0]


@pytest.mark.parametrize(
    ("operator", "step", "names"),
    [
        ("tool-error", LISTED, {"tool_run", "tool_failed", "unused_result"}),
        ("tool-empty", LISTED, {"tool_run", "empty_result"}),
        ("2.6-number", TOLD, {"unseen_figures", "dropped_figures"}),
        ("2.4-withhold", TOLD, {"dropped_figures"}),
        ("3.2-unchecked", CHECKED, {"turn_without_tool", "check_without_tool"}),
    ],
)
def test_a_planted_fault_is_seen_at_its_step(operator, step, names):
    found = set(seen(planted(operator, 3).trajectory, step))
    assert names - {"unused_result"} <= found


def test_results_that_come_again_or_contradict_each_other():
    run = RunBuilder("Read the pages.").asks()
    run.calls("clerk", "read", {"page": 1}, "12.50")
    run.calls("clerk", "read", {"page": 2}, "12.50")
    run.calls("clerk", "read", {"page": 1}, "99.00")
    run.says("clerk", "It is 99.00.", to="lead")
    built = run.build()
    assert "stale_result" not in seen(built, 1)
    assert seen(built, 2)["stale_result"] == 1.0
    assert seen(built, 3)["call_again"] == 1.0
    assert {"contradicted_result"} <= set(seen(built, 1)) & set(seen(built, 3))
    assert "contradicted_result" not in seen(built, 2)


def test_a_hand_over_whose_receiver_runs_no_tool():
    run = RunBuilder("Ship a parcel to Lisbon.").asks().hands_over("desk", "poet")
    run.says("poet", "A parcel flies over the sea.", to="desk").hands_over("desk", "shipper")
    run.calls("shipper", "ship", {"parcel": 1, "to": "Lisbon"}, "Lisbon parcel shipped")
    run.says("shipper", "The parcel to Lisbon is shipped.", to="desk").hands_over("desk", "poet")
    built = run.build()
    assert seen(built, 1)["receiver_idle"] == 1.0
    assert "receiver_idle" not in seen(built, 3)
    assert seen(built, 6)["receiver_again"] == 1.0


def test_less_is_shown_to_the_model_than_before():
    run = RunBuilder("Add up.").asks().says("clerk", "One.").says("clerk", "Two.")
    run.shown("clerk", 0, 1, output=1).shown("clerk", 0, output=2)
    assert seen(run.build(), 2)["shown_less"] == 0.5


def test_transcripts_have_none_of_them_but_words_and_figures():
    run = RunBuilder("Find out.", spans=False).asks().says("one", "None").build()
    assert set(seen(run, 1)) <= {"turn_without_tool"}


def test_rows_and_names_agree():
    run = planted("2.6-number", 1).trajectory
    actors, rows = all_features(run)
    assert {len(row) for row in rows} == {len(FEATURES) + len(RECORDED)}
    assert len(recorded_features(run, actors)) == len(actors)


def test_ten_times_the_steps_are_not_a_hundred_times_the_work():
    """Work is lines run: seconds tell of the machine, too."""

    def lines(steps):
        run = RunBuilder("Count.").asks()
        for number in range(steps):
            run.calls("clerk", "count", {"n": number}, f"{number} and {number + 1}")
            run.says("clerk", f"That makes {3 * number}.", to="lead").hands_over("clerk", "lead")
        built, ran, before = run.build(), 0, sys.gettrace()

        def count(*_):
            nonlocal ran
            ran += 1
            return count

        sys.settrace(count)
        all_features(built)
        sys.settrace(before)
        return ran

    lines(20)
    assert lines(300) < 40 * lines(30)
