"""Results of self-tests in ``mast_selftests``: counts of what the judge finds of planted faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from mast_trace_judge.store.records import Columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

TABLE: Final = "mast_selftests"
ALL: Final = "all"
"""The mode of the sum over all modes."""
ENVIRONMENT: Final = "environment"
"""The mode of faults of tools, for which no agent is to blame."""
FEW: Final = 8
"""Number of runs below which a share says hardly more than its interval."""

Measure = Literal["found", "step", "named", "accused", "survived"]
Stage = Literal["before", "after"]


@dataclass(frozen=True)
class Measured:
    """One share of a self-test.

    Attributes:
        measure: ``found``: the planted mode is named; ``step``: the likeliest step is the planted one; ``named``:
            a decisive step is named and is another one; ``accused``: a healthy run is said to have failed, or
            to show a failure mode; ``survived``: a run that succeeded with its fault is said to have failed.
        stage: before or after fitting.
        mode: code of the failure mode, `ENVIRONMENT` or `ALL`.
        hits: runs in which it is so.
        runs: runs that were examined; 0 if it was not measured.
        low: lower end of Wilson's interval (95 %); None if it was not measured.
        high: its upper end.
        note: the reason why it was not measured; empty otherwise.
    """

    measure: Measure
    stage: Stage
    mode: str
    hits: int
    runs: int
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class SelfTest:
    """The result of one self-test.

    Attributes:
        id: equal for equal command, seed and sizes.
        project: of the recorded runs.
        service: of the program.
        framework: likewise.
        judge_version: of the judge that was examined.
        operators: operators whose faults were examined.
        originals: number of different recorded runs into which faults were planted.
        shares: the measured shares.
        measured_at: time of the result.
    """

    id: str
    project: str
    service: str
    framework: str
    judge_version: str
    operators: tuple[str, ...]
    originals: int
    shares: tuple[Measured, ...]
    measured_at: datetime

    def share(self, measure: Measure, mode: str, stage: Stage = "before") -> Measured | None:
        """Return one share; None if there is none."""
        wanted = (measure, stage, mode)
        return next((e for e in self.shares if (e.measure, e.stage, e.mode) == wanted), None)


_SHARE: Final = Columns(Measured)
_TEST: Final = Columns(
    SelfTest, names={"id": "SelftestId", "service": "ServiceName"}, but={"shares"}
)


def save_selftest(store: Store, test: SelfTest) -> None:
    """Store a result; a later one of the same id replaces it.

    Raises:
        StorageError: the database does not accept it.
    """
    shared = _TEST.row(test)
    store.insert(TABLE, [{**shared, **_SHARE.row(each)} for each in test.shares])


def selftests(store: Store, *, project: str | None = None) -> list[SelfTest]:
    """Return the stored results, the newest first.

    Args:
        store: the database.
        project: only this project's.

    Raises:
        StorageError: the database does not answer.
    """
    where = "WHERE Project = {project:String}" if project is not None else ""
    rows = store.query(
        f"SELECT * FROM {TABLE} FINAL {where} ORDER BY MeasuredAt DESC, Measure, Stage, Mode",  # noqa: S608
        {"project": project or ""},
    )
    newest: dict[tuple[str, str], datetime] = {}
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["Project"], row["SelftestId"])
        # Rows of an earlier result whose mode the later one does not have are none of its own.
        if newest.setdefault(key, row["MeasuredAt"]) == row["MeasuredAt"]:
            grouped.setdefault(key, []).append(row)
    return [
        _TEST.record(rows[0], shares=tuple(map(_SHARE.record, rows))) for rows in grouped.values()
    ]


def newest_of_services(tests: Sequence[SelfTest]) -> list[SelfTest]:
    """Return the newest result of each service, those of the latest first.

    Args:
        tests: the newest first.
    """
    found: dict[tuple[str, str], SelfTest] = {}
    for test in tests:
        found.setdefault((test.project, test.service), test)
    return list(found.values())
