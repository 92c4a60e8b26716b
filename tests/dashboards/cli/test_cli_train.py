"""`mast-trace train` on stored labels; the training itself has tests of its own in `nox -s train`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from mast_trace_lab.train import command
from mast_trace_lab.train.examples import read_examples

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI
    from fixture_types import Capture, Patch


def test_a_persons_label_becomes_an_example(own_cli: CLI, tmp_path: Path) -> None:
    run = own_cli.recorded.ids["invoices"]
    opinion = ("--outcome", "failure", "--mode", "2.6", "--mode", "1.3", "--step", "2")
    own_cli.json("label", run[:8], "--annotator", "ada", *opinion)
    out = tmp_path / "train.jsonl"
    told = own_cli.json("train", "export", "--out", str(out))
    assert (told["examples"], told["by_source"]) == (1, {"person": 1})
    (example,) = read_examples(out)
    assert (example.id, example.step, example.agent) == (run, 2, "analyst")
    assert (example.mode, example.question, example.source) == ("1.3, 2.6", "read", "person")
    shown = own_cli.out("train", "export", "--question", "step", "--out", str(out))
    assert "Wrote 1 example to" in shown
    assert read_examples(out)[0].question == "step"


def test_nothing_to_train_on_says_what_to_do(cli: CLI, tmp_path: Path) -> None:
    out = tmp_path / "train.jsonl"
    status, shown, errors = cli("train", "export", "--labels", "injection", "--out", str(out))
    assert status == 1
    assert "Wrote 0 examples" in shown
    assert "mast-trace inject RUN" in errors
    errors = cli.err("train", "export", "--labels", "gold", status=2)
    assert "person, replay, injection" in errors


def refused(out: Path, data: str, capture: Capture, *options: str) -> str:
    """The errors of a training that is refused and writes nothing."""
    from mast_trace_dashboards.cli.app import run

    given = ("train", "run", "--model", "m", "--data", data, "--out", str(out), *options)
    assert run(given) == 2
    assert not out.exists()
    return capture.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(
    capsys: Capture, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(
        command, "find_spec", lambda name: None if name == "trl" else find_spec("json")
    )
    told = refused(tmp_path / "out", "no.jsonl", capsys)
    assert "training needs trl: pip install 'mast-trace[train]'" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lambda", "2"), "lambda is a number from 0 to 1"),
        (("--sigma", "0"), "sigma is a number of steps above 0"),
        (("--set", "nonsense"), "NAME=VALUE"),
        (("--micro-batch", "7"), "does not divide"),
    ],
)
def test_settings_are_checked_before_anything_is_loaded(
    capsys: Capture, tmp_path: Path, options: tuple[str, str], told: str
) -> None:
    assert told in refused(tmp_path / "out", "no.jsonl", capsys, *options)


def test_a_missing_training_set_is_named(
    capsys: Capture, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: find_spec("json"))
    told = refused(tmp_path / "out", str(tmp_path / "no.jsonl"), capsys)
    assert "cannot read the training set" in told
    assert list(tmp_path.iterdir()) == []
