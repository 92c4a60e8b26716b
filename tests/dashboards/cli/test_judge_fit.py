"""`judge fit` on labels of people, confirmed replays and planted faults, from a store and from a set."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from judge.fitting.planted_runs import OPERATORS, person, planted, planted_set
from judge.store.invented_replays import run as summary

from mast_trace.trajectory import to_dict
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.store.confirmations import take_over
from mast_trace_judge.store.injections import Injection, save_injection
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_lab.inject.dataset import build

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conftest import CLI
    from fixture_types import Patch

    from mast_trace_judge.study.labelled import LabelledRun


MARKS = "mast_trace_judge.planted.UNCERTAIN"


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch: Patch) -> None:
    """No operator is uncertain here, whatever the last measurement of the labels' truth says."""
    monkeypatch.setattr(MARKS, frozenset())


def _plant(store: Store, runs: Sequence[LabelledRun]) -> None:
    """Store planted faults, each kept, as `mast-trace inject` does."""
    for number, each in enumerate(runs):
        original = summary(int(each.group.split()[-1]), outcome="success", project="")
        fault = Injection(
            project="",
            original=original.trace_id,
            fault_id=f"{number:04x}",
            operator=each.extra["operator"],
            mode=next(iter(each.modes), ""),
            level="answer",
            step=each.step or 0,
            agent=each.trajectory.steps[each.step or 0].agent,
            verdict="kept",
            decisive=True,
            framework="mine",
            run=each.trajectory,
        )
        save_injection(store, fault, original)


def _import(cli: CLI, folder: Path, runs: Sequence[LabelledRun]) -> list[str]:
    """Put recorded failures into the store and return their ids."""
    ids = [f"{number + 100:032x}" for number in range(len(runs))]
    file = folder / "runs.jsonl"
    lines = [
        {"trace_id": own, "trajectory": to_dict(replace(each.trajectory, trace_id=own))}
        for own, each in zip(ids, runs, strict=True)
    ]
    shapes = [{**line, "verdict": None, "labels": []} for line in lines]
    file.write_text("".join(json.dumps(shape) + "\n" for shape in shapes), "utf-8")
    assert cli("import", str(file))[0] == 0
    return ids


def test_labels_of_all_sources_are_fitted_to(empty: CLI, tmp_path: Path) -> None:
    ids = _import(empty, tmp_path, [person(n) for n in range(14)])
    with Store.open(empty.recorded.url) as store:
        _plant(store, planted_set(OPERATORS[:4], 5))
        save_labels(
            store,
            [
                HumanLabel(own, "ada", "failure", ("2.6",), n % 4 + 1, f"worker{n % 4}")
                for n, own in enumerate(ids[:11])
            ],
        )
        for number, own in enumerate(ids[10:], 10):
            told = Confirmation(
                status="confirmed", origin=number % 4 + 1, origin_agent=f"worker{number % 4}"
            )
            found = run_summary(store, own)
            assert found is not None
            assert take_over(store, found, told)
    before = empty.json("judge", "agree")
    out = tmp_path / "profiles" / "own.json"
    options = ("judge", "fit", "--labels", "person,replay,injection", "--repeats", "1")
    found = empty.json(*options, "--out", str(out))
    # One run has a person's label and a replay's: it counts once, as the person's.
    assert found["report"]["given"] == {"person": 11, "replay": 3, "injection": 20}
    # People's labels need no planted faults here, so they get no weight.
    assert (found["injected_weight"], found["sources"]) == (0.0, {"person": 11, "replay": 3})
    assert (found["written"], found["injection_only"]) == (True, False)
    assert found["report"]["people"]["runs"] == 11
    assert found["report"]["decision"]["better"]
    profile = Profile.from_json(out.read_text("utf-8"))
    assert (profile.sources, profile.injected_weight) == (found["sources"], 0.0)
    # Planted faults are in no figure of agreement with people.
    assert empty.json("judge", "agree") == before
    assert before["labelled"] == 11


@pytest.fixture
def made_set(empty: CLI, tmp_path: Path) -> Path:
    """A set of `dataset build` with planted faults."""
    with Store.open(empty.recorded.url) as store:
        _plant(store, planted_set(OPERATORS, 5))
        build(store, tmp_path / "set")
    return tmp_path / "set"


def fit(cli: CLI, made_set: Path, out: Path, *more: str, status: int = 0) -> str:
    """Fits to a set, and returns what is printed, in one line."""
    options = ("--dataset", str(made_set), "--out", str(out), "--repeats", "1")
    assert run(["judge", "fit", *options, *more]) == status
    return " ".join(cli.capture.readouterr().out.split())


def test_a_set_is_fitted_to_and_its_reserved_operators_are_not(
    made_set: Path, empty: CLI, tmp_path: Path
) -> None:
    out = tmp_path / "own.json"
    told = fit(empty, made_set, out, "--url", f"chdb://{tmp_path / 'nowhere'}")
    assert "25 injection" in told
    assert "Injection only" in told
    assert "operators and scenarios left out together" in told
    assert "Operators that the set reserves" in told
    assert "Gate for planted faults: not passed" in told
    assert "25 failures (at least 60), 5 scenarios (at least 8)" in told
    assert "no planted fault counts as one" in told
    assert "is better than the judge without a profile of yours" in told
    profile = Profile.from_json(out.read_text("utf-8"))
    assert profile.labels == 25
    assert profile.injection_only
    assert not (tmp_path / "nowhere").exists()


def test_labels_of_uncertain_operators_are_left_out_unless_asked_for(
    made_set: Path, empty: CLI, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(MARKS, frozenset({"tool-error", "2.4-withhold"}))
    left = {"tool-error": 5, "2.4-withhold": 5}
    found = json.loads(fit(empty, made_set, tmp_path / "own.json", "--force", "--json"))
    assert (found["left_out_as_uncertain"], found["labels"]) == (left, 15)
    bench = ("judge", "bench", "--data", str(made_set), "--repeats", "1", "--layers", "rules")
    for more, counts, modes in (
        ((), left, {"2.6", "3.2"}),
        (("--uncertain",), {}, {"2.4", "2.6", "3.2"}),
    ):
        assert run([*bench, *more, "--json"]) == 0
        scored = json.loads(empty.capture.readouterr().out)
        assert scored["left_out"] == counts
        assert {row["code"] for row in scored["planted"]} == modes
    with Store.open(empty.recorded.url) as store:
        store.command("TRUNCATE TABLE mast_injections")
        _plant(store, planted_set(("tool-error",), 5, 2))
    err = empty.err("judge", "fit", "--labels", "injection", status=1)
    told = " ".join(err.split())
    assert "0 runs have a label" in told
    assert "10 labels of uncertain operators were left out (tool-error 10); --uncertain" in told


def test_the_old_profile_stays_unless_beaten(made_set: Path, empty: CLI, tmp_path: Path) -> None:
    """A second fit to the same labels ends with 1, says by how much, and leaves the file; --force writes it."""
    out = tmp_path / "own.json"
    fit(empty, made_set, out)
    first = out.read_text("utf-8")
    told = fit(empty, made_set, out, "--name", "second", status=1)
    assert "is not shown to be better than profile own" in told
    assert "stays as it is" in told
    assert out.read_text("utf-8") == first
    found = json.loads(fit(empty, made_set, out, "--name", "second", "--force", "--json"))
    assert found["written"]
    assert not found["report"]["decision"]["better"]
    assert Profile.from_json(out.read_text("utf-8")).name == "second"


def test_a_set_brings_the_labels_of_replays(empty: CLI, tmp_path: Path) -> None:
    (own,) = _import(empty, tmp_path, [person(1)])
    told = Confirmation(status="repairable", origin=2, origin_agent="worker2")
    out = tmp_path / "set"
    with Store.open(empty.recorded.url) as store:
        found = run_summary(store, own)
        assert found is not None
        assert take_over(store, found, told)
        build(store, out)
        store.command("TRUNCATE TABLE mast_confirmations")
    rows = (out / "runs.jsonl").read_text("utf-8")
    before = json.loads(rows)
    del before["confirmation"]
    (out / "runs.jsonl").write_text(json.dumps(before), "utf-8")
    said = empty.out("import", str(out))
    shown = " ".join(said.split())
    assert "1 real failures, as runs, 0 new labels; 1 of them without a label" in shown
    (out / "runs.jsonl").write_text(rows, "utf-8")
    taken = empty.json("import", str(out))
    assert (taken["failures"], taken["new_labels"], taken["without_label"]) == (1, 1, 0)
    status, _, err = empty("judge", "fit", "--labels", "replay")
    assert (status, "1 runs have a label" in " ".join(err.split())) == (1, True)


def test_a_benchmark_reads_a_set_of_ones_own(made_set: Path, empty: CLI, tmp_path: Path) -> None:
    out = tmp_path / "profiles" / "own.json"
    fit(empty, made_set, out)
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[judge]\njudge_profiles_dir = "{out.parent}"\n', encoding="utf-8")
    options = ("--data", str(made_set), "--repeats", "1", "--config", str(settings), "--json")
    assert run(["judge", "bench", *options]) == 0
    found = json.loads(empty.capture.readouterr().out)
    parts = {
        score["subset"]: score["runs"]
        for score in found["scores"]
        if score["method"] == "random step"
    }
    assert parts == {
        "planted faults": 10,
        "planted faults of reserved operators": 5,
        "planted faults of the environment": 15,
    }
    own = {
        (score["subset"], score["in_sample"])
        for score in found["scores"]
        if score["method"].startswith("with profiles of your own")
    }
    assert own == {
        ("planted faults", 10),
        ("planted faults of reserved operators", 0),
        ("planted faults of the environment", 15),
    }
    recall = {row["code"]: row["runs"] for row in found["planted"]}
    assert recall == {"2.4": 5, "2.6": 5, "3.2": 5}


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--labels", "people"), 2, "no labels of people; sources are person, replay, injection"),
        (("--labels", ","), 2, "name at least one source"),
        (("--labels", "injection"), 1, "0 injection"),
        (("--dataset", "."), 2, "holds no labelled set"),
    ],
)
def test_refusals_say_what_to_do(
    empty: CLI, tmp_path: Path, monkeypatch: Patch, options: tuple[str, ...], status: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    err = empty.err("judge", "fit", *options, status=status)
    assert said in " ".join(err.split())
    assert not list(tmp_path.glob("*.json"))


def test_a_file_of_no_profile_is_not_replaced(made_set: Path, empty: CLI, tmp_path: Path) -> None:
    out = tmp_path / "own.json"
    out.write_text("{}")
    assert run(["judge", "fit", "--dataset", str(made_set), "--out", str(out)]) == 2
    assert "is no attribution profile" in empty.capture.readouterr().err
    assert out.read_text() == "{}"


def test_faults_of_one_run_end_in_words(empty: CLI, tmp_path: Path) -> None:
    """Nothing can be held out: the profile is refused, and the way out is named."""
    with Store.open(empty.recorded.url) as store:
        _plant(store, [planted(each, 1, n) for each in OPERATORS for n in range(2)])
    out = tmp_path / "own.json"
    told = empty.out("judge", "fit", "--labels", "injection", "--out", str(out), status=1)
    assert "plant some in further runs" in " ".join(told.split())
    assert "could not be compared" in " ".join(told.split())
    assert not out.exists()


def test_few_tasks_are_told_as_runs(empty: CLI, tmp_path: Path) -> None:
    """Neither a title nor the decision nor the gate says that a scenario was held out where none was."""
    with Store.open(empty.recorded.url) as store:
        _plant(store, planted_set(OPERATORS[:4], 3))
    out = tmp_path / "own.json"
    options = ("--labels", "injection", "--out", str(out), "--repeats", "1")
    told = " ".join(empty("judge", "fit", *options)[1].split())
    assert "operators and original runs left out together" in told
    assert "in unseen original runs, operators alike" in told
    assert "fewer than 5 tasks, so that folds divide runs" in told
    assert "not scenarios but original runs were held out" in told
    assert "unseen scenarios" not in told
    assert "scenarios left out" not in told
