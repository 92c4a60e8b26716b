"""`label` stores what a person says of a run, by flags or by asking."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.storage import Store
from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI


def _stored(cli: CLI, annotator: str) -> list[HumanLabel]:
    with Store.open(cli.recorded.url) as store:
        return [each for each in labels_of(store) if each.annotator == annotator]


def test_a_label_is_stored_with_the_agent_of_its_step(cli: CLI) -> None:
    run = cli.recorded.ids["invoices"]
    opinion = ("--outcome=failure", "--mode=2.6", "--mode=1.3", "--step=2", "--note=x")
    printed = cli.json("label", run[:8], "--annotator", "ada", *opinion)
    assert printed["decisive_agent"] == "analyst"
    assert _stored(cli, "ada") == [
        HumanLabel(run, "ada", "failure", ("1.3", "2.6"), 2, "analyst", "x", printed["project"])
    ]


def test_several_steps_can_be_decisive_and_survive_an_export(own_cli: CLI, tmp_path: Path) -> None:
    run = own_cli.recorded.ids["invoices"]
    printed = own_cli.json("label", run, "--annotator", "ada", "--step", "3", "--step", "0")
    assert (printed["decisive_step"], printed["decisive_agent"]) == (3, "analyst")
    [label] = _stored(own_cli, "ada")
    assert (label.decisive_steps, label.blind) == ((0, 3), False)
    assert HumanLabel(run, "ada", decisive_steps=(3, 0)).decisive_step == 0
    with Store.open(own_cli.recorded.url) as store:
        save_labels(store, [replace(label, annotator=" ada ", blind=True)])
    file = tmp_path / "runs.jsonl"
    assert own_cli("export", "--out", str(file))[0] == 0
    assert own_cli("import", str(file))[0] == 0
    assert [each.blind for each in _stored(own_cli, "ada")] == [True]
    with Store.open(own_cli.recorded.url) as store:
        store.command("TRUNCATE TABLE mast_human_labels")
    assert own_cli("import", str(file))[0] == 0
    # Nobody here has seen how the label of a file was given.
    assert _stored(own_cli, "ada") == [label]


def test_a_later_label_takes_the_earlier_ones_place(cli: CLI) -> None:
    run = cli.recorded.ids["trip"]
    for outcome in ("failure", "success"):
        out = cli.out("label", run, "--annotator", "bob", "--outcome", outcome)
        assert f"bob's label of run {run}" in out
    assert [each.outcome for each in _stored(cli, "bob")] == ["success"]


@pytest.mark.parametrize(
    ("arguments", "status", "hint"),
    [
        (("ffff", "--outcome", "failure"), 1, "no run's id begins with 'ffff'"),
        (("aa01", "--mode", "9.9"), 2, "no failure mode 9.9"),
        (("aa01", "--step", "99"), 2, "no step 99"),
        (("aa01", "--outcome", "maybe"), 2, "maybe"),
        (("aa01",), 2, "--outcome, --mode, --step or --note"),
    ],
)
def test_unusable_labels_are_refused(
    cli: CLI, arguments: tuple[str, ...], status: int, hint: str
) -> None:
    err = cli.err("label", *arguments, "--annotator", "eve", status=status)
    assert hint in err
    assert _stored(cli, "eve") == []


class _Keyboard(io.StringIO):
    """A terminal at which the given lines are typed."""

    def isatty(self) -> bool:
        """Say that a person sits there."""
        return True


def test_without_an_opinion_a_terminal_asks(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", _Keyboard("failure\n9.9\n1.3, 2.6\n99\n1\nlooped\n"))
    out = cli.out("label", cli.recorded.ids["invoices"], "--annotator", "kim")
    assert "Decisive error" not in out
    assert "list_invoices" in out
    (label,) = _stored(cli, "kim")
    assert (label.outcome, label.modes) == ("failure", ("1.3", "2.6"))
    assert (label.decisive_step, label.note, label.blind) == (1, "looped", True)
    monkeypatch.setattr("sys.stdin", _Keyboard("failure\n-\n2\nagain\n"))
    cli.out("label", cli.recorded.ids["invoices"], "--annotator", " kim ")
    assert [(each.note, each.blind) for each in _stored(cli, "kim")] == [("again", False)]
