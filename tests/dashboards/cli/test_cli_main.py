"""The command as a whole: help, exit statuses, and machines on which much of it is missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
import typer
from failing_run import EVIL
from program_runs import run_program
from typer.core import TyperGroup

from mast_trace_dashboards.cli.app import app, run
from mast_trace_dashboards.commands import COMMANDS, PARTS
from mast_trace_dashboards.printable import safe

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from click import Command
    from fixture_types import Capture

_WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {missing!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
sys.argv = ["mast-trace", *{arguments!r}]
from mast_trace_dashboards.cli import main
main()
"""


def without(missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line where some packages are not installed."""
    program = _WITHOUT.format(missing=missing, arguments=list(arguments))
    return run_program(sys.executable, "-c", program, timeout=120)


def commands() -> dict[str, Command]:
    """Every command by the words that call it."""
    found: dict[str, Command] = {}

    def walk(command: Command, words: tuple[str, ...]) -> None:
        if not isinstance(command, TyperGroup):
            found[" ".join(words)] = command
            return
        context = typer.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, name
            walk(child, (*words, name))

    walk(typer.main.get_command(app), ())
    return found


@pytest.mark.parametrize("words", commands())
def test_every_help_has_an_example(words: str, capsys: Capture) -> None:
    assert run([*words.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"mast-trace {words}" in " ".join(out.split())
    if words != "doctor":  # the SDK's own, which shows its examples in its documentation
        assert "Example" in out


@pytest.mark.parametrize("words", commands())
def test_names_of_options_are_whole_on_80_columns(
    words: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*words.split(), "--help"]) == 0
    shown = capsys.readouterr().out.split()
    names = [
        name for each in commands()[words].params for name in (*each.opts, *each.secondary_opts)
    ]
    typed = [name for name in names if name.startswith("--")]
    assert [name for name in typed if not any(name in word.split(",") for word in shown)] == []


@pytest.mark.parametrize("words", commands())
def test_no_word_of_a_help_is_taken_for_markup(words: str) -> None:
    command = commands()[words]
    texts = [command.help, *(getattr(parameter, "help", "") for parameter in command.params)]
    assert not [text for text in texts if "[" in (text or "")]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["runs", "--nonsense"], ["show"], ["runs", "--limit", "none"]]
)
def test_misuse_ends_with_status_2(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "line",
    [
        "show last {}",
        "show {}",
        "runs --{}",
        "{}",
        "runs --limit {}",
        "import {}",
        "judge {}",
        "restore {}",
    ],
)
def test_no_argument_steers_the_terminal(line: str, no_store: Path, capsys: Capture) -> None:
    """A shell puts the names of files into a line, which others choose."""
    assert run([EVIL if word == "{}" else word.format(EVIL) for word in line.split()]) > 0
    said = capsys.readouterr().err
    assert safe(said) == said


def test_the_version_is_printed(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"mast-trace {metadata.version('mast-trace')}\n"


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ([], {"pydantic"}),
        (["--version"], {"pydantic"}),
        *(([n], set()) for n in ("show", "runs", "label")),
    ],
    ids=str,
)
def test_a_command_waits_for_no_other_ones_imports(words: list[str], more: set[str]) -> None:
    """A look at a run waits for neither the web server, the receivers nor the engine."""
    program = (
        "import sys; from mast_trace_dashboards.cli.app import run; "
        f"assert run({[*words, '--help']!r}) == 0; print(*sys.modules, file=sys.stderr)"
    )
    ended = run_program(sys.executable, "-c", program, status=0, timeout=60)
    loaded = set(ended.stderr.split())
    assert "typer" in loaded
    assert "mast_trace_judge.local.relations" not in loaded
    assert not loaded & {"httpx", "starlette", "uvicorn", "grpc", "chdb", "numpy", "openai", *more}
    assert not any(name.startswith("google.protobuf") for name in loaded)


def test_without_extras_the_command_says_what_to_install() -> None:
    ended = without(["typer"], "runs")
    assert ended.returncode == 2
    assert "pip install 'mast-trace[all]'" in ended.stderr
    assert "needs typer" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_only_one_command_needs_is_named_by_that_command() -> None:
    """Commands are imported when they are called; a missing package is reported all the same."""
    ended = without(["httpx"], "alerts", "run")
    assert ended.returncode == 2
    assert "needs httpx" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert without(["httpx"], "runs", "--help").returncode == 0


def test_doctor_needs_the_sdk_alone() -> None:
    ended = without(
        ["typer", "rich", "pydantic", "clickhouse_connect", "starlette"],
        *("doctor", "--endpoint", "http://127.0.0.1:9", "--json"),
    )
    assert ended.returncode == 1  # nobody listens there
    assert "127.0.0.1:9" in json.dumps(json.loads(ended.stdout))
    assert "Traceback" not in ended.stderr


def test_the_embedded_engine_is_named_when_it_is_missing(tmp_path: Path) -> None:
    ended = without(["chdb", "chdb_core"], "up", "--data-dir", str(tmp_path), "--http-port", "0")
    assert ended.returncode == 2
    assert "mast-trace[embedded]" in ended.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m mast_trace_dashboards migrate --dry-run | head -n 1"
    ended = run_program("bash", "-c", command, timeout=60)
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""


def test_a_server_that_is_away_is_told_in_one_message() -> None:
    command = (sys.executable, "-m", "mast_trace_dashboards", "runs")
    ended = run_program(*command, "--url", "http://127.0.0.1:9/x", status=1, timeout=60)
    assert ended.stderr.startswith("mast-trace: ")
    assert "does not answer" in ended.stderr


def without_rights(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user whom permissions hold, which root is not."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv (Debian: util-linux)")
        command = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", *command)
    return run_program(*command, timeout=100)


@pytest.mark.parametrize("state", ["empty", "used"])
def test_a_data_folder_that_may_not_be_written_is_named(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "data"
    (folder / "clickhouse").mkdir(parents=True)
    if state == "used":
        (folder / "clickhouse" / "status").write_text("PID: 1\n")
    else:
        (folder / "clickhouse").rmdir()
    folder.chmod(0o555)
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:  # the owner of the folder may write it all the same
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
    for words in (("up", "--http-port", "0", "--grpc-port", "0"), ("runs",)):
        command = (sys.executable, "-m", "mast_trace_dashboards", *words)
        done = without_rights(*command, "--data-dir", str(folder))
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "DB::" not in done.stderr
        assert str(folder) in done.stderr.replace("\n", "")
    folder.chmod(0o755)


def test_every_command_has_one_part_of_the_help() -> None:
    named = [name for names in PARTS.values() for name in names]
    assert sorted(named) == sorted(name for name in COMMANDS if " " not in name)


def test_a_wrong_argument_is_told_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--limit", "abc"]) == 2
    assert "it must be a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"), [("patterms", "patterns"), ("runz", "runs"), ("zzzz", "")]
)
def test_a_misspelt_command_is_answered_with_the_one_that_is_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([typed]) == 2
    said = capsys.readouterr().err
    assert typed in said
    assert (f"Did you mean {meant}" in said) == bool(meant)
    assert bool(meant) == ("Did you mean" in said)


@pytest.mark.parametrize("group", ["patterns", "cases"])
def test_a_group_with_a_list_shows_it_alone(
    group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAST_TRACE_DATA_DIR", str(tmp_path))
    said = [(run([group, *more]), *capsys.readouterr()) for more in ((), ("list",))]
    assert said[0] == said[1]
    assert run([group, "--help"]) == 0
    assert "Commands" in capsys.readouterr().out
