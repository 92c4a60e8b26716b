"""A `Trajectory` as plain JSON values, for files, exports and other processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory.model import Invocation, Step, StepKind, Trajectory

_TYPES: Mapping[str, Any] = {
    "str": str,
    "int": int,
    "bool": bool,
    "str | None": str | None,
    "int | None": int | None,
}

_PLAIN: Final = frozenset({str, int, float, bool, list, type(None)})
"""Types whose values are JSON as they are; asked first, as a long run has half a million of them."""
_DEFAULTS: Final = {
    kind: tuple((field.name, field.default) for field in dataclasses.fields(kind))
    for kind in (Step, Invocation, Message, ToolCall, Trajectory)
}
"""The fields of each record with their defaults; `dataclasses.MISSING` equals no value."""

R = TypeVar("R", Step, Invocation, Message, ToolCall, Trajectory)


def to_dict(record: Step | Invocation | Message | ToolCall | Trajectory) -> dict[str, Any]:
    """Return the fields that differ from their default."""
    shape: dict[str, Any] = {}
    for name, default in _DEFAULTS[type(record)]:
        value = getattr(record, name)
        if value != default:
            shape[name] = value if type(value) in _PLAIN else _plain(value)
    return shape


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        return [item if type(item) in _PLAIN else _plain(item) for item in value]
    if isinstance(value, StepKind):
        return value.value
    if isinstance(value, Step | Invocation | Message | ToolCall):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float) else as_text(value)


def trajectory_from_dict(shape: Any) -> Trajectory:
    """Read the output of `to_dict`, also of an earlier or a later version.

    Raises:
        ValueError: it is not a trajectory; the text names the fault.
    """
    fields = _fields(Trajectory, shape)
    texts = fields.get("texts", {})
    if not isinstance(texts, Mapping):
        raise _unlike("texts", "a JSON object", texts)
    fields["texts"] = {str(identity): _message(each) for identity, each in texts.items()}
    fields["steps"] = _several(_step, fields.get("steps", []))
    fields["invocations"] = _several(_invocation, fields.get("invocations", []))
    return _made(Trajectory, fields)


def _step(shape: Any) -> Step:
    fields = _fields(Step, shape)
    try:
        fields["kind"] = StepKind(fields.get("kind"))
    except ValueError:
        known = ", ".join(kind.value for kind in StepKind)
        raise ValueError(f"A step's kind is one of {known}, not {fields.get('kind')!r}.") from None
    return _made(Step, fields)


def _invocation(shape: Any) -> Invocation:
    return _made(Invocation, _fields(Invocation, shape))


def _message(shape: Any) -> Message:
    fields = _fields(Message, shape)
    calls = _several(
        lambda call: _made(ToolCall, _fields(ToolCall, call)), fields.get("tool_calls", [])
    )
    return _made(Message, {**fields, "tool_calls": calls})


def _several(read: Callable[[Any], Any], shapes: Any) -> tuple[Any, ...]:
    if not isinstance(shapes, list | tuple):
        raise _unlike("a list of records", "a JSON array", shapes)
    return tuple(read(shape) for shape in shapes)


def _fields(kind: type, shape: Any) -> dict[str, Any]:
    """Return the known fields of an object; a later version may have written others."""
    if not isinstance(shape, Mapping):
        raise _unlike(kind.__name__, "a JSON object", shape)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in shape:
            continue
        value = shape[field.name]
        if str(field.type) == "tuple[str, ...]":
            found[field.name] = _several(str, value)
            continue
        expected = _TYPES.get(str(field.type), object)
        if not isinstance(value, expected):
            raise _unlike(f"{field.name} of a {kind.__name__}", str(field.type), value)
        found[field.name] = value
    return found


def _unlike(what: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{what}: expected {expected}, not {type(value).__name__}.")


def _made(kind: type[R], fields: dict[str, Any]) -> R:
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"A {kind.__name__} is incomplete: {error}.") from None
