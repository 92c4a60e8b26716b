"""The files of a labelled set: JSON lines, the same rows as Parquet, and where a row stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mast_trace.exceptions import ConfigurationError

FORMAT: Final = 1
RUNS: Final = "runs.jsonl"
PARQUET: Final = "runs.parquet"
CARD: Final = "card.md"
_AT_ONCE: Final = 64
"""Rows of a row group; each holds a whole run."""


def write_set(folder: Path, shapes: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of a set as JSON lines, and as Parquet where pyarrow is installed.

    In Parquet run and confirmation are JSON texts. Earlier files are replaced when the new ones are complete; without pyarrow an
    earlier Parquet file is removed, because it would hold other rows.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partly = folder / f"{RUNS}.part"
    with partly.open("w", encoding="utf-8") as file:
        for shape in shapes:
            file.write(json.dumps(shape, ensure_ascii=False) + "\n")
    partly.replace(folder / RUNS)
    if not has_parquet():
        (folder / PARQUET).unlink(missing_ok=True)
        return
    draft = folder / f"{PARQUET}.part"
    _write_parquet(draft, _lines(folder / RUNS))
    draft.replace(folder / PARQUET)


def has_parquet() -> bool:
    """Return whether Parquet can be written and read here."""
    try:
        import pyarrow.parquet  # noqa: F401  # only looked for
    except ImportError:
        return False
    return True


def shapes_of(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a set with the place of each; JSON lines are read where there are both files.

    Raises:
        ConfigurationError: the folder holds no set, or one that cannot be read.
    """
    lines, table = folder / RUNS, folder / PARQUET
    if lines.is_file() or not table.is_file():
        try:
            for number, line in enumerate(_lines(lines), 1):
                yield f"{lines}:{number}", _json(line, f"{lines}:{number}")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{folder} holds no labelled set: {error}") from error
        return
    for number, row in enumerate(_rows(table), 1):
        place = f"{table}, row {number},"
        run = _json(row.pop("run", ""), place)
        told = row.pop("confirmation", None)  # a set of before has none
        yield place, {**row, "run": run, "confirmation": told and _json(told, place)}


def _lines(path: Path) -> Iterator[str]:
    # Texts of agents may hold other line ends, which JSON does not escape.
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def _json(text: Any, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{place} is no labelled run: {error}") from error


def _write_parquet(path: Path, lines: Iterable[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number = pa.string(), pa.float64()
    schema = pa.schema(
        [
            ("format", pa.int32()),
            *((name, text) for name in ("id", "source", "group", "operator", "mode")),
            ("step", pa.int32()),
            ("agent", text),
            *((name, pa.bool_()) for name in ("decisive", "failed")),
            ("missed_by", pa.list_(text)),
            ("success_after", number),
            ("point_of_no_return", pa.int32()),
            ("e_value", number),
            *((name, text) for name in ("system", "framework", "split")),
            ("held_out_operator", pa.bool_()),
            ("uncertain", text),
            ("run", pa.large_string()),
            ("confirmation", text),
        ]
    )
    waiting: list[dict[str, Any]] = []
    with pq.ParquetWriter(path, schema) as writer:
        for line in lines:
            shape = json.loads(line)
            texts = {name: _text(shape.get(name)) for name in ("run", "confirmation")}
            waiting.append({**shape, **texts})
            if len(waiting) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(waiting, schema))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_pylist(waiting, schema))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationError(
            f"{path} is Parquet, and {RUNS} is missing: pip install pyarrow"
        ) from error
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=_AT_ONCE):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
