"""One table of columns for a record, used to write its row and to read it; and the tables of a verdict.

A new field of a verdict needs a column in a new version of the schema, and no change here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Generic, TypeVar

from mast_trace_judge.verdict import (
    Candidate,
    DecisiveError,
    ModeFinding,
    Place,
    RunFacts,
    Verdict,
    packed,
    unpacked,
)

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


_PARTS = frozenset({"modes", "candidates", "look_first", "decisive", "run"})
"""Fields of a verdict that are records, with columns of their own."""
_JOINED = frozenset({"rank", "confirmation"})
"""Fields that are joined to a verdict when it is read, and are not stored with it."""
_UNDECIDED = DecisiveError.model_construct(step=None, agent="", probability=0.0)
"""Stored where a verdict names no decisive error."""
_UNKNOWN = RunFacts(seen=datetime.fromtimestamp(0, timezone.utc))
"""Stored where a verdict has no run metadata, as those of earlier versions."""


_VERDICT = Columns(Verdict, names={"service": "ServiceName"}, but=_PARTS | _JOINED)
_MODE = Columns(ModeFinding, "Modes.")
_CANDIDATE = Columns(Candidate, "Candidates.")
_PLACE = Columns(Place, "LookFirst.", but={"corrected"})
_DECISIVE = Columns(
    DecisiveError, "Decisive", names={"minimal_fix": "MinimalFix"}, but={"corrected"}
)
_RUN = Columns(RunFacts, "Run", names={"termination_reason": "RunTermination", "kind": "Kind"})


def row_of(verdict: Verdict) -> dict[str, Any]:
    """Return the row of a verdict; a description and the corrected step share a column."""
    error = verdict.decisive or _UNDECIDED
    return {
        **_VERDICT.row(verdict),
        **_MODE.nested(verdict.modes),
        **_CANDIDATE.nested(verdict.candidates),
        **_PLACE.nested(verdict.look_first),
        _PLACE["why"]: [packed(place.why, place.corrected) for place in verdict.look_first],
        **_DECISIVE.row(error),
        _DECISIVE["minimal_fix"]: packed(error.minimal_fix, error.corrected),
        **_RUN.row(verdict.run or _UNKNOWN),
    }


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a row."""
    decided = row[_DECISIVE["step"]] is not None
    run = _RUN.record(row)
    return _VERDICT.record(
        row,
        modes=_MODE.records(row),
        candidates=_CANDIDATE.records(row),
        look_first=tuple(map(_unpacked, _PLACE.records(row))),
        decisive=_decisive(row) if decided else None,
        run=None if run.seen == _UNKNOWN.seen else run,
    )


def _decisive(row: Mapping[str, Any]) -> DecisiveError:
    fields = _DECISIVE.fields(row)
    description, corrected = unpacked(fields["minimal_fix"])
    return DecisiveError(**{**fields, "minimal_fix": description, "corrected": corrected})


def _unpacked(place: Place) -> Place:
    why, corrected = unpacked(place.why)
    return place.model_copy(update={"why": why, "corrected": corrected})
