"""The change that options of `mast-trace replay` ask for, and the output of its replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.step_texts import text_of, texts_by_step
from mast_trace_judge.arms import Arm, Fix
from mast_trace_judge.decision_points import decision_points

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
_JOINT = ("--fix", "--result")
"""Options that may be given several times, and together: their changes are made in one replay."""


def arm_of(
    options: Mapping[str, str | int | Sequence[str] | None], *, start: bool, hold: bool
) -> Arm | None:
    """Return the arm that the options ask for; None if they ask for no change.

    Args:
        options: values of the options in `OPERATORS` that were given, by their names. Several values of
            ``--fix`` and ``--result`` are one joint change, in the order of the steps.
        start: whether the whole program is to run live.
        hold: whether later requests that are equal to recorded ones are answered from the record.

    Raises:
        ConfigurationError: the options ask for several changes, or for none that later requests can be held
            to, or a value cannot be read.
    """
    given = {name: value for name, value in options.items() if value not in (None, [])}
    if len(given) + start > 1 and (start or set(given) - set(_JOINT)):
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
    if hold and "--keep" in given:
        # Every request would be answered from the record: each replay would end as the run did.
        raise ConfigurationError(
            "--hold needs a change, and --keep makes none: such replays only repeat the record, and say "
            "nothing about success; leave out --hold"
        )
    if set(given) <= set(_JOINT):
        return _joint_arm(given, hold=hold)
    ((name, value),) = given.items()
    step, single = _step_and_fix(name, str(value))
    return Arm(OPERATORS[name], step, single, hold)


def _joint_arm(given: Mapping[str, str | int | Sequence[str] | None], *, hold: bool) -> Arm:
    """Return the arm that corrects answers and tools' results; of one step the answer comes first."""
    texts = [
        (step, name == "--result", text)
        for name in _JOINT
        if not isinstance(values := given.get(name), str | int)
        for step, text in texts_by_step(values, name).items()
    ]
    (step, fix), *also = [
        (step, Fix("person", text, result=is_result)) for step, is_result, text in sorted(texts)
    ]
    return Arm("result" if fix.result else "fix", step, fix, hold, tuple(also))


def _step_and_fix(name: str, value: str) -> tuple[int, Fix | None]:
    if name == "--arguments":
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
    return after - sum(bool(fix.text) and not fix.result for _, fix in arm.also)
