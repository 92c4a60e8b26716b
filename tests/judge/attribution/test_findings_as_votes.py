"""Votes of findings for the decisive step, and their weights."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution.cascade import Vote, cascade, weigh
from mast_trace_judge.local.attribution.mode_votes import votes
from mast_trace_judge.verdict import Evidence, ModeFinding


def run(*, spans):
    made = RunBuilder(outcome="failure", spans=spans).asks()
    for number in range(6):
        made.says(f"agent{number % 2}", "Hm.")
    return made.build()


def votes_of(code, evidence, *, spans=True, steps=(2, 3, 5), actors=range(1, 7)):
    found = ModeFinding(code=code, probability=0.5, evidence=evidence, reason="Why.", steps=steps)
    return votes([found], run(spans=spans), actors)


# code: odds where spans prove it, odds where a text suggests it, step of (2, 3, 5)
STRENGTHS = {
    "1.3": (0.6, 0.0, 2),
    "1.4": (1.5, 0.0, 5),
    "2.1": (1.5, 0.0, 2),
    "2.4": (0.8, 0.0, 5),
    "2.5": (1.5, 0.0, 5),
    "2.6": (2.5, 1.0, 2),  # the first wrong statement: the others may build on it
    "3.3": (1.2, 0.0, 5),
}


@pytest.mark.parametrize("code", STRENGTHS)
def test_a_finding_votes_for_a_step_by_its_probability(code):
    exact, heuristic, step = STRENGTHS[code]
    vote = [Vote(step, exact / 2, f"{code}: Why.")]
    assert votes_of(code, Evidence.EXACT) == votes_of(code, Evidence.EXACT, spans=False) == vote
    suggested = [Vote(step, heuristic / 2, f"{code}: Why.")] if heuristic else []
    assert votes_of(code, Evidence.HEURISTIC) == suggested
    assert votes_of(code, Evidence.HEURISTIC, spans=False) == []


@pytest.mark.parametrize(
    ("code", "steps", "actors"),
    [
        ("2.2", (2, 3), range(1, 7)),  # modes that say how a run went
        ("3.1", (2, 3), range(1, 7)),
        ("3.2", (2, 3), range(1, 7)),
        ("2.6", (), range(1, 7)),
        ("2.6", (2, 3), [1, 3]),  # a step that nobody answers for
    ],
)
def test_no_vote(code, steps, actors):
    assert votes_of(code, Evidence.EXACT, steps=steps, actors=actors) == []


def test_one_finding_without_a_vote_does_not_silence_the_next():
    """Findings are looked at one by one."""
    found = [
        ModeFinding(code=code, probability=1.0, evidence=Evidence.EXACT, reason="Why.", steps=steps)
        for code, steps in (("2.2", (2,)), ("2.6", ()), ("2.6", (99,)), ("2.6", (3,)))
    ]
    assert [vote.step for vote in votes(found, run(spans=True), range(1, 7))] == [3]


def test_votes_are_added_to_what_the_steps_weigh():
    """The strongest names the reason, and all of it is divided by its sum."""
    mass, reasons = cascade(run(spans=True))
    given = [Vote(3, 0.5, "weak"), Vote(3, 1.5, "strong"), Vote(1, 1.0, "other")]
    found, told = weigh(mass, reasons, given)
    added = {1: 1.0, 3: 2.0}
    assert found == pytest.approx({s: (p + added.get(s, 0)) / 4 for s, p in mass.items()})
    assert told == {**reasons, 1: "other", 3: "strong"}
