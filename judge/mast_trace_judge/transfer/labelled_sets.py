"""Takes sets of `mast-trace dataset build` over: planted faults with their labels, and real failures as runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import trajectory_from_dict
from mast_trace_judge.injection.operators import OPERATORS
from mast_trace_judge.injection.set_files import FORMAT, shapes_of
from mast_trace_judge.store.injections import Injection, take_over
from mast_trace_judge.transfer.formats.kinds import StoredRun
from mast_trace_judge.transfer.formats.own_export import EXPORT
from mast_trace_judge.transfer.importing import Importer, Taken
from mast_trace_judge.transfer.reading import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mast_trace_collector.storage import Store


@dataclass(frozen=True)
class TakenSet:
    """The counts of what a set gave to a store.

    Attributes:
        faults: planted faults in the set.
        new_faults: those that the store did not have.
        failures: real failures whose decisive step replays had proved; they are runs, without a label.
    """

    faults: int
    new_faults: int
    failures: int


def take_set(store: Store, folder: Path) -> TakenSet:
    """Store a set. Planted faults go where `mast-trace inject` puts them, and into no list of runs.

    Nothing is stored if a row cannot be read.

    Raises:
        ConfigurationError: the folder holds no set of this version.
        StorageError: the database does not accept it.
    """
    rows = sum(1 for _ in _read(folder))
    importer, taken, faults = Importer(store), Taken("labelled set"), 0

    def planted() -> Iterator[tuple[Injection, datetime]]:
        nonlocal faults
        for shape, injection in _read(folder):
            if injection is not None:
                faults += 1
                yield injection, _end(injection)
            else:
                run = StoredRun(trajectory_from_dict(shape["run"]))
                importer.take(Piece(EXPORT, run), taken)

    new = take_over(store, planted())
    importer.flush()
    return TakenSet(faults, new, rows - faults)


def _read(folder: Path) -> Iterator[tuple[Mapping[str, Any], Injection | None]]:
    for place, shape in shapes_of(folder):
        try:
            if shape["format"] != FORMAT:
                raise ConfigurationError(
                    f"{place} has format {shape['format']}; this version reads {FORMAT}"
                )
            yield shape, _injection(shape) if shape["source"] == "injection" else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{place} is no labelled run: {error}") from error


def _injection(shape: Mapping[str, Any]) -> Injection:
    run = trajectory_from_dict(shape["run"])
    operator, step = OPERATORS.get(shape["operator"]), int(shape["step"])
    if not 0 <= step < len(run.steps):
        raise ValueError(f"the run has no step {step}")
    return Injection(
        project="",
        original=str(shape["group"]),
        fault_id=str(shape["id"]),
        operator=str(shape["operator"]),
        mode=str(shape["mode"]),
        level=operator.level if operator else "",
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
