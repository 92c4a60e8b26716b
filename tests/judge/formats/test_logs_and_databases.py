"""Logs in plain text and SQLite files: unusual, broken and hostile ones, and what is left untouched."""

from __future__ import annotations

import contextlib
import json
import pickle
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from judge.formats.read_files import read

from mast_trace_judge.transfer.formats import format_named
from mast_trace_judge.transfer.formats.kinds import Transcript

if TYPE_CHECKING:
    from fixture_types import Patch

SAMPLES = Path(__file__).parent / "samples"
SAID = "There are 12 blue pens left."


def steps_of(path: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Return agents and texts of all runs of a file, and what cannot be read."""
    pieces, refused = read(path)
    runs = [each.read for each in pieces if isinstance(each.read, Transcript)]
    return [(step.agent, step.text) for run in runs for step in run.trajectory.steps], refused


LOGS = ("crewai.txt", "chatdev.log", "autogen-events.log", "autogen-console.txt", "ag2-console.txt")


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("form", ["utf-16", "crlf", "colours", "after other output", "cp1252"])
def test_a_log_is_read_in_any_form(tmp_path: Path, name: str, form: str) -> None:
    text = (SAMPLES / name).read_text("utf-8")
    expected = steps_of(SAMPLES / name)[0]
    file = tmp_path / name
    refused = 0
    if form == "utf-16":
        file.write_text(text, "utf-16")
    elif form == "crlf":
        file.write_bytes(text.replace("\n", "\r\n").encode())
    elif form == "colours":
        file.write_text("".join(f"\x1b[33m{line}\x1b[0m\n" for line in text.splitlines()), "utf-8")
    elif form == "after other output":
        file.write_text(f"Warning: nothing\n\n{text}", "utf-8")
        refused = 1
    else:
        file.write_bytes(text.replace(SAID, SAID[:-1] + "é").encode("cp1252"))
        expected = [(agent, said.replace(SAID, SAID[:-1] + "\ufffd")) for agent, said in expected]
    found, told = steps_of(file)
    assert (found, len(told)) == (expected, refused)
    assert all("before the first entry" in each for each in told)


@pytest.mark.parametrize("name", LOGS)
def test_what_an_agent_quotes_of_a_log_is_its_text(tmp_path: Path, name: str) -> None:
    """A chat in JSON whose texts hold a whole log stays a chat."""
    quoted = (SAMPLES / name).read_text("utf-8")
    for spaces in (None, 1):
        file = tmp_path / "chat.json"
        file.write_text(json.dumps([{"role": "user", "content": quoted}], indent=spaces))
        (piece,), refused = read(file)
        assert (piece.row.name, refused) == ("chat", [])


def test_fields_of_crewais_log_hold_quotes_and_lines(tmp_path: Path) -> None:
    task = 'Say "hello", please'
    told = 'It is\n2 o\'clock", status="late"'
    (tmp_path / "log.txt").write_text(
        f'2026-01-05 10:00:04: task="{task}", agent="a", status="completed", output="{told}"\n\n'
    )
    assert steps_of(tmp_path / "log.txt") == ([("a", told)], [])


def test_what_ag2_prints_within_a_message_begins_no_other(tmp_path: Path) -> None:
    said = "Ann (to Bob):\n\nHi."
    (tmp_path / "out.txt").write_text(
        f"planner (to coder):\n\n{said}\n\n{'-' * 80}\nNext speaker: x\n"
    )
    assert steps_of(tmp_path / "out.txt") == ([("planner", said)], [])


def test_a_call_that_autogen_prints_is_never_computed(tmp_path: Path) -> None:
    asked = "[FunctionCall(id='c', arguments=__import__('os').getcwd(), name='n')]"
    (tmp_path / "out.txt").write_text(f"{'-' * 10} TextMessage (a) {'-' * 10}\n{asked}\n")
    assert steps_of(tmp_path / "out.txt") == ([("a", asked)], [])


def test_whoever_begins_a_conversation_of_ag2_gives_the_task(tmp_path: Path) -> None:
    said = [("admin", "Count."), ("planner", "12.")]
    text = "".join(f"{name} (to manager):\n\n{told}\n\n{'-' * 80}\n" for name, told in said)
    (tmp_path / "out.txt").write_text(text)
    ((piece,), _) = read(tmp_path / "out.txt")
    assert isinstance(piece.read, Transcript)
    assert piece.read.trajectory.task == "Count."


_CALL = "***** Suggested tool call: x *****\nArguments: \nq\n"


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        ("a (to b):\n\n", _CALL),
        ("a (to b):\n\n", "***** Response from calling tool (x) *****\nq\n"),
        ("a (to b):\n\n***** Suggested tool call (", "): x"),
        ("2026-01-05 10:00:01: task=", '", agent="'),
        ("[2026-05-01 10:00:00 INFO] **[Preprocessing]**\n", "**task_prompt**: a\n\n\n"),
        (f"{'-' * 10} TextMessage (a) {'-' * 10}\n[FunctionCall(", "("),
        ('INFO:autogen_core.events:{"a":1}\n', "autogen_core.events"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_the_work_grows_with_the_length_of_a_log(tmp_path: Path, head: str, repeated: str) -> None:
    """A megabyte that was written against the reader; the suite's limit ends a test whose work grows faster."""
    (tmp_path / "out.txt").write_text(head + repeated * (10**6 // len(repeated)))
    steps_of(tmp_path / "out.txt")


# -- databases ------------------------------------------------------------------------------------


def _changed(path: Path, name: str, *statements: tuple[str, tuple[Any, ...]]) -> Path:
    shutil.copyfile(SAMPLES / name, path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement, values in statements:
            database.execute(statement, values)
    return path


_ENDLESS = (
    "CREATE VIEW chat_completions AS "
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
)


class _Harmful:
    def __reduce__(self) -> Any:
        return (sys.exit, (3,))


@pytest.mark.parametrize(
    ("kind", "blob", "problem"),
    [
        ("pickle", pickle.dumps(_Harmful()), "serialised as 'pickle', which is not read"),
        ("msgpack", b"\xc1", "cannot be read"),
        ("msgpack", b"\x91" * 5000, "cannot be read"),
        ("json", b"{", "cannot be read"),
        ("json", b"[1]", "cannot be read"),
    ],
)
def test_a_thread_that_cannot_be_read_leaves_the_others(
    tmp_path: Path, kind: str, blob: bytes, problem: str
) -> None:
    path = _changed(
        tmp_path / "a.sqlite",
        "langgraph.sqlite",
        (
            "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('bad', '1', ?, ?)",
            (kind, blob),
        ),
    )
    found, (told,) = steps_of(path)
    assert found == steps_of(SAMPLES / "langgraph.sqlite")[0]
    assert problem in told or "no known format" in told


def test_no_class_that_a_checkpoint_names_is_made(tmp_path: Path) -> None:
    """An object that is serialised by its class and arguments stays these arguments."""
    ormsgpack = pytest.importorskip("ormsgpack")
    harm = ormsgpack.packb(["os", "_exit", [3]])
    blob = ormsgpack.packb({"channel_values": {"messages": [ormsgpack.Ext(1, harm)]}})
    path = _changed(
        tmp_path / "a.sqlite",
        "langgraph.sqlite",
        ("UPDATE checkpoints SET checkpoint = ?", (blob,)),
    )
    assert (
        steps_of(path)[0] == steps_of(SAMPLES / "langgraph.sqlite")[0][1:]
    )  # from the writes of nodes


def test_each_message_of_a_thread_has_its_time() -> None:
    ((piece,), _) = read(SAMPLES / "langgraph.sqlite")
    assert isinstance(piece.read, Transcript)
    times = [step.start for step in piece.read.trajectory.steps]
    assert times == sorted(times)
    assert times[0] > 1_795_000_000_000_000_000


def test_without_a_package_it_is_said_which_one_is_missing(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "ormsgpack", None)
    assert steps_of(SAMPLES / "langgraph.sqlite") == (
        [],
        [": LangGraph's checkpoints need ormsgpack: pip install ormsgpack"],
    )


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (("DROP TABLE chat_completions",), "without runs"),
        (
            (
                "DROP TABLE chat_completions",
                _ENDLESS,
            ),
            "without runs",
        ),
        (("UPDATE chat_completions SET request = '{'",), "cannot be read"),
        (("ALTER TABLE chat_completions RENAME COLUMN request TO asked",), "lacks a column"),
        (("DELETE FROM chat_completions",), "holds no runs"),
    ],
)
def test_a_database_that_is_not_as_expected_is_named(
    tmp_path: Path, statements: tuple[str, ...], problem: str
) -> None:
    path = _changed(tmp_path / "a.db", "ag2-logging.db", *((each, ()) for each in statements))
    found, (told,) = steps_of(path)
    assert (found, problem in told) == ([], True)


@pytest.mark.parametrize("cut", [20, 600, 3000])
def test_a_database_that_is_cut_off_is_named(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.db").write_bytes((SAMPLES / "ag2-logging.db").read_bytes()[:cut])
    found, told = steps_of(tmp_path / "a.db")
    assert (found, len(told)) == ([], 1)


def test_a_database_in_use_is_read_whole_and_left_as_it_is(tmp_path: Path) -> None:
    """Rows in its journal alone are read as well; no file comes or goes, and a writer goes on."""
    path = tmp_path / "a.db"
    shutil.copyfile(SAMPLES / "ag2-logging.db", path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE chat_completions SET source_name = 'renamed'")
        database.commit()
        before = {
            each.name: each.read_bytes() for each in tmp_path.iterdir() if each.suffix != ".db-shm"
        }
        agents = {agent for agent, _ in steps_of(path)[0]}
        assert agents == {"user", "renamed"}
        assert before == {
            each.name: each.read_bytes() for each in tmp_path.iterdir() if each.suffix != ".db-shm"
        }
        database.execute("DELETE FROM chat_completions")
    copy = tmp_path / "b"
    copy.mkdir()
    shutil.copyfile(SAMPLES / "langgraph.sqlite", copy / "a.sqlite")
    (copy / "a.sqlite").chmod(0o400)
    assert steps_of(copy / "a.sqlite")[0]
    assert [each.name for each in copy.iterdir()] == ["a.sqlite"]


@pytest.mark.parametrize("first", [9, None], ids=["written again later", "not written"])
def test_a_message_of_langgraph_was_there_before_the_next(first: int | None) -> None:
    """Its checkpoint's id holds the time of the write, as a UUID of version 6 does."""
    writes = []
    for name, at in (("a", first), ("b", 5), ("c", 7)):
        ticks = f"{(1_700_000_000 + (at or 0)) * 10**7 + 0x01B21DD213814000:015x}"
        said = [{"id": name, "type": "ai", "content": name}] if at else []
        checkpoint = f"{ticks[:8]}-{ticks[8:12]}-6{ticks[12:]}-8000-000000000000"
        writes.append({"node": name, "checkpoint_id": checkpoint, "value": said})
    told = [{"id": name, "type": "ai", "content": name} for name in "abc"]
    value = {
        "thread_id": "t",
        "checkpoint": {"channel_values": {"messages": told}},
        "writes": writes,
    }
    (found,) = format_named("langgraph").read(value, "n")
    assert isinstance(found, Transcript)
    starts = [step.start - 1_700_000_000 * 10**9 for step in found.trajectory.steps]
    assert starts == [5 * 10**9, 5 * 10**9, 7 * 10**9]
