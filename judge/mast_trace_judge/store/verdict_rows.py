"""Conversion between verdicts and rows of ``mast_verdicts``.

A new field of a verdict needs a column in a new version of the schema, and no change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from mast_trace_judge.store.records import Columns
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
