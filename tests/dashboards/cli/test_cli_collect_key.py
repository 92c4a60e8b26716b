"""`collect key`: what it makes opens the collector, and the file never holds the key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.security import ProjectKeys, Right
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

    from fixture_types import Capture


def test_keys_gather_in_a_file_of_this_user_alone(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "keys"
    keys = {}
    for project in ("team-a", "team-b"):
        assert run(["collect", "key", project, "--file", str(file), "--json"]) == 0
        keys[project] = json.loads(capsys.readouterr().out)["key"]
        file.write_text(file.read_text().rstrip())  # as an editor may leave it
    assert file.stat().st_mode & 0o777 == 0o600
    assert not any(key in file.read_text() for key in keys.values())
    known = ProjectKeys(file)
    grants = [known.grant_of_key(key) for key in keys.values()]
    assert [(each.project, each.rights) for each in grants if each] == [
        (project, {Right.WRITE}) for project in keys
    ]


def test_without_a_file_the_line_is_shown(capsys: Capture) -> None:
    assert run(["collect", "key", "team-a"]) == 0
    out = capsys.readouterr().out
    assert "team-a sha256:" in out
    assert "mt_" in out


def test_a_name_that_cannot_stand_in_the_file_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert run(["collect", "key", "two words", "--file", str(tmp_path / "keys")]) == 2
    assert "no project name" in capsys.readouterr().err
    assert run(["collect", "key", "team", "--file", str(tmp_path / "no" / "keys")]) == 2
    assert "cannot write the keys file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ([], "write"),
        (["--right", "read"], "read"),
        (["--right", "read", "--right", "label"], "read,label"),
        (["--rights", "label,write,read"], "write,read,label"),
    ],
)
def test_more_rights_are_asked_for(asked: list[str], written: str, capsys: Capture) -> None:
    assert run(["collect", "key", "team", *asked, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["line"].split()[2] == written
    assert made["rights"] == written.split(",")


@pytest.mark.parametrize("asked", ["admin", "", ","])
def test_a_right_that_there_is_not_is_refused(asked: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "keys"
    assert run(["collect", "key", "team", "--right", asked, "--file", str(file)]) == 2
    assert "write, read, label, metrics" in capsys.readouterr().err
    assert not file.exists()
