"""Labelled sets with real failures, which another store takes over with what replays have shown of them."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.confirmation import Confirmation, Contrast
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.study.labelled import CARD, PARQUET, RUNS, set_at, shapes_of
from mast_trace_judge.transfer.formats.kinds import StoredRun
from mast_trace_judge.transfer.formats.own_export import EXPORT
from mast_trace_judge.transfer.importing import Importer, Taken, TakenSet, take_set
from mast_trace_judge.transfer.reading import Piece
from mast_trace_lab.fit.command import stored
from mast_trace_lab.inject.dataset import _held_out, _split, build

if TYPE_CHECKING:
    from pathlib import Path

    from stores import Tables

    from mast_trace_collector.storage import Store

FAILED = "ab" * 16


def failure(trace_id: str = FAILED) -> StoredRun:
    steps = tuple(
        Step(
            place,
            StepKind.MESSAGE,
            agent,
            text,
            span_id=f"{place + 1:016x}",
            start=(place + 1) * 10**9,
            end=(place + 2) * 10**9,
        )
        for place, (agent, text) in enumerate(
            (("counter", "There are 310 kettles."), ("planner", "None is missing."), ("buyer", "Order nothing."))
        )
    )  # fmt: skip
    told = Confirmation(
        status="repairable",
        text="A fix of step 0 turns the failure into success.",
        origin=0,
        origin_agent="counter",
        origin_span_id=steps[0].span_id,
        point_of_no_return=1,
        point_agent="planner",
        contrasts=(
            Contrast(
                step=0, agent="counter", source="person", fix_text="There are 130 kettles.",
                fix_successes=5, keep_successes=0, pairs=5, e_value=42.0, threshold=20.0, effect=1.0,
            ),
        ),
        likely=((0, 0.97),),
        planned_contrasts=1,
        replays=10,
        live_calls=30,
    )  # fmt: skip
    return StoredRun(Trajectory(trace_id, steps, task="t", outcome="failure"), confirmation=told)


def keep(store: Store, run: StoredRun) -> None:
    importer = Importer(store)
    importer.take(Piece(EXPORT, run), Taken("test"))
    importer.flush()
    assert importer.confirmations == 1


def rows_of(folder: Path) -> list[Any]:
    return [shape for _, shape in shapes_of(folder)]


def rewrite(folder: Path, **changed: Any) -> None:
    """Change fields of each row; None takes one out."""
    rows = [{**row, **changed} for row in rows_of(folder)]
    texts = [
        json.dumps({key: each for key, each in row.items() if each is not None}) for row in rows
    ]
    (folder / RUNS).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    (folder / PARQUET).unlink(missing_ok=True)


@pytest.fixture
def made_set(store: Store, tables: tuple[Store, Tables], tmp_path: Path) -> Path:
    """A set with one real failure; the store is empty again."""
    keep(store, failure())
    assert build(store, tmp_path, project="other") == rows_of(tmp_path) == []
    assert build(store, tmp_path, service="other") == rows_of(tmp_path) == []
    (built,) = build(store, tmp_path)
    assert built.source == "replay"
    assert build(store, tmp_path, service=built.system) == [built]
    tables[1].renew()
    return tmp_path


def test_hashes_of_names_decide_what_is_held_out() -> None:
    """Six of ten groups are for training and two for each other split; one of four operators is held out."""
    for number in range(200):
        first = int.from_bytes(sha256(str(number).encode()).digest()[:4], "big")
        split = ["train"] * 6 + ["validation"] * 2 + ["test"] * 2
        assert _split(str(number)) == split[first % 10]
        assert _held_out(str(number)) == (first % 4 == 0)


@pytest.mark.parametrize("file", [RUNS, PARQUET])
def test_a_proved_failure_comes_with_its_proof(store: Store, made_set: Path, file: str) -> None:
    if file == PARQUET:
        pytest.importorskip("pyarrow")
        rows = rows_of(made_set)
        (made_set / RUNS).unlink()
        assert rows_of(made_set) == rows
    assert take_set(store, made_set) == TakenSet(0, 0, 1, 1, 0)
    told = confirmation_of(store, "", FAILED)
    assert told == failure().confirmation
    (label,) = stored(store, ["replay"])
    assert (label.step, label.agent, label.success) == (0, "counter", False)
    assert label.trajectory.steps == failure().trajectory.steps
    before = rows_of(made_set)
    build(store, made_set)
    assert rows_of(made_set) == before
    # Twice is once, and what was found here stays.
    assert take_set(store, made_set) == TakenSet(0, 0, 1, 0, 0)
    assert store.query("SELECT count() AS n FROM mast_confirmations FINAL") == [{"n": 1}]


def test_a_card_names_the_frameworks_of_its_project(store: Store, tmp_path: Path) -> None:
    """Another project has a run of the same id."""
    for project, version in (("ours", "1.2"), ("theirs", "3.4")):
        keep(store, replace(failure(), project=project))
        store.command(
            "ALTER TABLE otel_traces UPDATE SpanAttributes = mapUpdate(SpanAttributes, "
            "map('mast.framework', 'ag2', 'mast.framework.version', {version:String})) "
            "WHERE Project = {project:String} SETTINGS mutations_sync = 1",
            {"project": project, "version": version},
        )
    build(store, tmp_path, project="ours")
    told = (tmp_path / CARD).read_text("utf-8")
    assert "ag2 1.2" in told
    assert "ag2 3.4" not in told


def test_a_set_is_told_by_what_it_holds(made_set: Path, tmp_path: Path) -> None:
    assert set_at(made_set) == set_at(made_set / RUNS) == made_set
    (made_set / CARD).unlink()
    assert set_at(made_set) == set_at(made_set / RUNS) == made_set
    other = tmp_path / "other"
    other.mkdir()
    (other / RUNS).write_text('{"messages": []}\n')
    assert set_at(other) is None
    assert set_at(other / RUNS) is None
    assert set_at(made_set / "more.jsonl") is None


def test_a_set_of_before_has_its_confirmed_steps(store: Store, made_set: Path) -> None:
    """It does not say what replays have shown: a step that may be repaired later, or not, is no label."""
    rewrite(made_set, confirmation=None)
    assert take_set(store, made_set) == TakenSet(0, 0, 1, 0, 1)
    assert run_summary(store, FAILED) is not None
    assert confirmation_of(store, "", FAILED) is None
    rewrite(made_set, decisive=True)
    assert take_set(store, made_set) == TakenSet(0, 0, 1, 1, 0)
    told = confirmation_of(store, "", FAILED)
    assert told is not None
    assert (told.status, told.origin, told.origin_agent) == ("confirmed", 0, "counter")
    assert (told.point_of_no_return, told.contrasts, told.replays) == (1, (), 0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"step": 1}, "proves another step"),
        ({"confirmation": {"status": "confirmed", "origin": 9}}, "a step that the run does not have"),
        ({"confirmation": {"status": "proved"}}, "cannot be read at status"),
        ({"confirmation": {"status": "refuted"}}, "proves another step"),
        ({"confirmation": ["confirmed"]}, "cannot be read at its top"),
        ({"run": {"steps": []}}, "is no labelled run"),
    ],
)  # fmt: skip
def test_a_set_that_contradicts_itself_stores_nothing(
    store: Store, made_set: Path, changed: dict[str, Any], reason: str
) -> None:
    rewrite(made_set, **changed)
    with pytest.raises(ConfigurationError, match=reason):
        take_set(store, made_set)
    for table in ("otel_traces", "mast_confirmations", "mast_injections"):
        assert store.query(f"SELECT count() AS n FROM {table}") == [{"n": 0}]
