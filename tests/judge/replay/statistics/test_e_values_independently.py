"""E-values, thresholds and intervals, computed again from their definitions in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter, sqrt

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.confirmation import Confirmation, Contrast
from mast_trace_judge.decision_points import DecisionPoint
from mast_trace_judge.intervals import newcombe, wilson
from mast_trace_lab.confirm.statistics.comparison import Bet, Comparison
from mast_trace_lab.confirm.statistics.plan import ExperimentLimits, Plan

KEEP = {"0.01": "0.5", "0.1": "0.25", "0.25": "0.15", "0.45": "0.1"}
# As a difference of floats, 0.3 less 0.1 is below 0.2.
PAIRS_OF_RATES = [
    (Fraction(keep), Fraction(fix), Fraction(weight))
    for keep, weight in KEEP.items()
    for fix in ("0.3", "0.5", "0.7", "0.85", "0.97")
    if Fraction(fix) - Fraction(keep) > Fraction("0.2")
]
PAIR = st.tuples(st.booleans(), st.booleans())


def e_value(pairs: list[tuple[bool, bool]]) -> Fraction:
    """The mean over alternatives of the likelihood of all pairs by that of equal rates half way between."""

    def likelihood(fix_rate: Fraction, keep_rate: Fraction) -> Fraction:
        found = Fraction(1)
        for fix, keep in pairs:
            found *= fix_rate if fix else 1 - fix_rate
            found *= keep_rate if keep else 1 - keep_rate
        return found

    whole = sum(weight for _, _, weight in PAIRS_OF_RATES)
    total = Fraction(0)
    for keep, fix, weight in PAIRS_OF_RATES:
        middle = (keep + fix) / 2
        total += weight / whole * likelihood(fix, keep) / likelihood(middle, middle)
    return total


@settings(max_examples=60, deadline=None)
@given(earlier=st.lists(PAIR, max_size=8), later=st.lists(PAIR, max_size=25))
@example([], [])
@example([], [(True, False)] * 20)
@example([(False, True)] * 8, [(False, True)] * 25)
def test_e_values_are_those_of_the_definition(
    earlier: list[tuple[bool, bool]], later: list[tuple[bool, bool]]
) -> None:
    bet = Bet(float(e_value(earlier)))
    for fix, keep in later:
        bet.add(fix=fix, keep=keep)
    assert bet.e_value == pytest.approx(float(e_value(earlier) * e_value(later)), rel=1e-9)


OUTCOME = st.sampled_from([True, False, None])


def result(arm: ReplayArm, success: bool | None, answer: str) -> ArmResult:
    return ArmResult(arm=arm, status="ok", success=success, answer=answer, calls_hash="c")


@settings(max_examples=80, deadline=None)
@given(told=st.lists(st.tuples(OUTCOME, OUTCOME), min_size=1, max_size=14), most=st.integers(8, 14))
@example([(True, False)] * 5 + [(False, False)] * 5, 14)
@example([(True, False)] * 2 + [(False, False)] * 8, 14)  # an effect of just 0.2 after ten pairs
@example([(True, False)] + [(False, False)] * 9, 14)
@example([(True, True)] * 4, 14)
@example([(True, True)] * 3, 14)
def test_proof_from_the_threshold(told: list[tuple[bool | None, bool | None]], most: int) -> None:
    """Without an outcome, a fix has failed and a kept step has succeeded; below an effect of 0.2 nothing is proved."""
    keep = ReplayArm("keep", 0)
    fix = ReplayArm("fix", 1, Fix(source="person", text="x"))
    counted = [(one is True, other is not False) for one, other in told]
    wins, losses = sum(one for one, _ in counted), sum(other for _, other in counted)
    effect = Fraction(wins - losses, len(told))

    def compared(threshold: float) -> Comparison:
        made = Comparison(1, "a", fix, keep, "person", "x", threshold, most)
        for number, (one, other) in enumerate(told):
            made.add(result(fix, one, str(number)), result(keep, other, str(number)))
        return made

    record = compared(1.0).contrast()
    assert (record.fix_successes, record.keep_successes) == (wins, losses)
    assert record.effect == pytest.approx(float(effect))
    assert record.censored == sum(None in pair for pair in told)
    assert record.e_value == pytest.approx(float(e_value(counted)), rel=1e-9)
    shows = effect >= Fraction(1, 5)
    at, above = record.e_value, nextafter(record.e_value, float("inf"))
    assert [compared(each).proved(deterministic=False) for each in (at, above)] == [shows, False]
    number = len(told)
    hopeless = not shows if number >= 10 else number >= 4 and effect <= 0
    left = "abandoned" if hopeless else "exhausted" if number >= most else "open"
    assert compared(above).state(deterministic=False) == left


@pytest.mark.parametrize(("before", "state"), [(0, "abandoned"), (1, "open")])
def test_equal_pairs_decide_nothing_where_an_earlier_plan_had_others(
    before: int, state: str
) -> None:
    keep = ReplayArm("keep", 0)
    fix = ReplayArm("fix", 1, Fix(source="person", text="x"))
    made = Comparison(1, "a", fix, keep, "person", "x", 20.0, 10)
    for _ in range(2):
        made.add(result(fix, False, "y"), result(keep, False, "y"))
    if before:
        won = {"fix_successes": before, "keep_successes": 0, "pairs": before, "effect": 1.0}
        told = {"step": 1, "agent": "a", "source": "person", "fix_text": "x", **won}
        made.after(Contrast(**told, e_value=2.0, threshold=20.0))
    assert made.state(deterministic=True) == state


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_thresholds_of_all_plans_spend_less_than_one_in_twenty(sizes: list[int]) -> None:
    """However many plans follow each other, each knows the contrasts of those before."""
    before, spent = 0, Fraction(0)
    for size in sizes:
        fixes = {1: [Fix(source="person", text=str(number)) for number in range(size)]}
        plan = Plan(
            points=(DecisionPoint(1, "a", "s", "t"),),
            prior={},
            sources=fixes,
            limits=ExperimentLimits(joint=False),
            earlier=Confirmation(status="refuted", planned_contrasts=before),
        )
        assert plan.threshold == 20 * (before + 1) * (before + size + 1)
        spent += Fraction(size) / Fraction(plan.threshold)
        before += size
    assert spent == Fraction(1, 20) - Fraction(1, 20 * (before + 1))


Z = 1.959964
COUNTS = st.integers(1, 400).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))


def ends(successes: int, runs: int) -> tuple[float, float]:
    """The rates from which the share is just Z standard errors away: (share - p)^2 = Z^2 p (1 - p) / runs."""
    share = successes / runs
    a, b, c = 1 + Z * Z / runs, -(2 * share + Z * Z / runs), share * share
    root = sqrt(max(0.0, b * b - 4 * a * c))
    return max(0.0, (-b - root) / (2 * a)), min(1.0, (-b + root) / (2 * a))


@given(one=COUNTS, other=COUNTS)
@example((0, 1), (1, 1))
@example((0, 20), (20, 20))
@example((7, 20), (7, 20))
def test_intervals_of_shares_and_differences(one: tuple[int, int], other: tuple[int, int]) -> None:
    """Newcombe's goes from each difference as far as both intervals reach, and turns round with its sides."""
    assert wilson(*one) == pytest.approx(ends(*one), abs=1e-9)
    (low, high), (low_of_other, high_of_other) = ends(*one), ends(*other)
    share, against = one[0] / one[1], other[0] / other[1]
    below = sqrt((share - low) ** 2 + (high_of_other - against) ** 2)
    above = sqrt((high - share) ** 2 + (against - low_of_other) ** 2)
    found = newcombe(one, other)
    assert found == pytest.approx((share - against - below, share - against + above), abs=1e-9)
    assert newcombe(other, one) == pytest.approx((-found[1], -found[0]), abs=1e-9)


def test_nothing_tried_tells_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
