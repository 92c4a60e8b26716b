"""`judge fit` learns from labels, `judge bench` scores on a labelled set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from invented_records import failure_set, labelled_export

from mast_trace_dashboards.cli.app import run
from mast_trace_judge.local.attribution.profile import Profile

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI
    from fixture_types import Capture, Patch


def _json(capture: Capture, *arguments: str) -> Any:
    assert run([*arguments, "--json"]) == 0
    return json.loads(capture.readouterr().out)


def test_a_profile_is_fitted_to_stored_labels(empty: CLI, tmp_path: Path) -> None:
    out = tmp_path / "profiles" / "own.json"
    empty.json("import", str(labelled_export(tmp_path / "few.jsonl", 9)))
    status, _, err = empty("judge", "fit", "--out", str(out), "--repeats", "1")
    assert (status, out.exists()) == (1, False)
    assert "9 runs have a label with a decisive step; a profile needs 10" in err
    runs = empty.json("import", str(labelled_export(tmp_path / "more.jsonl", 10)))["runs"]
    found = empty.json("judge", "fit", "--out", str(out), "--repeats", "1", "--name", "own")
    assert (found["labels"], found["frameworks"]) == (10, ["ag2"])
    profile = Profile.from_json(out.read_text(encoding="utf-8"))
    assert profile.trained_on == "10 labelled runs of the store"
    before = empty.json("judge", "run", runs[0], "--no-save")["verdict"]["judge_version"]
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[judge]\njudge_profiles_dir = "{out.parent}"\n', encoding="utf-8")
    verdict = empty.json("judge", "run", runs[0], "--config", str(settings))["verdict"]
    assert verdict["judge_version"] != before
    assert verdict["candidates"][0]["step"] == 1


def test_a_profile_is_offered_from_the_tenth_label_on(empty: CLI, tmp_path: Path) -> None:
    assert "No labels yet" in empty("judge", "agree")[2]
    empty.json("import", str(labelled_export(tmp_path / "few.jsonl", 9)))
    _, out, _ = empty("judge", "agree")
    assert "with 1 more the judge can learn" in " ".join(out.split())
    assert "mast-trace label RUN --step N" in out
    assert empty.json("judge", "agree")["fit"]["missing"] == 1
    empty.json("import", str(labelled_export(tmp_path / "more.jsonl", 15)))
    offered = empty.json("judge", "agree")["fit"]
    assert (offered["labels"], offered["missing"], offered["gain"]["runs"]) == (15, 0, 15)
    assert offered["gain"]["difference"]["low"] > 0
    _, out, _ = empty("judge", "agree")
    assert "+100 points" in " ".join(out.split())
    assert "mast-trace judge fit --name own" in out


def test_a_profile_that_was_fitted_is_known_by_its_runs(empty: CLI, tmp_path: Path) -> None:
    empty.json("import", str(labelled_export(tmp_path / "runs.jsonl", 12)))
    folder = tmp_path / "profiles"
    _, out, _ = empty("judge", "fit", "--out", str(folder / "own.json"), "--repeats", "1")
    assert "MAST_TRACE_JUDGE_PROFILES_DIR" in out
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[judge]\njudge_profiles_dir = "{folder}"\n', encoding="utf-8")
    found = empty.json("judge", "agree", "--config", str(settings))
    assert found["fit"]["learned"] == 12


def test_stored_labels_are_counted_by_run(cli: CLI, tmp_path: Path) -> None:
    for annotator in ("fit-a", "fit-b"):
        cli("label", cli.recorded.ids["invoices"], "--annotator", annotator, "--step", "1")
    err = cli.err("judge", "fit", "--out", str(tmp_path / "own.json"), status=1)
    assert "1 runs have a label" in err


def test_a_benchmark_is_printed_and_reported(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "report" / "bench.md"
    arguments = ("--layers", "rules,local", "--repeats", "1", "--report", str(report))
    data = str(failure_set(tmp_path / "set", 12))
    found = _json(capsys, "judge", "bench", "--data", data, *arguments)
    assert "random step" in {score["method"] for score in found["scores"]}
    assert "## proved by replay (12 runs)" in report.read_text(encoding="utf-8")
    assert list(report.parent.glob("*.svg"))


def test_the_model_layer_needs_a_model(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    for name in ("MAST_TRACE_JUDGE_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert run(["judge", "bench", "--data", str(failure_set(tmp_path, 3)), "--layers", "llm"]) == 2
    assert "MAST_TRACE_JUDGE_MODEL" in capsys.readouterr().err
