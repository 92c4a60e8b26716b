"""Measures give the known values on scripted teams, and lie near their nulls where a team is none."""

from __future__ import annotations

import dataclasses
import tracemalloc
from functools import cache
from typing import TYPE_CHECKING

import pytest
import scripted_teams as teams
from scripted_teams import played

from mast_trace_judge.multi_agent.profile import Profile, measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_judge.multi_agent.measure import Measure


@cache
def profile(team: Callable[..., bool]) -> Profile:
    return measured(played(team))


def of(team: Callable[..., bool], code: str) -> Measure:
    (found,) = [each for each in profile(team).measures if each.question.code == code]
    return found


def test_every_measure_has_its_own_code_and_tells_what_it_leaves_open() -> None:
    questions = [each.question for each in profile(teams.relay).measures]
    assert len({each.code for each in questions}) == len(questions)
    assert all(each.asks and each.leaves_open and each.title for each in questions)


@pytest.mark.parametrize(
    ("team", "code", "value"),
    [
        (teams.relay, "uptake", 1.0),
        (teams.vote, "uptake", 0.0),
        (teams.hidden_profile, "uptake", 1.0),
        (teams.relay, "next_speaker", 0.0),
        (teams.rubber_stamp, "review_yield", 0.0),
        (teams.real_review, "review_yield", 1.0),
        (teams.rubber_stamp, "reviews_stop_failures", 0.0),
        (teams.real_review, "reviews_stop_failures", 1.0),
        (teams.vote, "centralisation", 1.0),
        (teams.relay, "centralisation", 0.0),
        (teams.routed, "reciprocity", 1.0),
        (teams.vote, "reciprocity", 0.0),
        (teams.in_turn, "concurrency", 0.0),
        (teams.relay, "protocol", 0.0),
        (teams.blackboard, "environment", 0.5),
    ],
)
def test_known_values(team: Callable[..., bool], code: str, value: float) -> None:
    found = of(team, code)
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert found.low - 1e-9 <= value <= found.high + 1e-9
    if found.question.unit == "share" and value in {0, 1}:
        assert 0.1 < found.high - found.low < 0.2  # 24 runs of one kind are not certain
    assert found.runs == teams.RUNS


def test_files_that_no_span_names_are_not_taken_for_none() -> None:
    found = of(teams.relay, "environment")
    assert found.value is None
    assert found.silent == "0 of at least 20 runs with spans that name a resource"


def test_monologues_take_up_less_than_chance() -> None:
    found = of(teams.monologues, "uptake")
    assert found.value == 0
    assert found.null is not None
    assert found.null > 0.5


def test_an_answer_put_together_has_several_sources() -> None:
    hidden, relayed = of(teams.hidden_profile, "provenance"), of(teams.relay, "provenance")
    assert hidden.value == pytest.approx(1 / 3, abs=0.01)
    assert hidden.detail == ("3.0 agents with at least a tenth, on average",)
    assert "three such words" in relayed.silent  # an answer of one number


def test_clones_have_names_and_no_roles() -> None:
    found = of(teams.clones, "roles")
    assert found.value is not None
    assert found.null is not None
    assert found.value == pytest.approx(found.null, abs=0.03)
    routed = of(teams.hidden_profile, "roles")
    assert routed.low is not None
    assert routed.null is not None
    assert routed.low > routed.null + 0.1


def test_a_router_at_random_leaves_the_next_speaker_open() -> None:
    found = of(teams.routed, "next_speaker")
    assert found.value == pytest.approx(
        1.58 / 2, abs=0.1
    )  # log2(3) after the router, 0 after others


def test_work_at_the_same_time_is_seen() -> None:
    found = of(teams.together, "concurrency")
    assert found.value is not None
    assert found.value > 0.5


def test_rubber_stamps_are_no_reviews_that_change_something() -> None:
    found = of(teams.rubber_stamp, "review_yield")
    assert found.detail == ("reviewers: reviewer",)


@pytest.mark.parametrize("runs", [0, 1, 19])
def test_few_runs_say_nothing(runs: int) -> None:
    found = measured(played(teams.relay)[:runs])
    assert all(each.value is None and each.low is None for each in found.measures)
    assert all(f"{each.runs} of at least 20 runs" in each.silent for each in found.measures)


def test_one_agent_alone_is_no_team() -> None:
    alone = [
        dataclasses.replace(
            run,
            trajectory=dataclasses.replace(
                run.trajectory,
                steps=tuple(dataclasses.replace(s, agent="a") for s in run.trajectory.steps),
                invocations=(),
            ),
        )
        for run in played(teams.relay)
    ]
    found = measured(alone)
    assert found.teams == 0
    told = {each.question.code for each in found.measures if each.value is not None}
    assert told <= {"protocol"}


def test_the_same_runs_give_the_same_profile() -> None:
    runs = played(teams.hidden_profile)
    assert measured(runs) == measured(runs)


def test_a_long_run_is_measured_in_memory_that_grows_with_its_length() -> None:
    """Thousands of messages, each with a new word that the next one repeats."""
    run = played(teams.relay, 1)[0]
    (message,) = run.said[:1]
    steps = tuple(
        dataclasses.replace(
            message,
            index=place,
            agent=("first", "second")[place % 2],
            text=" ".join(f"{number}" for number in range(10**6 + place, 10**6 + place + 40)),
        )
        for place in range(4000)
    )
    long = dataclasses.replace(run, trajectory=dataclasses.replace(run.trajectory, steps=steps))
    tracemalloc.start()
    found = measured([long])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.teams == 1
    assert peak < 150 * 2**20
