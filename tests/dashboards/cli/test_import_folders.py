"""`import` of folders of published runs: labels come along, and `judge agree` compares them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from judge.data import labelled_runs

from mast_trace_collector.storage import Store
from mast_trace_judge.store.labels import NO_MODES, HumanLabel, labels_of
from mast_trace_judge.study.bench import run_bench

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI

STEPS = ["Orchestrator (thought)", "Orchestrator (-> WebSurfer)", "WebSurfer"]
COLUMNS = {"Step repetition": "1.3", "Trajectory restart": "2.1"}


def _who_and_when(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    history = [{"role": "human", "content": f"Question {number}?"}]
    history += [{"role": role, "content": f"Part {number} of {role}."} for role in STEPS]
    record = {
        "question": f"Question {number}?",
        "question_ID": f"q{number}",
        "history": history,
        "mistake_agent": "WebSurfer",
        "mistake_step": "3",
    }
    (folder / f"{number}.json").write_text(json.dumps(record), encoding="utf-8")


def _agentrx(folder: Path, number: int) -> None:
    folder.mkdir()
    failures = [
        {"failure_id": 1, "step_number": 2, "failed_agent": "Orchestrator"},
        {"failure_id": "2", "step_number": 4, "failed_agent": "WebSurfer"},
    ]
    record = {
        "trajectory_id": f"q{number}",
        "failures": failures,
        "root_cause": {"failure_id": 1, **failures[0]},
    }
    path = folder / "magentic_one_labels.json"
    path.write_text(json.dumps([record]), encoding="utf-8")


def _mast(folder: Path) -> None:
    (folder / "traces").mkdir(parents=True)
    (folder / "v0_to_mast14.json").write_text(json.dumps(COLUMNS), encoding="utf-8")
    rows = []
    for number, shown in enumerate((True, False)):
        messages = [{"name": "solver", "content": f"Trace {number}."}]
        trace = {"trajectory": messages, "problem_statement": f"Problem {number}"}
        name = f"traces/{number}.json"
        (folder / name).write_text(json.dumps(trace), encoding="utf-8")
        rows.append(
            {
                "framework": "AG2",
                "task_id": str(number),
                "trace_file": name,
                "solved": "FALSE",
                "v0_labels": dict.fromkeys(COLUMNS, shown),
                "o1_v1": {"1.3": True, "2.1": False, "2.7": True},
            }
        )
    lines = "\n".join(json.dumps(row) for row in rows)
    (folder / "labels.jsonl").write_text(lines, encoding="utf-8")


def _labels(cli: CLI) -> dict[str, list[HumanLabel]]:
    found: dict[str, list[HumanLabel]] = {}
    with Store.open(cli.recorded.url) as store:
        for label in labels_of(store):
            found.setdefault(label.annotator, []).append(label)
    return found


def test_two_teams_labels_of_one_run_stand_side_by_side(empty: CLI, tmp_path: Path) -> None:
    for number in (1, 2):
        _who_and_when(tmp_path / "who-and-when" / "hand-crafted", number)
    _agentrx(tmp_path / "agentrx", 2)
    found = empty.json("import", str(tmp_path))
    assert (len(found["runs"]), found["labels"]) == (2, 3)
    labels = _labels(empty)
    (second,) = labels["AgentRx"]
    assert (second.decisive_step, second.decisive_agent) == (1, "Orchestrator")
    assert {label.decisive_step for label in labels["Who&When"]} == {3}
    (steps,) = empty.json("judge", "agree")["decisive"]
    assert steps["annotators"] == ["AgentRx", "Who&When"]
    assert (steps["runs"], steps["exact"], steps["within_three"]) == (1, 0.0, 1.0)


def test_masts_people_and_models_become_raters(empty: CLI, tmp_path: Path) -> None:
    _mast(tmp_path / "mast-v0")
    assert empty.json("import", str(tmp_path))["labels"] == 6
    labels = _labels(empty)
    assert {label.modes for label in labels["MAST"]} == {("1.3", "2.1"), NO_MODES}
    assert {label.modes for label in labels["o1, few examples"]} == {("1.3",)}
    assert {label.modes for label in labels["Claude 3.7"]} == {()}
    agreed = {each["subject"]: each for each in empty.json("judge", "agree")["modes"]}
    assert (agreed["1.3"]["items"], agreed["1.3"]["both"], agreed["1.3"]["observed"]) == (2, 1, 0.5)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "who-and-when/hand-crafted/1.json",
            {"history": []},
            "1.json is no labelled run: it has no",
        ),
        ("who-and-when/hand-crafted/2.json", [], "2.json is no labelled run"),
        ("mast-v0/v0_to_mast14.json", {}, "labels.jsonl"),
        ("notes.json", {"history": []}, "no messages"),
        ("notes.md", {"history": []}, "no files of runs"),
    ],
)
def test_a_folder_that_cannot_be_read_is_named(
    empty: CLI, tmp_path: Path, name: str, value: Any, reason: str
) -> None:
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    err = empty.err("import", str(tmp_path / "data"), status=1)
    assert str(tmp_path / "data") in err
    assert reason in err
    assert empty.json("runs") == []


def test_the_worked_example_of_the_documentation(empty: CLI, tmp_path: Path) -> None:
    """MAST's traces, imported, judged and compared, give the figures of the benchmark.

    A transcript proves nothing by its spans, which the import made up: judged from the store it
    shows what it shows when it is read from its file.
    """
    folder = labelled_runs() / "mast-v0"
    (tmp_path / "mast-v0").symlink_to(folder.resolve())
    assert len(empty.json("import", str(tmp_path))["runs"]) == 54
    assert empty.json("judge", "run", "--since", "2000-01-01")["judged"] == 54
    agreed = {
        (each["subject"], *each["annotators"]): each
        for each in empty.json("judge", "agree")["modes"]
    }
    bench = {
        each.subject: each
        for each in run_bench(tmp_path, ["rules"]).modes
        if each.annotators == ("people", "rules")
    }
    for code in ("1.3", "2.1", "3.1", "3.2"):
        found = agreed[code, "MAST", "mast-trace judge"]
        assert tuple(found["positives"]) == bench[code].positives
        assert found["both"] == bench[code].both
    assert agreed["2.1", "MAST", "mast-trace judge"]["kappa"] >= 0.7
    assert agreed["1.3", "MAST", "mast-trace judge"]["kappa"] >= 0.35
    assert agreed["all modes", "Claude 3.7", "MAST"]["kappa"] < 0.2
    assert agreed["2.6", "MAST", "mast-trace judge"]["kappa"] is None
