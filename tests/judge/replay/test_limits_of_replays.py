"""The limits of a replay at their values: calls, dollars, replays, characters, and what makes replays incomparable."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from judge.replay.simulated import RECORDED

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.messages import Message
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.llm.budget import Price
from mast_trace_lab.confirm.preparation import NotConfirmable, check
from mast_trace_lab.program.budget import (
    Account,
    Budget,
    CallCost,
    Exhausted,
    ReplayAllowance,
    ReplayTrial,
    call_cost,
    check_limits,
    most_calls,
)
from mast_trace_lab.program.conducting import Conducting, not_isolated
from mast_trace_lab.program.setup import Setup, task_environment
from mast_trace_lab.replay.arm_runner import executing

if TYPE_CHECKING:
    from pathlib import Path

COST = CallCost(mean=0.125, most=0.25)
"""Dollars that binary fractions hold exactly."""
KEEP = ReplayTrial(ReplayArm("keep", 3), "screening", calls=2)
"""A replay that is expected to make two calls, and is ended after ten."""
FREE = ReplayTrial(ReplayArm("verify"), "verify")
SCORE = ReplayTrial(ReplayArm("score"), "score")


def ended(calls: int, cost_usd: float | None, phase: str = "screening") -> ArmResult:
    return ArmResult(
        ReplayArm("keep", 3), "ok", True, phase=phase, live_calls=calls, cost_usd=cost_usd
    )


@pytest.mark.parametrize("unit", ["calls", "dollars", "dollars at most"])
@pytest.mark.parametrize(
    ("done", "running"),
    [((), ()), ((4,), ()), ((), (4,)), ((), (3, 1)), ((3,), (1,)), ((1, 2), (1,))],
)
def test_a_replay_may_take_what_ended_and_running_ones_leave(
    unit: str, done: tuple[int, ...], running: tuple[int, ...]
) -> None:
    """Less than it is expected to take is refused, and more than the calls after which it is ended is not given."""
    used = sum(done) + sum(running)
    reserved = [ReplayAllowance(calls, calls * COST.most) for calls in running]
    known = {"calls": 0.0, "dollars at most": None}
    for left, given in ((1, None), (2, 2), (9, 9), (10, 10), (11, 10)):
        most = used + left
        budget = Budget(most) if unit == "calls" else Budget(None, most * COST.most)
        account = Account(budget, COST)
        account.add(
            [ended(9, calls * COST.most) for calls in done]
            if unit == "dollars"
            else [ended(calls, known[unit]) for calls in done]
        )
        if given is None:
            with pytest.raises(Exhausted) as refusal:
                account.allow(KEEP, reserved)
            assert not refusal.value.of_day
        else:
            assert account.allow(KEEP, reserved) == ReplayAllowance(given, given * COST.most)


@pytest.mark.parametrize(("done", "running"), [(3, 0), (0, 3), (2, 1)])
def test_as_many_replays_run_as_are_allowed(done: int, running: int) -> None:
    """Running ones count, questions to the oracle do not, and those are asked whatever was used."""
    for most in (3, 4):
        account = Account(Budget(most, 0.0, most), None)
        account.add([*[ended(0, 0.0)] * done, *[ended(0, 0.0, "score")] * 5])
        beside = [ReplayAllowance(0, None)] * running
        assert account.allow(SCORE, beside) == ReplayAllowance(0, 0.0)
        if most == 3:
            with pytest.raises(Exhausted):
                account.allow(FREE, beside)
        else:
            assert account.allow(FREE, beside) == ReplayAllowance(0, None)
            assert account.allow(KEEP, beside) == ReplayAllowance(
                4, None
            )  # no price limits no dollars


def test_a_replay_that_asks_no_model_needs_no_dollars() -> None:
    account = Account(Budget(0, 0.0), COST)
    assert account.allow(FREE) == ReplayAllowance(0, 0.0)
    account = Account(Budget(None, 0.5), COST)
    account.add([ended(2, None), ended(4, 0.5)])
    assert (account.runs, account.calls, account.cost_usd) == (2, 6, 1.0)
    assert account.allow(FREE) == ReplayAllowance(0, 0.0)


@pytest.mark.parametrize(
    ("calls", "longest", "most"), [(0, 0, 0), (0, 5, 0), (2, 0, 10), (2, 5, 16), (5, 2, 16)]
)
def test_a_replay_ends_at_twice_the_way_and_six_calls(calls: int, longest: int, most: int) -> None:
    assert (
        most_calls(ReplayTrial(ReplayArm("start"), "start", calls=calls, longest=longest)) == most
    )


SMALL, BIG = Price(input=1.0, output=10.0), Price(input=2.0, output=5.0)


def test_the_cost_of_a_call_is_that_of_the_dearest_model() -> None:
    """In advance four mean calls and 2,000 tokens more are assumed, and a stronger model counts before it was asked."""
    calls = tuple(
        replace(each, model=name)
        for each, name in zip(RECORDED.invocations, ["small", "big"] * 3, strict=True)
    )
    tool = replace(calls[0], kind="agent", model="other")
    run = replace(RECORDED, invocations=(*calls, tool), input_tokens=6000, output_tokens=600)
    prices = {"small": SMALL, "big": BIG}
    found = call_cost(run, prices)
    assert found is not None
    assert found.mean == pytest.approx((1000 * 2 + 100 * 5) / 1e6)
    assert found.most == pytest.approx((6000 * 1 + 2400 * 10) / 1e6)
    dearer = call_cost(run, {**prices, "stronger": Price(input=9.0, output=50.0)})
    assert dearer is not None
    assert (dearer.mean, dearer.most) == (found.mean, pytest.approx((6000 * 9 + 2400 * 50) / 1e6))
    assert call_cost(run, {"small": SMALL, "other": BIG}) is None
    assert call_cost(replace(run, invocations=()), prices) is None


def test_a_replay_that_starts_no_program_resets_nothing(tmp_path: Path) -> None:
    """A recorded answer is judged again as it is; any other replay begins with a reset."""
    mark = tmp_path / "mark"
    setup = Setup(("false",), reset=("touch", str(mark)), oracle=("true",))
    execute = executing(RECORDED, setup)
    assert execute(SCORE, ReplayAllowance(5, None)).success is True
    assert not mark.exists()
    with contextlib.suppress(MastTraceError):
        execute(FREE, ReplayAllowance(5, None))
    assert mark.exists()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("reset", [(), ("true",)])
@pytest.mark.parametrize("dollars", ["", "budget", "day"])
@pytest.mark.parametrize("priced", [False, True])
def test_limits_that_cannot_be_held_are_refused(
    jobs: int, reset: tuple[str, ...], dollars: str, *, priced: bool
) -> None:
    """Replays at the same time share what a reset restores; dollars need the price of each recorded model."""
    prices = {"m": SMALL} if priced else {"n": SMALL}
    setup = Setup(("program",), reset=reset, prices=prices)
    budget = Budget(max_cost_usd=0.0 if dollars == "budget" else None)

    def check() -> CallCost | None:
        return check_limits(RECORDED, setup, budget, jobs=jobs, capped=dollars == "day")

    if (jobs > 1 and reset) or (dollars and not priced):
        with pytest.raises(ConfigurationError):
            check()
    else:
        assert (check() is not None) == priced


@pytest.mark.parametrize(
    ("models", "fix", "live_tools", "reset", "comparable"),
    [
        ((), "", 0, False, True),
        (("m",), "", 0, False, True),
        (("m", "n"), "", 0, False, False),
        (("n",), "", 0, True, False),
        (("big-2026",), "big", 0, False, True),
        (("m", "n"), "big", 0, False, False),
        (("m",), "", 1, False, False),
        (("m",), "", 2, True, True),
    ],
)
def test_replays_by_another_model_or_in_another_state_are_not_comparable(
    models: tuple[str, ...], fix: str, live_tools: int, reset: bool, comparable: bool
) -> None:
    """The model of a fix is no other one, whatever date its provider appends; nor is one known without a record."""
    arm = (
        ReplayArm("model", 3, Fix("stronger model", model=fix)) if fix else ReplayArm("resample", 3)
    )
    result = ArmResult(arm, "ok", True, models=models, live_tools=live_tools)
    setup = Setup(("program",), reset=("true",) if reset else ())
    assert (not_isolated(RECORDED, result, setup) == "") == comparable
    nameless = replace(RECORDED, invocations=())
    assert (not_isolated(nameless, result, setup) == "") == (comparable or not live_tools)


def conducting_by(execute: Any) -> Conducting[Any]:
    asking = SimpleNamespace(tell=lambda _result: None, waiting=lambda: [KEEP])
    plan, setup = SimpleNamespace(trace_id="t"), Setup(("program",))
    given: Any = (None, plan, asking, RECORDED, setup, execute)
    return Conducting(*given, Budget())


def test_the_end_of_a_program_that_was_killed_with_us_is_no_result() -> None:
    """It would be stored for ever as what the program does."""

    def killed(*_: object) -> ArmResult:
        conducting._interrupted.set()
        return ended(2, None)

    conducting = conducting_by(killed)
    with pytest.raises(KeyboardInterrupt):
        conducting._one(0, KEEP, ReplayAllowance(2, None), None)


@pytest.mark.parametrize("order", [1, -1])
def test_one_of_several_replays_in_another_state_ends_the_experiment(order: int) -> None:
    """It may be any of those that ran together."""
    conducting = conducting_by(None)
    assert [*conducting._next()] == [KEEP]
    for tools in (0, 1)[::order]:
        conducting._tell(replace(ended(2, None), live_tools=tools))
    assert [*conducting._next()] == []


FULL: dict[str, Any] = {
    "command": ["other"],
    "oracle": ["check"],
    "reset": ["reset"],
    "live_tools": ["book"],
    "fixes": {3: "x"},
    "plain": ["add"],
    "results": {3: "x"},
    "resample": False,
    "stronger_model": "big",
}
PROGRAM = {"command", "oracle", "reset", "live_tools", "plain"}
"""Choices on which the evidence for a fix depends."""


def test_an_experiment_goes_on_only_with_the_same_replays() -> None:
    """Each choice that changes replays is part of the plan; limits and forks are not."""
    plain = Setup(("program",))
    for name, value in FULL.items():
        other = replace(plain, **{name: value})
        assert other.to_plain() != plain.to_plain(), name
        assert (other.program != plain.program) == (name in PROGRAM), name
    for same in ({"timeout": 9.0}, {"check_timeout": 9.0}, {"environment": {"A": "b"}}):
        assert replace(plain, **same).to_plain() == plain.to_plain()
    both = [replace(plain, live_tools=names) for names in (("a", "b"), ("b", "a"))]
    assert both[0].to_plain() == both[1].to_plain()


@pytest.mark.parametrize(
    ("live_tools", "reset", "outside"),
    [((), (), False), (("book",), (), True), (("*",), (), True), (("*",), ("reset",), False)],
)
def test_executed_tools_need_a_reset(
    live_tools: tuple[str, ...], reset: tuple[str, ...], outside: bool
) -> None:
    assert bool(Setup(("p",), live_tools=live_tools, reset=reset).outside_state) == outside


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("x" * 100_000, True),
        ("x" * 100_001, False),
        ("\u00e4" * 50_001, False),
        ("a\0b", False),
        ("", True),
    ],
)
def test_a_task_is_handed_over_where_a_variable_can_hold_it(task: str, told: bool) -> None:
    assert task_environment(task) == ({"MAST_TRACE_REPLAY_TASK": task} if told else {})


@pytest.mark.parametrize("continued", [False, True])
def test_a_replay_gets_the_task_of_the_run_it_begins(continued: bool) -> None:
    """A variable of one's own comes before that of the task."""
    first = replace(RECORDED, task="the first")
    setup = Setup(("program",), environment={"A": "b"}, earlier=(first,) if continued else ())
    task = "the first" if continued else "the task"
    told = {"MAST_TRACE_REPLAY_TASK": task, "A": "b"}
    assert setup.with_task("the task") == replace(setup, environment=told)
    own = replace(setup, environment={"MAST_TRACE_REPLAY_TASK": "own"})
    assert own.with_task("t") == own


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (Budget(), Budget()),
        (Budget(5, 0.75, 9), Budget(2, 0.25, 9)),
        (Budget(2, 0.25), Budget(0, 0.0)),
    ],
)
def test_what_is_left_of_a_budget_is_never_below_nothing(given: Budget, left: Budget) -> None:
    assert given.without(3, 0.5) == left


@pytest.mark.parametrize("oracle", [(), ("judge",)])
@pytest.mark.parametrize(
    ("outcome", "told"),
    [("failure", ""), ("success", "succeeded"), ("", "has no outcome")],
)
def test_only_an_oracle_makes_a_run_that_has_not_failed_confirmable(
    outcome: str, told: str, oracle: tuple[str, ...]
) -> None:
    step = Step(0, StepKind.MESSAGE, "a", "7", span_id="s")
    call = Invocation("model", "a", "s", "", 0, 1, ("m0",), ("user",), model="m", output_id="m1")
    texts = {"m0": Message("3 + 4?", "user"), "m1": Message("7")}
    run = Trajectory("t", (step,), (call,), texts, outcome=outcome)
    setup = Setup(("program",), oracle)
    refused = told and not oracle
    with pytest.raises(NotConfirmable, match=told) if refused else contextlib.nullcontext():
        assert [point.step for point in check(run, setup)] == [0]
