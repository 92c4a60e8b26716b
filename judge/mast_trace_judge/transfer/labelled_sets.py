"""Takes sets of `mast-trace dataset build` over: planted faults and real failures, with their labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import trajectory_from_dict
from mast_trace_judge.planted import PLANTED
from mast_trace_judge.proof import proved_step
from mast_trace_judge.store.injections import Injection, take_over
from mast_trace_judge.study.set_files import FORMAT, shapes_of
from mast_trace_judge.transfer.formats.kinds import StoredRun
from mast_trace_judge.transfer.formats.own_export import EXPORT, confirmation_in
from mast_trace_judge.transfer.importing import Importer, Taken
from mast_trace_judge.transfer.reading import Piece
from mast_trace_judge.transfer.spans import trace_id_of_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mast_trace_collector.storage import Store


_INJECTION: Final = "injection"
_TAKEN: Final = "Replays have confirmed this step, as a labelled set says."


@dataclass(frozen=True)
class TakenSet:
    """The counts of what a set gave to a store.

    Attributes:
        faults: planted faults in the set.
        new_faults: those that the store did not have.
        failures: real failures whose decisive step replays had proved.
        new_labels: those whose proof the store did not have; a run that was replayed here keeps its own.
        without_label: those of a set that does not say what its replays have shown; they are runs without a label.
        erased: faults and failures of runs that were erased here, which are refused.
    """

    faults: int
    new_faults: int
    failures: int
    new_labels: int
    without_label: int
    erased: int = 0


def take_set(store: Store, folder: Path) -> TakenSet:
    """Store a set. Planted faults go where `mast-trace inject` puts them, and into no list of runs.

    Real failures become runs, and what replays have shown of them is kept with them, as `mast-trace confirm` keeps it.
    Nothing is stored if a row cannot be read.

    Raises:
        ConfigurationError: the folder holds no set of this version.
        StorageError: the database does not accept it.
    """
    counts = Counter(_kind(each) for each in _read(folder))
    importer, taken = Importer(store), Taken("labelled set")

    def planted() -> Iterator[tuple[Injection, datetime]]:
        for each in _read(folder):
            if isinstance(each, StoredRun):
                importer.take(Piece(EXPORT, each), taken)
            else:
                yield each, _end(each)

    new, refused = take_over(store, planted())
    importer.flush()
    failures = counts["labelled"] + counts["bare"]
    return TakenSet(
        counts["fault"],
        new,
        failures,
        importer.confirmations,
        counts["bare"],
        refused + len(importer.erased),
    )


def _kind(read: Injection | StoredRun) -> str:
    if isinstance(read, Injection):
        return "fault"
    return "bare" if read.confirmation is None else "labelled"


def _read(folder: Path) -> Iterator[Injection | StoredRun]:
    for place, shape in shapes_of(folder):
        try:
            if shape["format"] != FORMAT:
                raise ConfigurationError(
                    f"{place} has format {shape['format']}; this version reads {FORMAT}"
                )
            yield _injection(shape) if shape["source"] == _INJECTION else _failure(shape)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{place} is no labelled run: {error}") from error


def _failure(shape: Mapping[str, Any]) -> StoredRun:
    """Return a real failure with what replays have shown of it."""
    run = trajectory_from_dict(shape["run"])
    told = shape.get("confirmation")
    if told is None and shape["decisive"]:  # a set of before has the proved step alone
        told = {
            "status": "confirmed",
            "text": _TAKEN,
            "origin": shape["step"],
            "point_of_no_return": shape.get("point_of_no_return"),
        }
    found = StoredRun(run, confirmation=confirmation_in({"confirmation": told}, run.steps))
    trace_id_of_run(found)
    if found.confirmation is not None and proved_step(found.confirmation) != shape["step"]:
        raise ValueError("its confirmation proves another step than its label names")
    return found


def _injection(shape: Mapping[str, Any]) -> Injection:
    run = trajectory_from_dict(shape["run"])
    kind, step = PLANTED.get(shape["operator"]), int(shape["step"])
    if not 0 <= step < len(run.steps):
        raise ValueError(f"the run has no step {step}")
    return Injection(
        project="",
        original=str(shape["group"]),
        fault_id=str(shape["id"]),
        operator=str(shape["operator"]),
        mode=str(shape["mode"]),
        level=kind.level if kind else "",
        step=step,
        # A fault of the environment names nobody; its step has an agent all the same.
        agent=str(shape["agent"]) or run.steps[step].agent,
        missed_by=tuple(map(str, shape["missed_by"])),
        verdict="kept" if shape["failed"] else "survived",
        decisive=bool(shape["decisive"]),
        e_value=float(shape["e_value"] or 0.0),
        success_after=shape["success_after"],
        point_of_no_return=_point(shape, len(run.steps)),
        service=str(shape["system"]),
        framework=str(shape["framework"]),
        run=run,
    )


def _point(shape: Mapping[str, Any], steps: int) -> int | None:
    """Return the point of no return; None if it is not known, or if the set is of a version that did not write it."""
    if (point := shape.get("point_of_no_return")) is None:
        return None
    if not 0 <= (step := int(point)) < steps:
        raise ValueError(f"the run has no step {step}")
    return step


def _end(injection: Injection) -> datetime:
    """Return the end of a faulty run; now, where its steps have no times."""
    steps = injection.run.steps if injection.run is not None else ()
    last = max((step.end for step in steps), default=0)
    return datetime.fromtimestamp(last / 1e9, timezone.utc) if last else datetime.now(timezone.utc)
