"""Conversion between verdicts and rows of ``mast_verdicts``: one table of columns for both directions.

A field's column has the field's name in CamelCase, behind the prefix of its record; `_NAMES` has
the exceptions. So a new field of a verdict needs a column in a new version of the schema, and no
change here.
"""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

_NAMES: Mapping[tuple[type[BaseModel], str], str] = {
    (Verdict, "service"): "ServiceName",
    (DecisiveError, "minimal_fix"): "MinimalFix",
    (RunFacts, "termination_reason"): "RunTermination",
    (RunFacts, "kind"): "Kind",
}
_PARTS = frozenset({"modes", "candidates", "look_first", "decisive", "run"})
"""Fields of a verdict that are records, with columns of their own."""
_JOINED = frozenset({"rank", "confirmation"})
"""Fields that are joined to a verdict when it is read, and are not stored with it."""
_UNDECIDED = DecisiveError.model_construct(step=None, agent="", probability=0.0)
"""Stored where a verdict names no decisive error."""
_UNKNOWN = RunFacts(seen=datetime.fromtimestamp(0, timezone.utc))
"""Stored where a verdict has no run metadata, as those of earlier versions."""


def _columns(
    record: type[BaseModel], prefix: str = "", *, but: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the column of each field of a record."""
    return {
        field: _NAMES.get((record, field)) or prefix + field.title().replace("_", "")
        for field in record.model_fields
        if field not in but
    }


_VERDICT = _columns(Verdict, but=_PARTS | _JOINED)
_MODE = _columns(ModeFinding, "Modes.")
_CANDIDATE = _columns(Candidate, "Candidates.")
_PLACE = _columns(Place, "LookFirst.", but=frozenset({"corrected"}))
_DECISIVE = _columns(DecisiveError, "Decisive", but=frozenset({"corrected"}))
_RUN = _columns(RunFacts, "Run")


def row_of(verdict: Verdict) -> dict[str, Any]:
    """Return the row of a verdict."""
    return {
        **_row(verdict, _VERDICT),
        **_nested(verdict.modes, _MODE),
        **_nested(verdict.candidates, _CANDIDATE),
        **_nested(verdict.look_first, _PLACE),
        _PLACE["why"]: [packed(place.why, place.corrected) for place in verdict.look_first],
        **_decisive_row(verdict.decisive or _UNDECIDED),
        **_row(verdict.run or _UNKNOWN, _RUN),
    }


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a row."""
    decided = row[_DECISIVE["step"]] is not None
    run = RunFacts(**_fields(row, _RUN))
    return Verdict(
        **_fields(row, _VERDICT),
        modes=tuple(ModeFinding(**fields) for fields in _records(row, _MODE)),
        candidates=tuple(Candidate(**fields) for fields in _records(row, _CANDIDATE)),
        look_first=tuple(map(_place, _records(row, _PLACE))),
        decisive=_decisive(row) if decided else None,
        run=None if run.seen == _UNKNOWN.seen else run,
    )


def _decisive_row(error: DecisiveError) -> dict[str, Any]:
    """Return the columns of a decisive error; description and corrected step share one."""
    row = _row(error, _DECISIVE)
    return {**row, _DECISIVE["minimal_fix"]: packed(error.minimal_fix, error.corrected)}


def _decisive(row: Mapping[str, Any]) -> DecisiveError:
    fields = _fields(row, _DECISIVE)
    description, corrected = unpacked(fields["minimal_fix"])
    return DecisiveError(**{**fields, "minimal_fix": description, "corrected": corrected})


def _place(fields: dict[str, Any]) -> Place:
    why, corrected = unpacked(fields["why"])
    return Place(**{**fields, "why": why, "corrected": corrected})


def _row(record: BaseModel, columns: Mapping[str, str]) -> dict[str, Any]:
    return {column: _stored(getattr(record, field)) for field, column in columns.items()}


def _nested(records: tuple[BaseModel, ...], columns: Mapping[str, str]) -> dict[str, Any]:
    return {
        column: [_stored(getattr(record, field)) for record in records]
        for field, column in columns.items()
    }


def _fields(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    return {field: _read(field, row[column]) for field, column in columns.items()}


def _records(row: Mapping[str, Any], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    several = zip(*(row[column] for column in columns.values()), strict=True)
    return [
        {field: _read(field, value) for field, value in zip(columns, values, strict=True)}
        for values in several
    ]


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _read(field: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return utc(value)
    # Storing as Float32 added digits behind the sixth.
    return round(value, 6) if field.endswith("probability") else value


def utc(moment: datetime) -> datetime:
    """Return a time with its zone: the database returns those in UTC without."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
