"""Each threshold of an experiment at its value and one beside it, on a posterior that is set to the limit itself."""

from __future__ import annotations

from math import nextafter
from typing import TYPE_CHECKING, Any

import pytest
from judge.replay.statistics.simulated_experiments import EVERYWHERE, JUDGE, LENGTH, RESAMPLE, made

from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_lab.confirm.statistics import ExperimentLimits
from mast_trace_lab.confirm.statistics import proof as proving
from mast_trace_lab.confirm.statistics.cells import Kinds
from mast_trace_lab.confirm.statistics.experiment import find, refuted
from mast_trace_lab.confirm.statistics.proof import search
from mast_trace_lab.program.budget import ReplayTrial

if TYPE_CHECKING:
    from mast_trace_lab.confirm.statistics.comparison import Comparison
    from mast_trace_lab.confirm.statistics.proof import ExperimentState

PLACE, STEP = 6, 13
"""Position and step of the decision that is looked at."""
TOOL = Fix("person", "79", result=True)


def below(value: float) -> float:
    return nextafter(value, 0.0)


def above(value: float) -> float:
    return nextafter(value, 1.0)


def posterior(
    evidence: ExperimentState,
    origins: dict[int, float],
    points: dict[int, float] | None = None,
    *,
    rate: float = 0.5,
    information: float = 1.0,
    **kinds: float,
) -> ExperimentState:
    """Set the posterior of an experiment; without replays of the search it stays."""
    location: Any = evidence.location
    location.origins = [origins.get(each, 0.0) for each in range(LENGTH)]
    location.points = [(points or {}).get(each, 0.0) for each in range(LENGTH)]
    nothing = {"systematic": 0.0, "diffuse": 0.0, "none": 0.0}
    location.kinds = Kinds(sum(origins.values()), **{**nothing, **kinds})
    location.rate = lambda position: rate if position in {0, PLACE - 1} else 1 - rate
    location.information = lambda _position, *, points: information
    return evidence


def evidence(phases: str = "", **options: Any) -> ExperimentState:
    """Return an experiment's evidence after replays: s of the search, p of a pair, x without an outcome."""
    found = made(**options).evidence
    for number, letter in enumerate(phases):
        phase = "pairs" if letter == "p" else "screening"
        trial = ReplayTrial(ReplayArm("keep", STEP), phase, calls=5)
        told = None if letter == "x" else False
        status = "timeout" if letter == "x" else "ok"
        done = ArmResult(trial.arm, status, told, live_calls=5, calls_hash=str(number))
        found.results.append((trial, done))
    return found


def pairs(found: ExperimentState, fix: int, keep: int, count: int, **more: Any) -> Comparison:
    """Return a comparison with so many successes; no two replays of it are alike."""
    comparison = found.plan.comparison(more.pop("place", PLACE), STEP, more.pop("what", RESAMPLE))
    for number in range(count):
        results = [
            ArmResult(ReplayArm("keep", STEP), "ok", number < hits, calls_hash=f"{number} {hits}")
            for hits in (fix, keep)
        ]
        comparison.add(*results)
    found.comparisons.append(comparison)
    return comparison


@pytest.mark.parametrize(
    ("here", "before", "is_so"),
    [(0.5, 0.05, True), (below(0.5), 0.05, False), (0.5, above(0.05), False), (0.9, 0.0, True)],
)
def test_an_origin_is_likely_and_nothing_before_is(here: float, before: float, is_so: bool) -> None:
    """The conclusion names a proved step then, and otherwise says that it is not clear."""
    found = posterior(evidence("s"), {PLACE: here, 2: before, PLACE + 1: 0.01}, {PLACE: 0.9})
    assert proving.earlier_chance(found, PLACE) == before
    assert proving.is_origin(found, PLACE) == is_so
    pairs(found, 20, 0, 20)
    assert (find(found, "").status == "confirmed") == is_so
    assert find(found, "").point == PLACE
    assert (proving._next(found, []) is None) == is_so
    assert ("earlier" in find(found, "").text) == (before > 0.05)


@pytest.mark.parametrize(("systematic", "is_so"), [(0.5, True), (below(0.5), False)])
def test_a_program_that_likely_fails_from_the_start(systematic: float, is_so: bool) -> None:
    """A tool before any model is the origin then, and a proved fix says so."""
    found = posterior(evidence("s"), {PLACE: 1 - systematic}, systematic=systematic)
    assert proving.is_origin(found, -1) == is_so
    assert proving.earlier_chance(found, -1) == proving.earlier_chance(found, 0) == 0
    pairs(found, 20, 0, 20)
    assert (find(found, "").status == "systematic") == is_so


@pytest.mark.parametrize(("rate", "drawn"), [(0.08, True), (below(0.08), False)])
def test_an_answer_is_drawn_again_where_the_program_may_succeed(rate: float, drawn: bool) -> None:
    """Other fixes are tried whatever the rate is, and so are results before any answer."""
    sources = {0: (TOOL,), STEP: (RESAMPLE, JUDGE), 3: (RESAMPLE,)}
    found = posterior(evidence(sources=sources), {PLACE: 0.4, 1: 0.3}, rate=rate, systematic=0.2)
    assert [fix for _, fix in proving.useful(found, PLACE)] == [RESAMPLE, JUDGE][not drawn :]
    assert proving.useful(found, -1) == [(0, TOOL)]
    weights = found.plan.location.weights
    chances = {-1: 0.2, PLACE: 0.4 + 0.2 * weights[PLACE]}
    chances |= {1: 0.3 + 0.2 * weights[1]} if drawn else {}
    assert proving.chances(found) == pytest.approx(chances)


@pytest.mark.parametrize(
    ("first", "second", "tested", "chosen"),
    [
        (0.2, 0.4, [], 2),
        (below(0.2), 0.4, [], PLACE),
        (0.4, 0.2, [], 2),
        (0.2, 0.4, [PLACE], 2),
        (0.2, 0.4, [2, 9], PLACE),
        (0.2, 0.4, [2, 9, 10], None),
        (0.0, 0.0, [], None),
    ],
)
def test_the_earliest_of_the_likely_steps_is_tested_next(
    first: float, second: float, tested: list[int], chosen: int | None
) -> None:
    """It has half the probability of the best at least; three steps are tested at most."""
    found = posterior(evidence(), {2: first, PLACE: second})
    assert proving._next(found, tested) == chosen


@pytest.mark.parametrize(("before", "chosen"), [(0.05, 9), (above(0.05), 2)])
def test_a_likely_earlier_step_is_tested_before_later_ones(before: float, chosen: int) -> None:
    found = posterior(evidence(), {2: before, PLACE: 0.4, 9: 0.5})
    pairs(found, 20, 0, 20)
    assert proving._next(found, [PLACE]) == chosen


@pytest.mark.parametrize(
    ("phases", "systematic", "joint", "single", "all_of_it"),
    [
        ("p" * 6, 0.0, True, False, False),
        ("p" * 8, 0.0, True, True, False),
        ("s" * 22 + "p" * 8, below(0.97), True, True, False),
        ("s" * 22 + "p" * 8, 0.97, True, True, False),
        ("s" * 10 + "p" * 8, 0.97, True, False, False),
        ("s" * 11 + "p" * 8, 0.97, True, True, False),
        ("s" * 30 + "p" * 8, 0.97, False, False, False),
        ("s" * 31 + "p" * 8, 0.97, False, True, True),
        ("s" * 32, 0.0, False, False, False),
        ("x" * 7, 0.0, True, False, False),
        ("x" * 8, 0.0, True, True, True),
        ("x" * 8, 0.97, True, True, True),
        ("x" * 7 + "s", 0.97, True, False, False),
        ("x" + "s" * 7, 0.0, True, False, False),
    ],
)
def test_pairs_have_their_own_replays_and_what_the_search_leaves(
    phases: str, systematic: float, joint: bool, single: bool, all_of_it: bool
) -> None:
    """Single fixes leave ten pairs for a joint one there; eight replays in a row without an outcome end all of it."""
    limits = ExperimentLimits(screening_runs=32, pair_runs=8, joint=joint)
    sources = {5: (JUDGE,), STEP: (JUDGE,)}
    found = evidence(phases, limits=limits, sources=sources)
    posterior(found, {PLACE: 1 - systematic}, systematic=systematic)
    assert proving._used_up(found) == single
    assert proving._all_used_up(found) == all_of_it


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize(
    ("phases", "best", "kinds", "limits", "goes_on"),
    [
        ("", below(0.97), {}, {}, True),
        ("", 0.97, {}, {}, False),
        *[("", 0.0, {kind: 0.97}, {}, False) for kind in ("systematic", "diffuse", "none")],
        *[("", 0.0, {kind: below(0.97)}, {}, True) for kind in ("systematic", "diffuse", "none")],
        ("sss", 0.5, {}, {"screening_runs": 5}, True),
        ("sss", 0.5, {}, {"screening_runs": 4}, False),
        ("sss", 0.5, {}, {"screening_runs": 4, "batch": 1}, True),
        ("spppp", 0.5, {}, {"screening_runs": 3, "pair_runs": 4}, True),
        ("sppppp", 0.5, {}, {"screening_runs": 3, "pair_runs": 4}, False),
        ("ssp", 0.5, {}, {"search_calls": 11}, True),
        ("ssp", 0.5, {}, {"search_calls": 10}, False),
        ("", 0.5, {}, {"search_calls": 0}, False),
        ("x" * 8, 0.5, {}, {}, False),
    ],
)
def test_the_search_ends_where_it_has_found_or_spent_enough(
    phases: str,
    best: float,
    kinds: dict[str, float],
    limits: dict[str, int],
    *,
    goes_on: bool,
    points: bool,
) -> None:
    """Its replays are counted with those that the proof has taken of its share; calls of pairs are none of its own."""
    found = evidence(phases, limits=ExperimentLimits(**limits))
    posterior(found, {PLACE: 0.0 if points else best}, {PLACE: best if points else 0.0}, **kinds)
    asked = next(search(found, points=points), None)
    assert (asked is not None) == goes_on
    if asked:
        assert len(asked) == limits.get("batch", 2)


@pytest.mark.parametrize(("information", "goes_on"), [(0.001, True), (below(0.001), False)])
def test_the_search_ends_where_a_replay_tells_nothing(information: float, goes_on: bool) -> None:
    found = posterior(evidence(), {PLACE: 0.5}, information=information)
    assert (next(search(found), None) is not None) == goes_on


@pytest.mark.parametrize(
    ("later", "last", "status", "point"),
    [
        (0.9, 0.9, "repairable", 9),
        (below(0.9), 0.0, "confirmed", None),
        (0.9, 0.5, "repairable", None),
        (0.0, 0.9, "confirmed", PLACE),
        (0.0, below(0.9), "confirmed", None),
    ],
)
def test_the_point_of_no_return_is_named_where_it_is_sure(
    later: float, last: float, status: str, point: int | None
) -> None:
    """A point behind the origin makes it repairable; the step itself does not."""
    behind = {9: last, 10: later - last} if later else {PLACE: last}
    found = posterior(evidence("s"), {PLACE: 0.9}, behind)
    pairs(found, 20, 0, 20)
    told = find(found, "")
    assert (told.status, told.point) == (status, point)


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ({"systematic": 0.9}, "systematic"),
        ({"systematic": below(0.9)}, "inconclusive"),
        ({"diffuse": 0.9}, "diffuse"),
        ({"none": 0.9}, "diffuse"),
        ({"diffuse": 0.4, "none": 0.5}, "diffuse"),
        ({"diffuse": 0.4, "none": 0.49}, "inconclusive"),
    ],
)
def test_a_way_of_failing_is_named_where_it_is_sure(kinds: dict[str, float], status: str) -> None:
    found = posterior(evidence("s"), {PLACE: 0.05}, **kinds)
    assert find(found, "").status == status


@pytest.mark.parametrize(
    ("origin", "point", "systematic", "proved", "is_so"),
    [
        (0.005, 0.005, 0.0, False, True),
        (above(0.005), 0.005, 0.0, False, False),
        (0.0, above(0.01), 0.0, False, False),
        (0.0, 0.0, 0.01, False, True),
        (0.0, 0.0, above(0.01), False, False),
        (0.0, 0.0, 0.0, True, False),
    ],
)
@pytest.mark.parametrize("judged", [False, True])
def test_a_step_is_refuted_where_success_almost_certainly_does_not_fall(
    origin: float, point: float, systematic: float, *, proved: bool, is_so: bool, judged: bool
) -> None:
    """The step was named by the judge or tested, and no fix of it is proved."""
    found = evidence("s", prior={STEP: 0.9} if judged else {})
    found.counts[-1] = (2, 4)
    pairs(found, 0, 0, 0, place=9)  # a fix that was planned, and not tried
    posterior(found, {PLACE: origin, 2: 0.5}, {PLACE: point}, systematic=systematic)
    if proved or not judged:
        pairs(found, 20 if proved else 0, 0, 20)
    assert refuted(found) == ((PLACE,) if is_so else ())
    assert (find(found, "").status == "refuted") == (is_so and judged)


@pytest.mark.parametrize(
    ("fix", "keep", "count", "most", "state"),
    [
        (0, 0, 3, 20, "open"),
        (0, 0, 4, 20, "abandoned"),
        (2, 3, 4, 20, "abandoned"),
        (1, 0, 4, 20, "open"),
        (1, 0, 9, 20, "open"),
        (1, 0, 10, 20, "abandoned"),
        (4, 2, 10, 20, "open"),
        (4, 2, 10, 10, "exhausted"),
        (4, 2, 10, 11, "open"),
        (2, 0, 3, 3, "exhausted"),
    ],
)
def test_a_fix_is_given_up_where_it_does_not_help_or_its_pairs_are_used_up(
    fix: int, keep: int, count: int, most: int, state: str
) -> None:
    found = pairs(evidence(), fix, keep, count)
    found.most = most
    assert found.state(deterministic=False) == state


@pytest.mark.parametrize(("fix", "keep", "count"), [(3, 1, 10), (4, 3, 6)])
def test_a_proof_needs_evidence_and_an_effect_of_a_fifth(fix: int, keep: int, count: int) -> None:
    found = pairs(evidence(), fix, keep, count)
    helps = (fix - keep) / count >= 0.2
    for threshold, enough in ((found.bet.e_value, True), (above(found.bet.e_value) + 1e-9, False)):
        found.threshold = threshold
        assert found.proved(deterministic=False) == (helps and enough)


@pytest.mark.parametrize(
    ("count", "differs", "deterministic", "proved"),
    [(2, "", True, True), (1, "", True, False), (2, "", False, False), (2, "calls_hash", True, False),
     (2, "answer", True, False)],
)  # fmt: skip
def test_two_equal_pairs_prove_a_fix_of_a_deterministic_program(
    count: int, differs: str, *, deterministic: bool, proved: bool
) -> None:
    """They do not in a program that answers at random, nor where one of them made other calls or another answer."""
    for odd in ("fix", "keep"):
        found = evidence().plan.comparison(PLACE, STEP, RESAMPLE)
        for number in range(count):
            arms = []
            for name in ("fix", "keep"):
                given = {"calls_hash": "c", "answer": "a"}
                given |= {differs: "odd"} if differs and name == odd and number else {}
                arms.append(ArmResult(ReplayArm("keep", STEP), "ok", name == "fix", **given))  # type: ignore[arg-type]
            found.add(*arms)
        assert found.proved(deterministic=deterministic) == proved
    same = evidence().plan.comparison(PLACE, STEP, RESAMPLE)
    for _ in range(2):  # a fix that helps no more than the kept step
        same.add(*[ArmResult(ReplayArm("keep", STEP), "ok", True, calls_hash="c")] * 2)
    assert not same.proved(deterministic=True)


@pytest.mark.parametrize(
    ("repeats", "odd", "is_so"),
    [
        (7, {}, True),
        (6, {}, False),
        (7, {"calls_hash": "other"}, False),
        (7, {"answer": "other"}, False),
        (7, {"success": True}, False),
        (7, {"success": None}, False),
        (7, {"calls_hash": ""}, False),
    ],
)
def test_six_equal_replays_show_it(repeats: int, odd: dict[str, Any], is_so: bool) -> None:
    """Questions to the oracle repeat nothing; the first replay of an arm repeats none either."""
    found = made().evidence
    for number in range(repeats):
        given = {"success": False, "calls_hash": "c", "answer": "a", "live_calls": 2}
        given |= odd if number == 3 else {}
        trial = ReplayTrial(ReplayArm("keep", STEP), "screening")
        found.results.append((trial, ArmResult(trial.arm, "ok", **given)))  # type: ignore[arg-type]
    for phase in ("verify", "score"):
        trial = ReplayTrial(ReplayArm(phase), phase)  # type: ignore[arg-type]
        found.results += [(trial, ArmResult(trial.arm, "ok", False))] * 3
    assert found.deterministic == is_so


@pytest.mark.parametrize(
    ("counts", "once"),
    [
        ({-1: (2, 2), 3: (0, 1)}, True),
        ({-1: (2, 2), 3: (1, 2)}, False),
        ({3: (0, 1), 5: (1, 1)}, False),
        ({3: (1, 1), 5: (2, 2)}, True),
        ({3: (0, 1), 5: (0, 2)}, True),
    ],
)
def test_success_falls_once_at_a_failure(counts: dict[int, tuple[int, int]], once: bool) -> None:
    found = made().evidence
    found.counts.update(counts)
    assert found.falls_once == once


@pytest.mark.parametrize(
    ("told", "limits", "asks"),
    [
        (0, {"max_calls": 12}, True),
        (0, {"max_calls": 11}, False),
        (2, {"max_calls": 36}, True),
        (2, {"max_calls": 35}, False),
        (0, {"max_cost_usd": 0.0}, False),
        (2, {"max_cost_usd": 0.5}, False),
        (2, {"max_cost_usd": above(0.5)}, True),
    ],
)
def test_a_replay_is_within_the_budget(told: int, limits: dict[str, float], asks: bool) -> None:
    """The next replay's calls count in advance; dollars end it when they are reached."""
    sizes = ExperimentLimits(verifications=0, scores=0, **limits)  # type: ignore[arg-type]
    experiment = made(limits=sizes, sources=EVERYWHERE)
    for _ in range(told):
        trial = experiment.waiting()[0]
        done = ArmResult(trial.arm, "ok", False, phase=trial.phase, live_calls=12, cost_usd=0.25)
        experiment.tell(done)
    assert (experiment.ask() is not None) == asks
