"""Differences between the parameters of a recorded and a replayed model request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace.replay.tape import Exchange


def other_parameters(exchange: Exchange, model: str, parameters: Sequence[str]) -> str:
    """Return what differs, such as ``temperature was 0.2, is 0.7``; empty if nothing is known to.

    Structures are recorded as hashes, so that for them only the name is told. Runs of versions that
    recorded no parameters are compared by the model alone.

    Args:
        exchange: the recorded call.
        model: the model that the request names; empty if unknown.
        parameters: as ``name=value``; empty if unknown.
    """
    before, after = dict(map(_pair, exchange.parameters)), dict(map(_pair, parameters))
    names = sorted(before.keys() | after.keys()) if before and after else []
    told = [
        f"{name} {_change(before.get(name), after.get(name))}"
        for name in names
        if before.get(name) != after.get(name)
    ]
    before_model = exchange.requested_model
    if before_model and model and before_model != model:
        told.insert(0, f"model was {before_model}, is {model}")
    return "; ".join(told)


def _pair(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name, value


def _change(before: str | None, after: str | None) -> str:
    if before is not None and after is not None and _is_hash(before) and _is_hash(after):
        return "has changed"
    return f"was {_value(before)}, is {_value(after)}"


def _value(value: str | None) -> str:
    if value is None:
        return "absent"
    return "set" if _is_hash(value) else value


def _is_hash(value: str) -> bool:
    return len(value) == 16 and not set(value) - set("0123456789abcdef")
