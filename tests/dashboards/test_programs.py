"""Programs of the configuration file: how a run finds its own, and what cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.found_pattern import command_line
from mast_trace_dashboards.programs import config_file, program_of, programs_of
from mast_trace_lab.program.setup import Setup, setup_of

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIP = {"command": "python trip.py", "oracle": ["python", "check it.py"], "reset": "./reset.sh"}
PROGRAMS: dict[str, Any] = {
    "trip": {**TRIP, "live_tools": "book", "budget": {"calls": 9, "usd": 1}},
    "desk": {"command": ["python", "desk.py"]},
}


@pytest.mark.parametrize(
    ("names", "command", "found"),
    [
        (("trip", "desk"), "", "trip.py"),  # the run's name comes before its service
        (("refund", "desk"), "", "desk.py"),
        (("trip", "desk"), "other.py", "other.py"),
        (("refund", "shop"), "other.py", "other.py"),
    ],
)
def test_a_run_finds_its_program(names: Sequence[str], command: str, found: str) -> None:
    given = ["python", command] if command else []
    assert program_of(PROGRAMS, names, command=given).command == ("python", found)


def test_a_command_of_its_own_keeps_the_rest_of_the_table() -> None:
    found = program_of(PROGRAMS, ["trip"], command=["x"])
    assert (found.oracle, found.budget.calls) == (("python", "check it.py"), 9)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ("reset=true", "reset", ("true",)),
        ("oracle=sh -c 'exit 3'", "oracle", ("sh", "-c", "exit 3")),
        ("live_tools=cancel", "live_tools", ("book", "cancel")),
        ('plain=["add", "sum"]', "plain", ("add", "sum")),
        ("timeout=7", "timeout", 7.0),
        ("expected=210", "expected", "210"),
        ("resample=false", "resample", False),
    ],
)
def test_the_command_line_comes_before_the_file(given: str, name: str, value: object) -> None:
    assert getattr(program_of(PROGRAMS, ["trip"], given=[given]), name) == value


def test_a_key_of_a_table_in_it_leaves_the_others() -> None:
    found = program_of(PROGRAMS, ["trip"], given=["budget.calls=3"]).budget
    assert (found.calls, found.usd) == (3, 1)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"orakle": "x"}, r"programs\.p\.orakle: there is no such key"),
        ({"command": ""}, r"programs\.p\.command"),
        ({"command": "'open"}, r"programs\.p\.command: cannot read"),
        ({"command": [""]}, r"programs\.p\.command"),
        ({"command": 7}, r"programs\.p\.command: it takes a text or a list of texts"),
        ({"budget": 200}, r"programs\.p\.budget: it takes a table"),
        ({"budget": {"calls": 0}}, r"programs\.p\.budget\.calls"),
        ({"jobs": 17}, r"programs\.p\.jobs"),
    ],
)
def test_what_cannot_be_used_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        program_of({"p": {"command": "x", **table}}, ["p"])


@pytest.mark.parametrize("given", ["timeout", "=3", "a b=3", "timeout.x=1", "nothing=1"])
def test_a_value_of_the_command_line_that_cannot_be_used(given: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--set|programs\.trip"):
        program_of(PROGRAMS, ["trip"], given=[given])


def test_an_unknown_program_is_told_with_the_lines_that_declare_it() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        program_of(PROGRAMS, ["refund", 'my "shop"\n'])
    assert '[programs."my \\"shop\\"\\n"] with command = ' in str(refusal.value)
    assert "desk, trip" in str(refusal.value)


def test_a_misspelt_command_is_named_as_such() -> None:
    with pytest.raises(ConfigurationError, match=r"programs\.p\.kommand: there is no such key"):
        program_of({"p": {"kommand": "x"}}, ["shop", "p"])
    with pytest.raises(ConfigurationError, match=r"write \[programs\.p\] with command = [^(]*$"):
        program_of({"p": {"oracle": "x"}}, ["p", "shop"])


def test_a_table_becomes_a_setup() -> None:
    assert setup_of(program_of(PROGRAMS, ["trip"], given=["plain=all"])) == Setup(
        ("python", "trip.py"),
        oracle=("python", "check it.py"),
        reset=("./reset.sh",),
        live_tools=("book",),
        plain=("*",),
    )


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("[programs.p]\ncommand = 'x'\n", 0o666, "chmod o-w"),
        ("[programs]\np = 'x'\n", 0o600, "programs are tables"),
        ("[", 0o600, "cannot be read as TOML"),
    ],
)
def test_a_file_that_cannot_be_trusted_or_read(
    tmp_path: Path, text: str, mode: int, said: str
) -> None:
    """Commands of a file that every user can change would be anybody's."""
    file = tmp_path / "mast-trace.toml"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match=said):
        programs_of(file)


def test_the_file_of_the_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (config_file(None), programs_of(config_file(None))) == (None, {})
    Path("mast-trace.toml").write_text("[programs.trip]\ncommand = 'x'\n")
    Path("mast-trace.toml").chmod(0o600)
    assert programs_of(config_file(None)) == {"trip": {"command": "x"}}
    assert config_file(Path("other.toml")) == Path("other.toml")


@pytest.mark.parametrize("command", ["prove", "replay", "confirm", "inject", "compare", "show"])
@pytest.mark.parametrize("where", ["here", "named", "nowhere", "unreadable"])
def test_a_suggested_command_says_where_the_program_belongs(
    command: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAST_TRACE_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ("other.toml" if where == "named" else "mast-trace.toml")
    if where != "nowhere":
        file.write_text("[" if where == "unreadable" else '[programs.trip]\ncommand = "trip"\n')
    if where == "named":
        monkeypatch.setenv("MAST_TRACE_CONFIG", str(file))
    needed = where in {"nowhere", "unreadable"} and command not in {"compare", "show"}
    line = command_line(command, "4f2a", "shop")
    assert line == f"mast-trace {command} 4f2a --project=shop{' -- COMMAND' * needed}"
