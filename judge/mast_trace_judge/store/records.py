"""One table of columns for a record, used to write its row and to read it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Generic, TypeVar

Record = TypeVar("Record")


class Columns(Generic[Record]):
    """The columns that hold the fields of a dataclass or a pydantic model.

    A field's column has the field's name in CamelCase, behind a prefix. So a new field needs a column in
    a new version of the schema, and nothing else.

    Args:
        record: the class.
        prefix: of all columns: ``Modes.`` for those of a nested table.
        names: columns of other names, by field.
        but: fields that have no column of their own.
    """

    def __init__(
        self,
        record: type[Record],
        prefix: str = "",
        *,
        names: Mapping[str, str] | None = None,
        but: Collection[str] = (),
    ) -> None:
        self._record = record
        fields = getattr(record, "model_fields", None)
        types = (
            {each.name: each.type for each in dataclasses.fields(record)}  # type: ignore[arg-type]
            if fields is None
            else dict.fromkeys(fields, "")
        )
        self._truths = {field for field, kind in types.items() if kind == "bool"}
        self._columns = {
            field: (names or {}).get(field) or prefix + field.title().replace("_", "")
            for field in types
            if field not in but
        }

    def __getitem__(self, field: str) -> str:
        """Return the column of a field."""
        return self._columns[field]

    def row(self, record: Record) -> dict[str, Any]:
        """Return the columns of a record."""
        return {column: _stored(getattr(record, field)) for field, column in self._columns.items()}

    def nested(self, records: Sequence[Record]) -> dict[str, list[Any]]:
        """Return the columns of a nested table."""
        return {
            column: [_stored(getattr(record, field)) for record in records]
            for field, column in self._columns.items()
        }

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that a row holds."""
        return {field: self._read(field, row[column]) for field, column in self._columns.items()}

    def record(self, row: Mapping[str, Any], **others: Any) -> Record:
        """Return the record of a row, with its other fields."""
        return self._record(**self.fields(row), **others)

    def records(self, row: Mapping[str, Any]) -> tuple[Record, ...]:
        """Return the records of a nested table."""
        several = zip(*(row[column] for column in self._columns.values()), strict=True)
        return tuple(
            self._record(
                **{
                    field: self._read(field, value)
                    for field, value in zip(self._columns, values, strict=True)
                }
            )
            for values in several
        )

    def _read(self, field: str, value: Any) -> Any:
        if isinstance(value, datetime):
            return utc(value)
        if isinstance(value, list):
            return tuple(value)
        if field in self._truths:
            return bool(value)
        # Storing as Float32 added digits behind the sixth.
        return round(value, 6) if field.endswith("probability") else value


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return utc(value)
    return list(value) if isinstance(value, tuple) else value


def utc(moment: datetime) -> datetime:
    """Return a time with its zone: the database returns those in UTC without."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
