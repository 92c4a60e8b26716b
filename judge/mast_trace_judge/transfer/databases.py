"""SQLite files in which frameworks keep runs: LangGraph's checkpoints, AG2's runtime logging, sessions of others.

A file is opened read-only. Nothing in it is unpickled, and no class that it names is imported.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import vocabulary
from mast_trace.untrusted_json import well_formed_values
from mast_trace_judge.transfer.json_values import Broken, Value
from mast_trace_judge.transfer.source import LARGEST

_MAGIC = b"SQLite format 3\0"
_NODE_PATH = "~__pregel_pull, "


def is_database(data: io.BufferedReader) -> bool:
    """Return whether a file is a SQLite database."""
    return data.peek(len(_MAGIC))[: len(_MAGIC)] == _MAGIC


def runs_of_database(data: io.BufferedReader) -> Iterator[Value | Broken]:
    """Yield the runs of a database, one thread or session at a time.

    Raises:
        ConfigurationError: its contents need a package that is not installed.
        ValueError: it cannot be read, or has none of the tables that are known.
    """
    try:
        with _on_disk(data) as path, closing(_opened(path)) as database:
            # A view may compute without end, and so may a virtual table: only plain tables are read.
            made = (
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
            )
            tables = {str(row["name"]) for row in database.execute(made)}
            if tables >= {"checkpoints", "writes"}:
                yield from _threads(database)
            elif table := next((name for name in _SESSIONS if {*name.split("+")} <= tables), None):
                yield from _sessions(database, table)
            else:
                raise ValueError(
                    "it is a SQLite database without runs: `checkpoints` and `writes` of LangGraph, "
                    "`chat_completions` of AG2, `agent_messages` of the OpenAI Agents SDK, or `events` of "
                    f"Google ADK are read, and it has {_named(tables)}"
                )
    except sqlite3.Error as error:
        raise ValueError(f"it is a SQLite database that cannot be read: {error}") from None


def _named(tables: set[str]) -> str:
    return ", ".join(f"`{name[:40]}`" for name in sorted(tables)[:6]) or "no tables"


@contextmanager
def _on_disk(data: io.BufferedReader) -> Iterator[Path]:
    """Return the path of a file, which is unpacked where it is compressed."""
    if isinstance(data.raw, io.FileIO):
        yield Path(data.raw.name)
        return
    with tempfile.NamedTemporaryFile(prefix="mast-trace-") as copy:
        shutil.copyfileobj(data, copy)
        copy.flush()
        yield Path(copy.name)


def _opened(path: Path) -> sqlite3.Connection:
    # Without a journal beside it the file is all there is, and reading it leaves no file behind.
    journal = path.with_name(f"{path.name}-wal")
    whole = not journal.exists() or journal.stat().st_size == 0
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if whole else ''}"
    database = sqlite3.connect(uri, uri=True)
    database.row_factory = sqlite3.Row
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _as_json(value: Any) -> Any:
    """Return a value as JSON has it: a state may hold bytes, and keys that are no texts."""
    return well_formed_values(json.loads(json.dumps(value, default=str, skipkeys=True)))


# -- LangGraph ------------------------------------------------------------------------------------


def _threads(database: sqlite3.Connection) -> Iterator[Value | Broken]:
    """Yield each thread with its last state, and with what its nodes have written."""
    threads = database.execute(
        "SELECT thread_id, max(checkpoint_id) AS last FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
    ).fetchall()
    for number, (thread, last) in enumerate(threads, 1):
        try:
            state = database.execute(
                "SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' "
                "AND checkpoint_id = ?",
                (thread, last),
            ).fetchone()
            writes, size = [], len(state["checkpoint"] or b"")
            for row in database.execute(
                "SELECT * FROM writes WHERE thread_id = ? ORDER BY checkpoint_id, task_id, idx",
                (thread,),
            ):
                size += len(row["value"] or b"")
                if size > LARGEST:
                    break
                writes.append(_write(dict(row)))
            if size > LARGEST:
                yield Broken(number, f"its thread is longer than {LARGEST >> 20} MiB")
                continue
            found = {
                "thread_id": thread,
                "checkpoint": _decoded(state["type"], state["checkpoint"]),
                "writes": [each for each in writes if each is not None],
            }
            yield Value(number, _as_json(found), size)
        except ConfigurationError:
            raise
        except (ValueError, TypeError, RecursionError) as error:
            yield Broken(number, f"the thread {str(thread)[:40]!r} cannot be read: {error}")


def _write(row: dict[str, Any]) -> dict[str, Any] | None:
    path = str(row.get("task_path") or "")
    if not row["value"] or row["type"] not in {"msgpack", "json"}:
        return None
    return {
        "channel": row["channel"],
        "node": path.removeprefix(_NODE_PATH) if path.startswith(_NODE_PATH) else "",
        "value": _decoded(row["type"], row["value"]),
        "checkpoint_id": row["checkpoint_id"],
    }


def _decoded(kind: str, blob: bytes) -> Any:
    """Return what LangGraph's serialiser wrote; an object of a class is what it was made of."""
    if kind == "json":
        return json.loads(blob)
    if kind != "msgpack":
        raise ValueError(f"it is serialised as {kind!r}, which is not read: msgpack and json are")
    try:
        import ormsgpack
    except ImportError as error:
        raise ConfigurationError(
            "LangGraph's checkpoints need ormsgpack: pip install ormsgpack"
        ) from error

    def made_of(_: int, data: bytes) -> Any:
        inner = unpacked(data)
        return inner[2] if isinstance(inner, list) and len(inner) > 2 else inner

    def unpacked(data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=made_of, option=ormsgpack.OPT_NON_STR_KEYS)

    return unpacked(blob)


# -- sessions -------------------------------------------------------------------------------------


def _of_adk(row: sqlite3.Row) -> Any:
    told = dict(row)
    whole = told.pop("event_data", None)  # newer releases write it
    event = {**told, **json.loads(whole)} if whole else told
    for key in ("content", "usage_metadata"):
        event[key] = vocabulary.loaded(event.get(key))
    return {key: each for key, each in event.items() if not isinstance(each, bytes)}


def _of_ag2(row: sqlite3.Row) -> Any:
    return {
        "source_name": row["source_name"],
        "start_time": row["start_time"],
        "request": json.loads(row["request"]),
        "response": json.loads(row["response"]),
    }


_SESSIONS: Mapping[str, tuple[str, Callable[[sqlite3.Row], Any], str]] = {
    "chat_completions": ("chat_completions", _of_ag2, "id"),
    "agent_messages": ("output", lambda row: json.loads(row["message_data"]), "id"),
    "events+sessions": ("events", _of_adk, "timestamp"),
}
"""Table with the rows of sessions, and one that must be beside it -> the key for what they tell, how a row is read, and the column of their order."""


def _sessions(database: sqlite3.Connection, table: str) -> Iterator[Value | Broken]:
    """Yield each session with what its rows tell, in their order."""
    key, read, order = _SESSIONS[table]
    table = table.partition("+")[0]
    columns = [str(row["name"]) for row in database.execute(f"PRAGMA table_info({table})")]
    if not {"session_id", order} <= {*columns}:
        raise ValueError(f"it is a SQLite database whose `{table}` has no sessions that are known")
    # The names are those of the table above, and of its columns: none is a user's.
    size = " + ".join(f'ifnull(length("{name}"), 0)' for name in columns)
    sessions = database.execute(
        f"SELECT session_id, sum({size}) AS size FROM {table} GROUP BY session_id ORDER BY min({order})"  # noqa: S608
    ).fetchall()
    for number, (session, spelt) in enumerate(sessions, 1):
        if spelt > LARGEST:
            yield Broken(number, f"its session is longer than {LARGEST >> 20} MiB")
            continue
        try:
            rows = database.execute(
                f"SELECT * FROM {table} WHERE session_id IS ? ORDER BY {order}",  # noqa: S608
                (session,),
            )
            found = {"session_id": session, "app_name": table, key: [read(row) for row in rows]}
            yield Value(number, _as_json(found), spelt)
        except (ValueError, TypeError, RecursionError) as error:
            yield Broken(number, f"the session {str(session)[:40]!r} cannot be read: {error}")
        except IndexError:
            yield Broken(number, f"the table `{table}` lacks a column")
