"""The shares of a self-test: counted on labels that are certain, with intervals, and with words for what is missing."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from typing import TYPE_CHECKING, get_args

import pytest
from stores import new_store

from mast_trace.semconv import Termination
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.store.injections import Injection
from mast_trace_judge.study.agreement import wilson
from mast_trace_lab.inject.trial import Verdict
from mast_trace_lab.selftest.examination import (
    LABELLED,
    Fitted,
    JudgeOpinion,
    fitted,
    fitted_opinion,
    measured,
    survivors_of,
)
from mast_trace_lab.selftest.queries import SELFTESTS
from mast_trace_lab.selftest.store import (
    ALL,
    ENVIRONMENT,
    Measured,
    SelfTest,
    newest_of_services,
    save_selftest,
    selftests,
)
from mast_trace_lab.selftest.words import (
    planted_sentences,
    rows_of,
    sentences_of,
    share_text,
    title_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_lab.selftest.store import Measure, Stage

NOTHING = JudgeOpinion(frozenset(), None, None, failed=False)
UNFITTED = Fitted({}, None, "too few")


def run(number: int = 0) -> Trajectory:
    said = [f"Step {place} of run {number}." for place in range(6)]
    steps = tuple(
        Step(place, StepKind.MESSAGE, f"agent {place % 3}", text, message_id=f"m{place}")
        for place, text in enumerate(said)
    )
    return Trajectory(f"{number:032x}", steps, task="Count.", outcome="success")


def fault(number: int, mode: str, verdict: str = "kept", **given: object) -> Injection:
    return dataclasses.replace(
        Injection(
            project="",
            original=f"{number % 3:032x}",
            fault_id=f"fault {number}",
            operator=f"{mode or 'tool'}-{number % 2}",
            mode=mode,
            level="answer",
            step=number % 4,
            agent=f"agent {number % 4 % 3}",
            verdict=verdict,
            decisive=verdict == "kept",
            run=dataclasses.replace(run(number), outcome="failure"),
        ),
        **given,
    )


def shares(
    *given: object, blind: dict[str, JudgeOpinion] | None = None
) -> dict[tuple[str, str, str], tuple[int, int]]:
    made = measured(*given, blind or {})
    return {(e.measure, e.stage, e.mode): (e.hits, e.runs) for e in made}


def test_counts_modes_on_all_planted_faults_and_steps_on_decisive_ones() -> None:
    """Survivors hold their fault, and have no decisive step; an origin is none either."""
    faults = [
        fault(0, "2.6"),
        fault(1, "2.6", "survived"),
        fault(2, "2.6", decisive=False),
        fault(3, ""),
        fault(4, "1.3", "unproved"),
    ]
    right = JudgeOpinion(frozenset({"2.6"}), 0, 0, failed=True)
    wrong = JudgeOpinion(frozenset({"1.3"}), 5, 5, failed=True)
    unsure = JudgeOpinion(frozenset(), 5, None, failed=True)
    before = {"fault 0": right, "fault 1": wrong, "fault 2": right, "fault 3": wrong}
    found = shares(faults, [run()], before, [NOTHING], UNFITTED)
    assert (found["found", "before", "2.6"], found["found", "before", ALL]) == ((2, 3), (2, 3))
    assert ("found", "before", ENVIRONMENT) not in found
    assert found["step", "before", "2.6"] == (1, 1)
    assert found["step", "before", ENVIRONMENT] == (0, 1)
    assert found["named", "before", ENVIRONMENT] == (1, 1)
    assert found["named", "before", "2.6"] == (0, 1)
    assert not any(mode == "1.3" for _, _, mode in found)
    again = shares(faults, [run()], {**before, "fault 3": unsure}, [NOTHING], UNFITTED)
    assert again["named", "before", ENVIRONMENT] == (0, 1)


def test_a_healthy_run_is_accused_by_a_mode_a_step_or_an_outcome() -> None:
    accused = [
        NOTHING,
        JudgeOpinion(frozenset({"1.3"}), None, None, failed=False),
        JudgeOpinion(frozenset(), 3, None, failed=False),
        JudgeOpinion(frozenset(), 3, 3, failed=False),
        JudgeOpinion(frozenset(), None, None, failed=True),
    ]
    healthy = [run(number) for number in range(5)]
    assert shares([], healthy, {}, accused, UNFITTED)["accused", "before", ALL] == (3, 5)


def test_a_survivor_is_misjudged_if_it_is_said_to_have_failed() -> None:
    """Its mode is in it, and may be named; the answer of a judge that knew the outcome counts for nothing here."""
    faults = [
        fault(0, "2.6", "survived"),
        fault(1, "2.6", "survived"),
        fault(2, "", "survived"),
        fault(3, "2.6"),
        fault(4, "2.6", "repaired"),
    ]
    names_mode = JudgeOpinion(frozenset({"2.6"}), 1, None, failed=False)
    says_failed = JudgeOpinion(frozenset(), None, None, failed=True)
    knew = dict.fromkeys((each.fault_id for each in faults), says_failed)
    blind = {"fault 0": names_mode, "fault 1": says_failed, "fault 2": NOTHING}
    found = shares(faults, [run()], knew, [NOTHING], UNFITTED, blind=blind)
    assert found["survived", "before", ALL] == (1, 3)
    assert (found["survived", "after", ALL], found["found", "before", ALL]) == ((0, 0), (0, 3))


def test_survivors_do_not_tell_their_outcome() -> None:
    """A run that was broken off and succeeded all the same: rules that do not know it say that it failed."""
    modes = ("1.3", "2.6", "3.2", "2.4", "")
    kept = [fault(number, modes[number % 5]) for number in range(30)]
    broken = dataclasses.replace(run(31), termination_reason=Termination.RECURSION_LIMIT)
    survivors = [
        fault(30, "2.6", "survived", run=run(30)),
        fault(31, "2.6", "survived", run=broken),
    ]
    hidden = survivors_of([*kept, *survivors])
    assert {name: each.outcome for name, each in hidden.items()} == {"fault 30": "", "fault 31": ""}
    assert judge_by_rules(broken).outcome.outcome == "success"
    told = fitted([*kept, *survivors])
    assert told.profile is not None
    before = {name: fitted_opinion(each, told.profile) for name, each in hidden.items()}
    found = shares([*kept, *survivors], [run()], {}, [NOTHING], told, blind=before)
    assert found["survived", "before", ALL] == found["survived", "after", ALL] == (1, 2)


def test_each_share_has_its_interval_or_the_reason_why_not() -> None:
    made = measured([fault(0, "2.6")], [run()], {"fault 0": NOTHING}, [NOTHING], UNFITTED, {})
    for each in made:
        if each.runs:
            interval = wilson(each.hits, each.runs)
            assert (each.low, each.high, each.note) == (interval.low, interval.high, "")
        else:
            assert each.note
    assert {each.note for each in made if each.stage == "after"} == {"too few"}


def test_fitted_answers_have_not_seen_the_operator() -> None:
    """Thirty faults of five operators in three runs; a fit needs ten labels, and says so with fewer."""
    few = fitted([fault(number, "2.6") for number in range(5)])
    assert few.profile is None
    assert "too few to fit" in few.note
    modes = ("1.3", "2.6", "3.2", "2.4", "")
    faults = [fault(number, modes[number % 5]) for number in range(30)]
    told = fitted(faults)
    assert told.profile is not None
    assert told.note == ""
    assert set(told.opinions) <= {each.fault_id for each in faults}
    alone = fitted([dataclasses.replace(each, operator="2.6-one") for each in faults])
    assert alone.opinions == {}
    assert "several operators" in alone.note


def result(
    identity: str, service: str, minute: int, *given: Measured, project: str = ""
) -> SelfTest:
    return SelfTest(
        *(identity, project, service, "langgraph", "v1", ("2.6-number",), 2, given),
        datetime(2026, 1, 1, 0, minute, tzinfo=timezone.utc),
    )


def test_a_later_result_replaces_the_earlier_one(tmp_path: Path) -> None:
    """Modes that the later one does not have are gone; the newest of each service is shown."""
    step = Measured("step", "before", "2.6", 3, 4, 0.3, 0.95)
    gone = Measured("step", "before", "1.3", 1, 1, 0.2, 1.0)
    total = Measured("step", "before", ALL, 3, 4, 0.3, 0.95)
    first = result("a", "shop", 1, gone, step)
    later = result("a", "shop", 2, step, total)
    other = result("b", "desk", 0, Measured("found", "before", ALL, 0, 0, note="none"))
    with new_store(tmp_path) as store:
        for each in (first, later, other):
            save_selftest(store, each)
        read = selftests(store)
        assert {each.id: set(each.shares) for each in read} == {
            "a": {step, total},
            "b": set(other.shares),
        }
        assert read[0].measured_at == later.measured_at
        assert [each.service for each in newest_of_services(read)] == ["shop", "desk"]
        rows = SELFTESTS.run(store)
        theirs = result("a", "shop", 3, gone, project="bank")
        save_selftest(store, theirs)
        found = newest_of_services(selftests(store))
        assert [each.project for each in found] == ["bank", "", ""]
        assert selftests(store, project="bank") == [theirs]
        assert [each.id for each in selftests(store, project="")] == ["a", "b"]
    assert [(row["ServiceName"], row["Mode"]) for row in rows] == [
        ("desk", ALL),
        ("shop", "2.6"),
        ("shop", ALL),
    ]
    assert (rows[1]["Step"], rows[1]["StepRuns"], rows[1]["StepLow"]) == (0.75, 4, 0.3)
    assert rows[0]["Found"] is None
    assert rows[1]["StepFitted"] is None
    assert {(row["Operators"], row["PlantedRuns"], row["JudgeVersion"]) for row in rows} == {
        ("2.6-number", 2, "v1")
    }


def test_grafana_says_the_same_as_the_page(tmp_path: Path) -> None:
    """A system that is none of the examples: each cell has counts and interval, and no percentage of a few runs."""
    wide = {(hits, runs): wilson(hits, runs) for hits, runs in ((5, 8), (0, 3), (21, 40), (39, 40))}

    def share(measure: Measure, stage: Stage, mode: str, hits: int, runs: int) -> Measured:
        interval = wide[hits, runs]
        return Measured(measure, stage, mode, hits, runs, interval.low, interval.high)

    test = result(
        "a", "claims-desk", 0,
        share("found", "before", "2.6", 5, 8), share("found", "before", ALL, 21, 40),
        share("step", "before", "2.6", 0, 3), share("step", "before", ENVIRONMENT, 5, 8),
        share("step", "before", ALL, 21, 40), share("step", "after", ALL, 39, 40),
        share("named", "before", ALL, 0, 3), Measured("named", "after", ALL, 0, 0, note="none"),
        share("accused", "before", ALL, 0, 3), Measured("accused", "after", ALL, 0, 0, note="none"),
        share("survived", "before", ALL, 5, 8), Measured("survived", "after", ALL, 0, 0, note="none"),
    )  # fmt: skip
    with new_store(tmp_path) as store:
        save_selftest(store, test)
        rows = {row["Mode"]: row for row in SELFTESTS.run(store)}
    texts = ("FoundText", "StepText", "StepFittedText", "NamedText", "NamedFittedText")
    shown = {title: tuple(cells) for title, *cells in rows_of(test)}
    assert {
        title_of(mode): tuple(row[each] for each in texts) for mode, row in rows.items()
    } == shown
    assert rows[ALL]["AccusedText"] == "0 of 3 (too few: 0 to 56 %)"
    assert rows[ALL]["AccusedFittedText"] == "not measured"
    assert rows["2.6"]["AccusedText"] == rows["2.6"]["SurvivedText"] == ""
    survived = (
        f"{rows[ALL]['SurvivedText']} before fitting, {rows[ALL]['SurvivedFittedText']} after."
    )
    assert survived.startswith("5 of 8, 62 % (31 to 86 %) before fitting, not measured")
    said = "Faulty runs that succeeded and are said to have failed, outcome hidden: "
    assert f"{said}{survived}" in sentences_of(test)
    # A result of a version that did not measure it is not spoken of.
    old = tuple(each for each in test.shares if each.measure != "survived")
    assert said not in " ".join(sentences_of(dataclasses.replace(test, shares=old)))
    assert shown["all together"][0] == "21 of 40, 52 % (37 to 67 %)"


def test_a_fit_that_gains_nothing_is_no_gain() -> None:
    """Steps that were measured are not called unmeasured, whatever else is missing."""
    missing = Measured("accused", "after", ALL, 0, 0, note="there were no such runs")
    before = Measured("step", "before", ALL, 20, 36, 0.4, 0.7)
    worse = Measured("step", "after", ALL, 16, 36, 0.3, 0.6)
    better = Measured("step", "after", ALL, 35, 36, 0.86, 1.0)
    told = " ".join(sentences_of(result("a", "shop", 0, before, worse, missing)))
    assert "no step was measured" not in told
    assert "no gain from fitting" in told
    unknown = Measured("step", "before", ALL, 0, 0, note="none")
    for earlier in (before, unknown):
        told = " ".join(sentences_of(result("a", "shop", 0, earlier, better, missing)))
        assert "no gain" not in told


def test_faults_without_an_outcome_are_not_passed_over() -> None:
    told = planted_sentences({"kept": 4, "survived": 4, "censored": 4, "unproved": 1})
    assert told[0] == "13 faults: 4 made the run fail, 4 did not; the table counts these."
    assert told[1].startswith("1 more failed without proof")
    assert told[2].startswith("4 more had no outcome")
    assert "live_tools=NAME with --set reset=COMMAND" in told[2]
    made_good = planted_sentences({"kept": 4, "repaired": 3})
    assert made_good[0].startswith("7 faults: 4 made the run fail, 0 did not")
    assert made_good[1].startswith(
        "3 more caused failures, but their agents recovered from the fault"
    )
    # Each verdict but those that the table counts has a sentence with its number.
    verdicts = set(get_args(Verdict)) - {"open"}
    assert len(planted_sentences(dict.fromkeys(verdicts, 2))) == 1 + len(verdicts - LABELLED)
    assert len(planted_sentences({"kept": 4})) == 1


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "not measured"),
        (Measured("step", "after", ALL, 0, 0, note="why"), "not measured"),
        (Measured("step", "after", ALL, 2, 3, 0.2, 0.94), "2 of 3 (too few: 20 to 94 %)"),
        (Measured("step", "after", ALL, 8, 16, 0.28, 0.72), "8 of 16, 50 % (28 to 72 %)"),
    ],
)
def test_no_percentage_of_a_few_runs(share: Measured | None, text: str) -> None:
    assert share_text(share) == text


def test_the_words_say_what_is_too_small() -> None:
    few = Measured("found", "before", "2.6", 1, 2, 0.1, 0.9)
    test = result(
        "a", "shop", 0, few, Measured("step", "after", ALL, 0, 0, note="ten labels are needed"),
        Measured("accused", "before", ALL, 0, 1, 0.0, 0.79),
    )  # fmt: skip
    told = " ".join(sentences_of(test))
    assert "Only 1 healthy run differs" in told
    assert "After fitting no step was measured: ten labels are needed." in told
    assert "fewer than 8 faults say little" in told
    titles = [title for title, *_ in rows_of(test)]
    assert titles[-1] == "all together"
    assert titles[0].startswith("2.6 ")
