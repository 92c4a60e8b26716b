"""Measures give the known values on scripted teams, and lie near their nulls where a team is none."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import scripted_teams as teams
from scripted_teams import played

from mast_trace import semconv
from mast_trace.trajectory import Invocation, SpanRecord, Step, StepKind, Trajectory
from mast_trace_judge.intervals import newcombe
from mast_trace_judge.multi_agent.exchange import hand_offs
from mast_trace_judge.multi_agent.measure import TeamRun, team_run
from mast_trace_judge.multi_agent.profile import TeamProfile, measured, presence
from mast_trace_judge.multi_agent.structure import structure, talk, working
from mast_trace_lab.teams.profile import gap, side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_judge.multi_agent.measure import Measure
    from mast_trace_lab.teams.profile import VariantRuns


@cache
def profile(team: Callable[..., bool]) -> TeamProfile:
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
        (teams.looked_up, "uptake", 0.0),
        (teams.confirmed, "uptake", 1.0),
        (teams.asked, "uptake", 1.0),
        (teams.corrected, "review_yield", 0.5),
        (teams.confirmed, "echo", 0.0),
        (teams.parrots, "echo", 1.0),
        (teams.hidden_profile, "uptake", 1.0),
        (teams.relay, "next_speaker", 0.0),
        (teams.handed_over, "next_speaker", 0.0),
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


def test_words_of_the_task_are_not_new() -> None:
    runs = []
    for run in played(teams.relay):
        task = " ".join(step.text for step in run.said)
        told = dataclasses.replace(run.trajectory, task=task)
        runs.append(dataclasses.replace(run, trajectory=told))
    uptake = next(each for each in measured(runs).measures if each.question.code == "uptake")
    assert (uptake.value, uptake.runs) == (None, 0)


def test_a_message_that_was_shown_with_words_around_it_was_shown() -> None:
    assert any("100% of it by agents" in each for each in of(teams.passed_on, "uptake").detail)


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
    assert of(teams.handed_over, "roles").value == pytest.approx(0, abs=1e-9)
    # Each has a tool of its own and one that both have; an action is the tool, not that it is one.
    told = "two agents share 33% of their tools on average (Jaccard)"
    assert told in of(teams.looked_up, "roles").detail
    # A third of a bit of log2(3) and that third.
    assert of(teams.looked_up, "roles").value == pytest.approx(1 / 3 / (math.log2(3) + 1 / 3))
    routed = of(teams.hidden_profile, "roles")
    assert routed.low is not None
    assert routed.null is not None
    assert routed.low > routed.null + 0.1


def test_a_router_at_random_leaves_the_next_speaker_open() -> None:
    found = of(teams.routed, "next_speaker")
    assert found.value == pytest.approx(
        1.58 / 2, abs=0.1
    )  # log2(3) after the router, 0 after others


def test_nobody_is_ones_own_next_speaker() -> None:
    """Two agents alternate in any order, once each stretch of one agent counts as one turn."""
    assert of(teams.monologues, "next_speaker").null == 0


def made(*steps: Step, calls: Sequence[Invocation] = (), task: str = "", **told: Any) -> TeamRun:
    return TeamRun(Trajectory("0" * 32, steps, calls, task=task), **told)


def message(index: int, agent: str, text: str) -> Step:
    return Step(index, StepKind.MESSAGE, agent, text, role="assistant")


def test_stretches_of_work_are_merged_and_tools_around_another_agent_left_out() -> None:
    """Calls that touch or lie in each other are one stretch; a tool around its own agent's call is its work."""
    times = {"a": ((0, 10), (2, 5), (10, 12), (20, 21)), "b": ((32, 35),)}
    calls = [Invocation("model", who, "", "", *each) for who in times for each in times[who]]
    around = Step(0, StepKind.TOOL, "a", "", start=19, end=25, tool="own")
    other = Step(1, StepKind.TOOL, "a", "", start=30, end=40, tool="ask_b")
    found = working(made(around, other, calls=calls))
    assert found == {"a": [(0, 12), (19, 25)], "b": [(32, 35)]}


@pytest.mark.parametrize(("new", "echoes"), [("", 1), ("zebra", 0)])
def test_a_tenth_of_new_words_is_no_echo(new: str, echoes: int) -> None:
    words = "alpha beta gamma delta epsilon zeta theta iota kappa"
    run = made(message(0, "a", words), message(1, "b", f"{words} {new}"))
    (echo,) = (each for each in talk([run] * 20) if each.question.code == "echo")
    assert echo.value == echoes


def test_requests_of_a_protocol_count_as_acts() -> None:
    run = made(message(0, "a", "x"), messages=3, requests=1)
    (found,) = (each for each in structure([run] * 20) if each.question.code == "protocol")
    assert found.value == 0.25


def test_hand_offs_by_a_model_are_chosen() -> None:
    run = made(message(0, "a", "x"), message(1, "b", "y"), chosen_by={"model": 1, "code": 3})
    (chosen,) = (each for each in hand_offs([run] * 20) if each.question.code == "chosen_by_agents")
    assert chosen.value == 0.25
    assert chosen.detail == ("code: 60", "model: 20")


@pytest.mark.parametrize(
    ("accesses", "shared"),
    [
        ("a:write b:read", 1),
        ("a:write b:write c:read", 2),
        ("a:write a:read b:read", 1),
        ("a:write b:read b:read", 1),
        ("a:read b:write", 0),
    ],
)
def test_a_write_that_another_agent_reads_counts_once(accesses: str, shared: int) -> None:
    """Each of several writers counts; their own reading does not, nor what was read before. Spans come in any order."""
    spans = []
    for at, (agent, access) in enumerate((each.split(":") for each in accesses.split()), 1):
        told = {
            semconv.RESOURCE_ID: "x",
            semconv.RESOURCE_ACCESS: access,
            semconv.AGENT_NAME: agent,
        }
        spans.append(SpanRecord("t", str(at), "", "tool", at, at + 1, told))
    assert (team_run(spans).shared, team_run(spans[::-1]).shared) == (shared, shared)


def test_who_addresses_itself_addresses_nobody() -> None:
    def to(index: int, *others: str) -> Step:
        return dataclasses.replace(message(index, "ab"[index], "x"), recipients=others)

    assert made(to(0, "a", "b", "user"), to(1, "a")).edges == {("a", "b"): 1, ("b", "a"): 1}


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


def ended(successes: int, failures: int, *, tokens: int = 0, unknown: int = 0) -> list[TeamRun]:
    """Runs of the relay with these outcomes, each with so many tokens read and as many written."""
    (run,) = played(teams.relay, 1)
    return [
        dataclasses.replace(
            run,
            trajectory=dataclasses.replace(run.trajectory, outcome=outcome),
            read=tokens,
            written=tokens,
        )
        for outcome, count in (("success", successes), ("failure", failures), ("", unknown))
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("team", "other", "numbers"),
    [
        (
            side("t", ended(15, 5, tokens=30)),
            side("o", ended(10, 30, tokens=10)),
            (0.5, 2.0, 1 / 3),
        ),
        (side("t", ended(5, 15, tokens=5)), side("o", ended(15, 5, tokens=10)), (-0.5, -0.5, 3.0)),
        (side("t", ended(20, 20)), side("o", ended(20, 0, tokens=10)), (-0.5, None, None)),
        (side("t", ended(20, 0, tokens=10)), side("o", ended(10, 10)), (0.5, None, 0.0)),
        (side("t", ended(19, 0)), side("o", ended(10, 10)), None),
        (side("t", ended(10, 10)), side("o", ended(19, 0, unknown=1)), None),
    ],
)
def test_a_gap_is_of_both_sides(
    team: VariantRuns, other: VariantRuns, numbers: tuple[float, float | None, float | None] | None
) -> None:
    """Difference, more tokens and more failures; nothing of fewer than twenty known runs of a side."""
    found = gap(team, other)
    assert (found.team, found.other) == (team, other)
    assert (found.difference, found.overhead, found.amplification) == pytest.approx(
        numbers or (None, None, None)
    )
    interval = newcombe((team.successes, team.runs), (other.successes, other.runs))
    assert (found.low, found.high) == (interval if numbers else (None, None))


def test_a_side_counts_known_outcomes_and_counted_tokens() -> None:
    found = side("t", ended(2, 1, tokens=4, unknown=2) + ended(0, 1))
    assert (found.runs, found.successes, found.missing, found.tokens) == (4, 2, 2, 8.0)


@pytest.mark.parametrize(
    ("told", "counted"), [(7, 7), ("7", 7), (0, 0), (None, 0), (-7, 0), ("many", 0), ([7], 0)]
)
def test_tokens_that_nobody_told_are_none(told: Any, counted: int) -> None:
    """Each call counts alone; a run of such calls alone has no tokens that a gap could compare."""
    tokens = dict.fromkeys((semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS), told)
    run = team_run(
        SpanRecord("t", str(at), "", "call", at, at + 1, {semconv.OPERATION_NAME: "chat", **tokens})
        for at in range(1, 4)
    )
    assert (run.read, run.written, run.spoken) == (3 * counted, 3 * counted, 2 * counted)


@pytest.mark.parametrize(("acted", "idle", "told"), [(5, 5, True), (4, 9, False), (9, 4, False)])
def test_presence_compares_runs_with_and_without_it(acted: int, idle: int, told: bool) -> None:
    """From five known outcomes of each kind on; agents of all runs are left out."""
    (other,) = played(teams.vote, 1)
    only = set(other.agents) - set(played(teams.relay, 1)[0].agents)
    failed = dataclasses.replace(other.trajectory, outcome="failure")
    runs = ended(idle - 1, 1, unknown=9) + [dataclasses.replace(other, trajectory=failed)] * acted
    found = {each.agent: each for each in presence(runs)}
    assert only
    assert only <= found.keys() if told else not found
    for agent in only & found.keys():
        assert (found[agent].with_it, found[agent].without) == ((0, acted), (idle - 1, idle))
        assert (found[agent].low, found[agent].high) == newcombe((0, acted), (idle - 1, idle))


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
