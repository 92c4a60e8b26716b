"""Text of agents cannot steer the terminal, and output suits whoever reads it."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.cli.render_run import _arguments
from mast_trace_dashboards.printable import clip, safe


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
