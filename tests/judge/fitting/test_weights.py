"""Weights of labels, and the ways to hold them out."""

from dataclasses import replace

import pytest
from planted_runs import OPERATORS, person, planted, planted_set

from mast_trace_lab.fit.labels import (
    INJECTION,
    PERSON,
    labels_from,
    prevalence,
    units_of,
    weigh_labels,
)
from mast_trace_lab.fit.models import JOINT, OPERATOR, PLAIN, SCENARIO, cells

pytest.importorskip("numpy")


def test_a_scenario_counts_once_however_many_faults_it_has():
    labels = labels_from([*planted_set(scenarios=2), *planted_set(OPERATORS[:2], 1, 5)])
    weights = weigh_labels(labels, 1.0, {})
    sums = {}
    for label, weight in zip(labels, weights, strict=True):
        sums[label.scenario] = sums.get(label.scenario, 0) + weight
    assert list(sums.values()) == pytest.approx([1.0, 1.0])


def test_without_peoples_modes_operators_count_alike():
    labels = labels_from([*planted_set(OPERATORS[:1], 1, 9), planted(OPERATORS[3], 1)])
    weights = weigh_labels(labels, 1.0, {})
    assert sum(weights[:9]) == pytest.approx(weights[9])


def test_modes_are_weighed_to_their_prevalence_among_people():
    people = [
        replace(person(n), modes={"2.6": True} if n < 9 else {"2.4": True}) for n in range(10)
    ]
    labels = labels_from([*people, planted("2.6-number", 1), planted("2.4-withhold", 1)])
    assert prevalence(labels) == {"2.6": 0.9, "2.4": 0.1}
    weights = weigh_labels(labels, 0.3, prevalence(labels))
    assert weights[-2] / weights[-1] == pytest.approx(9.0)
    assert weights[-2] + weights[-1] == pytest.approx(0.3)
    assert weights[:10] == [1.0] * 10


def test_a_fault_of_the_environment_blames_nobody():
    label = labels_from([planted("tool-empty", 1)])[0]
    assert (label.example.blamed, label.mode) == ((), "")
    assert label.example.gold is not None


@pytest.mark.parametrize("scheme", [PLAIN, SCENARIO, OPERATOR, JOINT])
def test_what_is_held_out_is_not_learned_from(scheme):
    labels = labels_from([*planted_set(), *map(person, range(8))])
    units, name = units_of(labels)
    assert name == "task"
    found = cells(labels, units, scheme, 0)
    tested = [place for cell in found for place in cell.test]
    assert len(tested) == len(set(tested))
    expected = {i for i, label in enumerate(labels) if label.operator or scheme != OPERATOR}
    assert set(tested) == expected
    for cell in found:
        for place in cell.test:
            for other in cell.train:
                one, two = labels[place], labels[other]
                assert place != other
                if scheme == PLAIN:
                    assert one.origin != two.origin
                if scheme in {SCENARIO, JOINT}:
                    assert one.scenario != two.scenario
                if scheme in {OPERATOR, JOINT} and one.operator:
                    assert one.operator != two.operator


def test_faults_in_one_run_leave_no_scenario_to_hold_out():
    labels = labels_from(planted_set(scenarios=1, each=3))
    units, name = units_of(labels)
    assert name == "none"
    assert [cells(labels, units, scheme, 0) for scheme in (PLAIN, SCENARIO, JOINT)] == [[], [], []]
    assert len(cells(labels, units, OPERATOR, 0)) == len(OPERATORS)


def test_originals_of_one_task_are_never_divided():
    runs = [replace(run, trajectory=replace(run.trajectory, task="One.")) for run in planted_set()]
    labels = labels_from(runs)
    units, name = units_of(labels)
    assert name == "run"
    for cell in cells(labels, units, SCENARIO, 0):
        assert not {labels[i].origin for i in cell.test} & {labels[i].origin for i in cell.train}


def test_labels_are_chosen_by_source():
    runs = [*planted_set(OPERATORS[:1], 2), person(1)]
    assert {label.source for label in labels_from(runs)} == {INJECTION, PERSON}
    assert {label.source for label in labels_from(runs, [PERSON])} == {PERSON}
    assert labels_from([replace(person(1), step=None, agent="")]) == []
