"""The change that options of `mast-trace replay` ask for, and the output of its replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.step_texts import text_of, texts_by_step
from mast_trace_judge.arms import Arm, Fix
from mast_trace_judge.replay.points import decision_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import Operator

OPERATORS: Mapping[str, Operator] = {
    "--fix": "fix",
    "--result": "result",
    "--arguments": "arguments",
    "--drop": "drop",
    "--model": "model",
    "--resample": "resample",
    "--keep": "keep",
}
"""Operators by the option that asks for them; ``--start`` takes no step."""
_TEXTS = {"--fix", "--result", "--arguments"}


def arm_of(
    options: Mapping[str, str | int | Sequence[str] | None], *, start: bool, hold: bool
) -> Arm | None:
    """Return the arm that the options ask for; None if they ask for no change.

    Args:
        options: values of the options in `OPERATORS` that were given, by their names.
        start: whether the whole program is to run live.
        hold: whether later requests that are equal to recorded ones are answered from the record.

    Raises:
        ConfigurationError: the options ask for several changes, or a value cannot be read.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if len(given) + start > 1:
        names = " and ".join([*given, *["--start"] * start])
        raise ConfigurationError(f"a replay makes one change, and not {names}")
    if start:
        if hold:
            raise ConfigurationError("--hold needs a change, and --start makes none")
        return Arm("start")
    if not given:
        if hold:
            raise ConfigurationError("--hold needs a change, such as --fix")
        return None
    ((name, value),) = given.items()
    if not isinstance(value, str | int):
        (step, fix), *also = [
            (number, Fix("person", text))
            for number, text in sorted(texts_by_step(value, name).items())
        ]
        return Arm(OPERATORS[name], step, fix, hold, tuple(also))
    step, single = _step_and_fix(name, str(value))
    return Arm(OPERATORS[name], step, single, hold)


def _step_and_fix(name: str, value: str) -> tuple[int, Fix | None]:
    if name in _TEXTS:
        ((step, text),) = texts_by_step([value], name).items()
        return step, Fix("person", text)
    number, equals, rest = value.partition("=")
    if not number.strip().isdigit() or (name == "--model" and not rest):
        shape = {"--model": "STEP=NAME", "--drop": "STEP or STEP=TEXT"}.get(name, "STEP")
        raise ConfigurationError(f"{name} is {shape}, and not {value!r}")
    if name == "--model":
        return int(number), Fix("stronger model", model=rest)
    return int(number), Fix("person", text_of(rest, name)) if equals else None


def calls_after(recorded: Trajectory, arm: Arm) -> int:
    """Return the number of recorded model calls after a change, an estimate of a replay's live calls."""
    points = decision_points(recorded)
    if arm.operator == "start":
        return len(points)
    asks = arm.operator in {"resample", "model"}
    after = sum(point.step >= arm.step if asks else point.step > arm.step for point in points)
    return after - sum(bool(fix.text) for _, fix in arm.also)
