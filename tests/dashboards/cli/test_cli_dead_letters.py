"""`collect dead-letters`: beside a collector that runs, and without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    made = DeadLetters(tmp_path / "dead-letters")
    made.add("0001-ab.0", b"first", 3, "no OTLP \x1b[2J request")
    made.add("0002-cd.7", b"second", 1, "a date that no calendar knows")
    return made


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = run(["collect", "dead-letters", *arguments, "--data-dir", str(tmp_path)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def listed(command: Command) -> dict[str, Any]:
    status, out, _ = command("list", "--json")
    assert status == 0
    return {letter["id"]: letter for letter in json.loads(out)}


def test_they_are_listed_with_their_reasons(letters: DeadLetters, command: Command) -> None:
    found = listed(command)
    assert list(found) == ["0001-ab.0", "0002-cd.7"]
    assert found["0001-ab.0"]["items"] == 3
    _, out, _ = command("list")
    assert "a date that no calendar knows" in out
    assert "\x1b" not in out


def test_an_empty_folder_is_said_to_be_empty(command: Command) -> None:
    assert command("list")[:2] == (0, "There are no dead letters.\n")
    assert command("list", "--json")[:2] == (0, "[]\n")


def test_chosen_ones_are_retried(letters: DeadLetters, command: Command) -> None:
    assert command("retry", "0002-cd.7")[1] == "1 dead letter will be tried again.\n"
    assert [letter.id for letter, _ in letters.due()] == ["0002-cd.7"]
    assert {id_: each["retrying"] for id_, each in listed(command).items()} == {
        "0001-ab.0": False,
        "0002-cd.7": True,
    }
    assert "(to be retried)" in command("list")[1]


def test_all_are_dropped_or_retried(letters: DeadLetters, command: Command) -> None:
    assert json.loads(command("retry", "--all", "--json")[1]) == ["0001-ab.0", "0002-cd.7"]
    assert len(list(letters.due())) == 2
    assert command("drop", "--all")[1] == "2 dead letters dropped.\n"
    assert len(letters) == 0


@pytest.mark.parametrize("act", ["retry", "drop"])
def test_an_unknown_one_is_not_found(letters: DeadLetters, command: Command, act: str) -> None:
    status, out, err = command(act, "0001-ab.0", "nonsense")
    assert (status, out) == (1, "")
    assert "there is no dead letter nonsense" in err
    assert len(letters) == 2
    assert list(letters.due()) == []


@pytest.mark.parametrize("arguments", [[], ["0001-ab.0", "--all"]])
@pytest.mark.parametrize("act", ["retry", "drop"])
def test_which_ones_must_be_said(
    letters: DeadLetters, command: Command, act: str, arguments: list[str]
) -> None:
    status, _, err = command(act, *arguments)
    assert status == 2
    assert "--all" in err
    assert len(letters) == 2


def test_those_of_logs_are_dropped(letters: DeadLetters, command: Command, tmp_path: Path) -> None:
    logs = DeadLetters(tmp_path / "dead-letters" / "logs")
    logs.add("0001-ef.1", b"third", 2, "no OTLP logs request")
    assert list(listed(command)) == ["0001-ab.0", "0002-cd.7", "0001-ef.1"]
    assert command("drop", "0001-ef.1", "0001-ab.0")[0] == 0
    assert (len(letters), len(logs)) == (1, 0)
