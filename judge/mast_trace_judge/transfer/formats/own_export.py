"""Runs from `mast-trace export`: lines of JSON, or rows of Parquet with JSON in three columns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Step, trajectory_from_dict
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.store.labels import HumanLabel
from mast_trace_judge.transfer.formats.foreign_spans import loaded
from mast_trace_judge.transfer.formats.kinds import Format, StoredRun, is_record
from mast_trace_judge.transfer.json_values import Broken, Value
from mast_trace_judge.transfer.source import LARGEST

_MOST = 2**31
_FIELDS = {field.name for field in dataclasses.fields(HumanLabel)} - {"blind"}
"""The fields that are read: nobody has seen how a label of a file was given, so it is not blind here."""


def confirmation_in(verdict: Any, steps: Sequence[Step]) -> Confirmation | None:
    """Return the conclusion that a verdict holds; None where it holds none.

    Agent and span of the origin are those of its step. The plan is left out: replays are not
    exported, so the experiment cannot be resumed elsewhere.

    Args:
        verdict: as `mast-trace export` writes it.
        steps: of the run.

    Raises:
        ValueError: it cannot be read, or names a step that the run does not have.
    """
    shape = verdict.get("confirmation") if isinstance(verdict, dict) else None
    if shape is None:
        return None
    try:
        told = Confirmation.model_validate(shape)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"its confirmation cannot be read at {where or 'its top'}") from None
    if told.status == "untested":
        return None
    if any(not -1 <= step < len(steps) for step in _steps_of(told)):
        raise ValueError("its confirmation names a step that the run does not have")
    if not all(_fits(value) for value in _numbers(told.model_dump())):
        raise ValueError("its confirmation holds a number that is none or too large")
    own: dict[str, Any] = {"plan_id": "", "origin_agent": "", "origin_span_id": ""}
    if told.origin is not None and told.origin >= 0:
        step = steps[told.origin]
        own |= {"origin_agent": step.agent, "origin_span_id": step.span_id}
    else:
        own["origin"] = None
    return told.model_copy(update=own)


def _steps_of(told: Confirmation) -> Iterator[int]:
    yield from (step for step in (told.origin, told.point_of_no_return) if step is not None)
    yield from told.refuted
    yield from (rate.step for rate in told.curve)
    yield from (step for each in told.contrasts for step in each.steps)
    yield from (step for step, _ in told.likely)


def _numbers(value: Any) -> Iterator[float]:
    """Yield every number in a nested value."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float):
        yield value


def _fits(number: float) -> bool:
    """Return whether the database can hold a number; an e-value may be large, a count may not."""
    whole = isinstance(number, int)
    return -1 <= number < _MOST if whole else math.isfinite(number)


def _is_export(value: Any) -> bool:
    if not is_record(value, "trace_id", "trajectory", "verdict", "labels"):
        return False
    return isinstance(loaded(value["trajectory"]), dict)


def _read(value: dict[str, Any], _: str) -> Iterator[StoredRun]:
    trajectory = trajectory_from_dict(loaded(value["trajectory"]))
    if value.get("trace_id") != trajectory.trace_id:
        raise ValueError("its trace_id is not that of its trajectory")
    verdict = loaded(value["verdict"])
    yield StoredRun(
        trajectory,
        labels=tuple(_label(shape) for shape in objects(loaded(value["labels"]))),
        project=str(value.get("project") or ""),
        has_verdict=isinstance(verdict, dict),
        confirmation=confirmation_in(verdict, trajectory.steps),
    )


def _label(shape: Mapping[str, Any]) -> HumanLabel:
    given = {key: value for key, value in shape.items() if key in _FIELDS}
    step = given.get("decisive_step")
    if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
        raise ValueError("a label's decisive_step is no whole number")
    if step is not None and not 0 <= step < _MOST:
        raise ValueError(f"a label's decisive_step is no step: {str(step)[:20]}")
    steps = given.get("decisive_steps") or ()
    if not isinstance(steps, list | tuple) or not all(
        isinstance(each, int) and not isinstance(each, bool) and 0 <= each < _MOST for each in steps
    ):
        raise ValueError("a label's decisive_steps are no steps")
    for name in _FIELDS - {"decisive_step", "decisive_steps", "modes"}:
        if not isinstance(given.get(name, ""), str):
            raise ValueError(f"a label's {name} is no text")  # noqa: TRY004
    try:
        modes = tuple(given.get("modes") or ())
        return HumanLabel(**{**given, "modes": modes, "decisive_steps": tuple(steps)})
    except (ConfigurationError, TypeError, AttributeError) as error:
        raise ValueError(f"a label cannot be read: {error}") from None


def parts_joined(rows: Iterable[Value | Broken]) -> Iterator[Value | Broken]:
    """Yield the rows of a Parquet file, those that are parts of one long run as one."""
    held: Value | None = None
    for row in rows:
        if isinstance(row, Value) and held is not None and _is_part_of(held.value, row.value):
            size = held.size + row.size
            if size > LARGEST:
                problem = f"its run is longer than {LARGEST >> 20} MiB: this part is left out"
                yield Broken(row.line, problem)
            else:
                held = Value(held.line, _joined(held.value, row.value), size)
            continue
        if held is not None:
            yield held
        held = row if isinstance(row, Value) else None
        if isinstance(row, Broken):
            yield row
    if held is not None:
        yield held


def _is_part_of(first: Any, more: Any) -> bool:
    return (
        _is_export(more)
        and bool(more.get("part"))
        and _is_export(first)
        and first["trace_id"] == more["trace_id"]
    )


def _joined(first: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    whole, part = dict(loaded(first["trajectory"])), loaded(more["trajectory"])
    for name in ("steps", "invocations"):
        whole[name] = [*(whole.get(name) or ()), *(part.get(name) or ())]
    whole["texts"] = {**(whole.get("texts") or {}), **(part.get("texts") or {})}
    return {**first, "trajectory": whole}


EXPORT = Format(
    name="mast-trace",
    title="mast-trace export",
    recognised="`trace_id`, `trajectory`, `verdict` and `labels`",
    read=_read,
    keys=("trace_id", "trajectory", "verdict", "labels"),
    record=_is_export,
)
