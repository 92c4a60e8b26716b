"""Text of agents cannot steer the terminal, and output suits whoever reads it."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from failing_run import EVIL, failing_run
from rich.text import Text

from mast_trace_dashboards.cli.output import FittedTable, console, fail, plain, print_json, warn
from mast_trace_dashboards.cli.render import _arguments
from mast_trace_dashboards.printable import clip, counted, safe

if TYPE_CHECKING:
    from conftest import CLI
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_ID = "aa01" + "0" * 28


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns that shows no styles."""
    for name, value in {"COLUMNS": "80", "LINES": "50", "FORCE_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("over\rwrite", "over␍write"),
        ("back\x08space\x7f", "back␈space␡"),
        ("\x9b2J", "<U+009B>2J"),
        ("abc\u202etxt.exe", "abc<U+202E>txt.exe"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("keeps\ttabs\nand lines, ümlauts, 漢字, 🙂", "keeps\ttabs\nand lines, ümlauts, 漢字, 🙂"),
    ],
)
def test_control_characters_are_shown_not_obeyed(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_markup_of_the_printer_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(plain("[bold]not bold[/bold] [link=http://x]y[/link]"))
    assert capsys.readouterr().out == "[bold]not bold[/bold] [link=http://x]y[/link]\n"


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1000, "1,000 steps")]
)
def test_one_thing_is_not_many(number: int, words: str) -> None:
    assert counted(number, "step") == words


def test_clip_keeps_one_line_within_the_width() -> None:
    assert clip("one\n two   three", 40) == "one two three"
    assert clip("abcdefghij", 5) == "abcd…"
    assert len(clip("\x1b" * 50, 10)) == 10


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    print_json({"at": moment, "codes": ("1.3",), "text": "ü\x1b\x9b\u202e"})
    printed = capsys.readouterr().out
    assert safe(printed) == printed
    assert "ü" in printed
    assert json.loads(printed) == {
        "at": "2026-01-02T03:04:05Z",
        "codes": ["1.3"],
        "text": "ü\x1b\x9b\u202e",
    }


def test_files_get_neither_colours_nor_narrow_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(plain("x" * 120, "bold red"))
    assert capsys.readouterr().out == "x" * 120 + "\n"


def test_arguments_that_are_nested_too_deeply_are_shown_as_they_are() -> None:
    """Python's JSON reader gives up on them with a RecursionError, which is no ValueError."""
    deep = '{"a":' + "[" * 100_000
    assert _arguments(deep) == deep


@pytest.mark.parametrize("make", [str, Text])
def test_no_printed_text_steers_the_terminal(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the text was not made harmless before: in a line, a cell, a heading or an error."""
    table = FittedTable("ID", f"{EVIL}", title=make(EVIL))
    table.add_row(make(EVIL), make("50 EUR"))
    console().print(make(EVIL), table, markup=False)
    console(stderr=True).print(make(EVIL))
    warn(EVIL)
    fail(EVIL)
    for shown in capsys.readouterr():
        assert safe(shown) == shown
        assert "owned" in shown


def test_all_that_is_printed_passes_the_harmless_console() -> None:
    """A console or a table of rich's own would send what it is given, and cut ids off where it is narrow."""
    own = re.compile(
        r"rich\.table import .*\bTable\b|= Console\(|\becho\(|^ *print\(", re.MULTILINE
    )
    sources = [each for part in ("dashboards", "lab") for each in Path(part).rglob("*.py")]
    found = {path.name for path in sources if own.search(path.read_text(encoding="utf-8"))}
    assert len(sources) > 100
    assert found == {"output.py"}


@pytest.mark.parametrize(
    "long", ["the text wraps " * 9, "x" * 200, "long line " * 20_000, f"{_ID} {_ID} {_ID}"]
)
@pytest.mark.usefixtures("narrow")
def test_a_narrow_table_keeps_ids_and_loses_no_text(
    long: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = FittedTable("ID", "WHY", "AGENT")
    table.add_column("STATE", no_wrap=True)
    table.add_row(_ID, long, "market researcher", "unknown, waiting")
    console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[0] for line in lines[:2]] == ["ID", _ID]
    assert lines[1].rstrip().endswith("unknown, waiting")
    assert sorted("".join("".join(lines).split())) == sorted(
        "".join(f"IDWHYAGENTSTATE{_ID}{long}marketresearcherunknown,waiting".split())
    )


@pytest.mark.usefixtures("narrow")
def test_every_list_shows_the_ids_that_the_next_command_needs(cli: CLI) -> None:
    listed = cli.out("runs")
    for row in cli.json("runs"):
        assert row["TraceId"][:8] in listed.split()
    assert "failure" in listed.split()
    assert "1.3" in listed.split()
    assert cli.recorded.ids["invoices"] in cli.out("show", "aa01").split()


_KEPT = re.compile(r"\.id$|operation|outcome$|_ids$|arguments|kind$|schema|version$")


def _hostile(request: ExportTraceServiceRequest) -> None:
    """Make every name and text of a request hostile, and every key of its own."""
    for resource in request.resource_spans:
        scopes = [scope.scope for scope in resource.scope_spans]
        spans = [span for scope in resource.scope_spans for span in scope.spans]
        for each in scopes:
            each.name += EVIL
        for each in (*spans, *(event for span in spans for event in span.events)):
            each.name += EVIL
            for key in (f"app.{EVIL}", "mast.framework"):
                each.attributes.add(key=key).value.string_value = EVIL
        for each in (resource.resource, *spans):
            for pair in each.attributes:
                if not _KEPT.search(pair.key) and pair.value.string_value:
                    pair.value.string_value += EVIL


def test_hostile_runs_reach_the_terminal_as_text(empty: CLI, tmp_path: Path) -> None:
    run = empty.record(failing_run, change=_hostile)
    folder = str(tmp_path)
    for line in (
        *(
            "runs",
            f"show {run}",
            f"show {run} --full",
            f"show {run} --tree",
            f"show {run} --step 1",
        ),
        *("patterns --min-runs 1", "patterns versions", "patterns separate", "alerts check --all"),
        *(f"cases add {run} --no-replay --dir {folder}", f"cases list --dir {folder}"),
        *(f"cost --by {part}" for part in ("agent", "model", "tool", "version", "mode", "run")),
        *(
            "judge agree",
            f"judge run {run}",
            f"compare {run}",
            f"compare {run} {run}",
            f"erase {run} --dry-run",
        ),
        *("profile", f"replay {run}", f"prove {run}", f"inject {run}", "retain --list-left-out"),
    ):
        _, *told = empty(*line.split())
        for shown in told:
            assert safe(shown) == shown, line
    (row,) = empty.json("runs")
    assert EVIL in row["Framework"]
