"""A training set has the labelled failures of a store, or of a set's folder, each once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import toy_training
from judge.store.invented_replays import run as summary

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.planted import UNCERTAIN
from mast_trace_judge.store.injections import Injection, save_injection
from mast_trace_judge.study.labelled import shapes_of
from mast_trace_lab.inject.dataset import build, sources_of
from mast_trace_lab.inject.operators import OPERATORS
from mast_trace_lab.train.examples import divide
from mast_trace_lab.train.export import Export, set_failures, stored_failures

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_lab.train.export import Failure

ORIGINAL = "aa" * 16


def planted(store: Store, number: int, **more: object) -> Injection:
    """A stored fault in a run of the toy's."""
    run = toy_training.failures(number + 1)[number].run
    usual = {
        "operator": "2.6-number",
        "mode": "2.6",
        "verdict": "kept",
        "decisive": True,
        "agent": "tester",
    }
    fault = Injection(
        project="shop",
        original=ORIGINAL,
        fault_id=f"f{number}",
        level="answer",
        step=2,
        run=run,
        **{**usual, **more},  # type: ignore[arg-type]
    )
    save_injection(store, fault, summary(trace_id=ORIGINAL, outcome="success"))
    return fault


def exported(failures: list[Failure]) -> tuple[Export, list[str]]:
    """The export, and the ids of its examples."""
    export = Export("step", JudgeConfig(), "v")
    return export, [each.id for each in export.examples(failures)]


def test_planted_faults_are_exported_with_their_labels(store: Store) -> None:
    planted(store, 0)
    planted(store, 1, verdict="survived")
    planted(store, 2, mode="", operator="tool-wrong")
    planted(store, 3, verdict="unproved")
    found = list(stored_failures(store, ["injection"]))
    assert [each.id for each in found] == ["f0", "f2"]
    assert (found[0].group, found[0].step, found[0].agent, found[0].mode) == (
        ORIGINAL,
        2,
        "tester",
        "2.6",
    )
    assert (found[1].agent, found[1].mode) == ("", "")
    assert list(stored_failures(store, ["person", "replay"])) == []
    assert list(stored_failures(store, ["injection"], project="other")) == []


def test_a_set_and_its_store_give_the_same(store: Store, tmp_path: Path) -> None:
    for number, operator in enumerate(("2.6-number", "3.1-later", "1.1-unit", "tool-wrong")):
        planted(store, number, operator=operator)
    build(store, tmp_path)
    sources = sources_of("replay,injection")
    by_id = [
        {each.id: each for each in found}
        for found in (set_failures(tmp_path, sources), stored_failures(store, sources))
    ]
    assert by_id[0] == by_id[1]
    assert len(by_id[0]) == 4
    assert len({each.held_out_operator for each in by_id[0].values()}) == 2
    assert list(set_failures(tmp_path, ["person"])) == []
    with pytest.raises(ConfigurationError, match="no labelled set"):
        list(set_failures(tmp_path / "none", sources))


def test_uncertain_labels_are_exported_only_if_asked(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("2.6-number", "tool-wrong", *sorted(UNCERTAIN))
    for number, operator in enumerate(names):
        planted(store, number, operator=operator, mode=OPERATORS[operator].mode)
    build(store, tmp_path)
    marks = {row["operator"]: row["uncertain"] for _, row in shapes_of(tmp_path)}
    assert marks == {name: OPERATORS[name].uncertain for name in names}
    card = (tmp_path / "card.md").read_text()
    assert (f"those of {', '.join(sorted(UNCERTAIN))}:" in card) == bool(UNCERTAIN)
    monkeypatch.setattr("mast_trace_judge.planted.UNCERTAIN", {"tool-wrong"})
    found = list(stored_failures(store, ["injection"]))
    export, ids = exported(found)
    assert ids == [each.id for each in found if each.operator != "tool-wrong"]
    assert export.left_out == {"the operator is uncertain (--uncertain takes them in)": 1}
    whole = Export("step", JudgeConfig(), "v", uncertain=True)
    assert [each.id for each in whole.examples(found)] == [each.id for each in found]


def test_a_run_counts_once_and_peoples_labels_first() -> None:
    first, second = toy_training.failures(2)
    other = replace(first, source="replay", step=1)
    export, ids = exported([first, other, second])
    assert ids == [first.id, second.id]
    assert export.written == {"person": 2}
    assert export.left_out == {"labelled by another source as well": 1}


def test_runs_that_teach_nothing_are_left_out_with_the_reason() -> None:
    first, second, third = toy_training.failures(3)
    beyond = replace(first, step=9)
    success = replace(second, run=replace(second.run, outcome="success"))
    unread = replace(third, run=replace(third.run, unread_from=1, unread_to=3))
    export, ids = exported([beyond, success, unread])
    assert ids == []
    assert export.left_out == {
        "the labelled step is not in the record": 2,
        "the recorded outcome is a success": 1,
    }


def test_faults_of_one_original_are_never_divided(store: Store) -> None:
    for number in range(6):
        planted(store, number)
    export = Export("step", JudgeConfig(), "v")
    made = list(export.examples(stored_failures(store, ["injection"])))
    with pytest.raises(ConfigurationError, match="come from one run"):
        divide(made, 0.2)


def test_sources_are_named_or_refused() -> None:
    assert sources_of("injection, person") == ("person", "injection")
    for wrong in ("people", "", " , "):
        with pytest.raises(ConfigurationError, match="person, replay, injection"):
            sources_of(wrong)
