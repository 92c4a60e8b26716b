"""Effects of replays on a verdict, and the rank of its evidence."""

import pytest
from invented_records import contrast
from judge.store.verdicts import finding, verdict

from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.proof import as_shown, has_effect, proved_step, rank_of, refuted_steps
from mast_trace_judge.verdict import Candidate, Evidence

LEFT = (
    Candidate(step=3, agent="researcher", probability=0.5, rule="states 181", span_id="s3"),
    Candidate(step=4, agent="planner", probability=0.3, span_id="s4"),
    Candidate(step=1, agent="planner", probability=0.1, span_id="s1"),
)


def proof(status="confirmed", **more):
    return Confirmation(status=status, text="A correction helps.", **more)


def test_without_replays_a_verdict_is_as_it_was():
    shown = as_shown(verdict(), None)
    assert shown == verdict(rank="exact")
    assert shown.model_copy(update={"rank": None}) == verdict()


@pytest.mark.parametrize("status", ["confirmed", "repairable", "systematic"])
def test_a_confirmed_step_replaces_the_judges(status):
    told = proof(
        status,
        origin=1,
        origin_agent="planner",
        origin_span_id="s1",
        point_of_no_return=4,
        contrasts=(contrast(fix="weak", e_value=2.0), contrast(), contrast(3, e_value=999.0)),
    )
    shown = as_shown(verdict(candidates=LEFT, abstained=True, decisive=None), told)
    error = shown.decisive
    assert (error.step, error.agent, error.span_id) == (1, "planner", "s1")
    assert (error.reason, error.minimal_fix) == ("A correction helps.", "say 118")
    assert (shown.rank, shown.abstained) == ("confirmed by replay", False)
    assert [each.step for each in shown.candidates] == [1]
    assert shown.to_json()["confirmation"]["origin"] == 1


def test_a_confirmed_step_of_the_judges_keeps_its_fix_and_span():
    """The judge knows the rest."""
    shown = as_shown(verdict(), proof(origin=3))
    error = shown.decisive
    assert (error.agent, error.span_id, error.minimal_fix) == ("researcher", "s3", "say 118")


@pytest.mark.parametrize(
    "status", ["confirmed", "repairable", "inconclusive", "refuted", "systematic"]
)
def test_the_point_of_no_return_alone_is_never_decisive(status):
    """The last chance of repair is no origin."""
    told = proof(status, point_of_no_return=4, point_agent="planner")
    shown = as_shown(verdict(), told)
    assert proved_step(told) is None
    assert (shown.decisive, shown.candidates) == (verdict().decisive, verdict().candidates)
    assert shown.rank == "exact"


def test_a_refuted_step_loses_its_mass():
    """The others share it in proportion, and the judge names none instead."""
    shown = as_shown(verdict(candidates=LEFT), proof("refuted", refuted=(3,)))
    assert (shown.decisive, shown.abstained, shown.rank) == (None, True, None)
    left = {each.step: each.probability for each in shown.candidates}
    assert left == {4: pytest.approx(0.6), 1: pytest.approx(0.2)}
    assert list(left) == [4, 1]


def test_a_refuted_candidate_raises_the_decisive_step():
    """A step that was not refuted remains, with the probability of the rest."""
    shown = as_shown(verdict(candidates=LEFT), proof("inconclusive", refuted=(4, 1)))
    assert [each.step for each in shown.candidates] == [3]
    assert shown.candidates[0].probability == pytest.approx(0.5 / 0.6)
    assert shown.decisive.step == 3


def test_candidates_that_held_all_mass_leave_none():
    """Nothing is divided by nothing."""
    all_of_it = (Candidate(step=3, agent="r", probability=1.0),)
    shown = as_shown(verdict(candidates=all_of_it), proof("refuted", refuted=(3,)))
    assert (shown.candidates, shown.decisive) == ((), None)


@pytest.mark.parametrize("status", ["diffuse", "overdetermined"])
def test_where_no_single_step_decides_none_is_named(status):
    """An exact finding remains a failure mode, and is no decisive error."""
    shown = as_shown(verdict(), proof(status))
    assert (shown.decisive, shown.abstained, shown.modes) == (None, True, verdict().modes)


@pytest.mark.parametrize("status", ["untested", "unstable", "not isolated"])
def test_replays_that_cannot_be_compared_change_nothing(status):
    """The steps that they hold do not count."""
    told = proof(status, origin=1, refuted=(3,))
    shown = as_shown(verdict(), told)
    assert (shown.decisive, shown.candidates) == (verdict().decisive, verdict().candidates)
    assert (refuted_steps(told), has_effect(told)) == ((), False)


def test_a_run_that_succeeded_has_no_decisive_error():
    """Not even a confirmed one: the outcome was corrected since."""
    shown = as_shown(verdict(outcome="success", decisive=None, candidates=()), proof(origin=1))
    assert (shown.decisive, shown.candidates, shown.rank) == (None, (), None)


def mode(evidence, *, step=3, quotes=("181 EUR",)):
    return finding("2.6", evidence=evidence, steps=(step,), quotes=quotes)


@pytest.mark.parametrize(
    ("given", "rank"),
    [
        ({"modes": (mode(Evidence.MODEL), mode(Evidence.EXACT))}, "exact"),
        ({"modes": (mode(Evidence.EXACT, step=5),), "calibrated": True}, "calibrated guess"),
        ({"modes": (mode(Evidence.MODEL),), "calibrated": True}, "model"),
        ({"modes": (mode(Evidence.MODEL, quotes=()),)}, "guess"),
        ({"modes": (mode(Evidence.HEURISTIC),)}, "guess"),
        ({"modes": (), "calibrated": True}, "calibrated guess"),
        ({"decisive": None}, None),
        (
            {"modes": (mode(Evidence.EXACT),), "confirmation": proof(origin=3)},
            "confirmed by replay",
        ),
        ({"modes": (mode(Evidence.EXACT),), "confirmation": proof(origin=4)}, "exact"),
    ],
)
def test_ranks(given, rank):
    assert rank_of(verdict(**given)) == rank
