"""The rows of a Parquet file, a few at a time."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.untrusted_json import well_formed_values
from mast_trace_judge.transfer.json_values import Broken, Value
from mast_trace_judge.transfer.source import LARGEST, check_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = 64
"""Number of rows that are decoded at a time."""


def rows_of(file: IO[bytes]) -> Iterator[Value | Broken]:
    """Yield the rows of a Parquet file as objects of their columns, without null values.

    Texts stay in the file's dictionaries until their row is read, so that a small file that spells
    one long text in very many rows takes the memory of one.

    Raises:
        ConfigurationError: pyarrow is missing.
        ValueError: the file is no Parquet that can be read.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from error
    try:
        schema = pq.read_schema(file)
        texts = [
            field.name
            for field in schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        file.seek(0)
        table = pq.ParquetFile(file, read_dictionary=texts)
        _check_size(table.metadata, file.seek(0, os.SEEK_END))
        number = 0
        for batch in table.iter_batches(batch_size=_ROWS):
            for place in range(batch.num_rows):
                number += 1
                yield _row(number, batch.slice(place, 1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the Parquet file cannot be read: {error}") from None


def _check_size(metadata: Any, packed: int) -> None:
    groups = range(metadata.num_row_groups)
    check_ratio(sum(metadata.row_group(number).total_byte_size for number in groups), packed)
    for number in groups:
        size = metadata.row_group(number).total_byte_size
        if size > 8 * LARGEST:
            raise ValueError(
                f"row group {number} takes {size >> 20} MiB: write it in groups of fewer rows"
            )


def _row(number: int, row: Any) -> Value | Broken:
    try:
        (values,) = row.to_pylist()
        given = {key: value for key, value in values.items() if value is not None}
        return Value(number, well_formed_values(given), _size_of(given))
    except (ValueError, OverflowError) as error:
        return Broken(number, str(error))


def _size_of(value: Any) -> int:
    """Return the approximate number of characters that spell a value."""
    if isinstance(value, dict):
        return sum(len(key) + _size_of(each) for key, each in value.items())
    if isinstance(value, list):
        return sum(map(_size_of, value))
    return len(value) if isinstance(value, str) else 8
