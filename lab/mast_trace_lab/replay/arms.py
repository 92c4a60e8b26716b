"""Replays of a change that a person has asked for, one after the other, and their output."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace.replay.recording import tape_of
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_dashboards.cli.step_texts import text_of, texts_by_step
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.replay.arm_runner import run_arm
from mast_trace_lab.replay.changes import intervention_of
from mast_trace_lab.replay.replaying import ask, not_started, write_replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult, Operator
    from mast_trace_lab.program.setup import Setup

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
) -> ReplayArm | None:
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
        return ReplayArm("start")
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
    return ReplayArm(OPERATORS[name], step, single, hold)


def _joint_arm(given: Mapping[str, str | int | Sequence[str] | None], *, hold: bool) -> ReplayArm:
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
    return ReplayArm("result" if fix.result else "fix", step, fix, hold, tuple(also))


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


def calls_after(recorded: Trajectory, arm: ReplayArm) -> int:
    """Return the number of recorded model calls after a change, an estimate of a replay's live calls."""
    points = decision_points(recorded)
    if arm.operator == "start":
        return len(points)
    asks = arm.operator in {"resample", "model"}
    after = sum(point.step >= arm.step if asks else point.step > arm.step for point in points)
    return after - sum(bool(fix.text) and not fix.result for _, fix in arm.also)


def change(
    recorded: Trajectory,
    setup: Setup,
    arm: ReplayArm,
    repeat: int,
    *,
    max_calls: int | None = None,
    out: Path | None = None,
    yes: bool,
    as_json: bool,
) -> None:
    """Replay a change, print its results, write the last run to ``out``, and set the exit status.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        NotAnArm: the run has no such step, or the step does not allow the change.
        ConfigurationError: the command cannot be started, nobody can be asked, or the run cannot be written.
        typer.Exit: a replay has ended without an outcome.
    """
    tape = tape_of(recorded, *setup.earlier, live_tools=setup.live_tools)
    intervention_of(recorded, tape, arm)  # refused before anybody is asked
    each = calls_after(recorded, arm)
    most = "" if max_calls is None else f", at most {max_calls}"
    live = f"About {each * repeat} model calls go to the program's model{most}."
    ask(f"{warning(setup.command)} {live}", yes=yes)
    results: list[ArmResult] = []
    made: list[Trajectory] = []
    try:
        for done in _replays(recorded, setup, arm, repeat, max_calls, made.append):
            results.append(done)
            if not as_json:
                show_one(len(results), done)
    except OSError as error:
        raise not_started(setup.command, error) from error
    repeated = Repeated(arm, results)
    if as_json:
        print_json(repeated.as_dict())
    else:
        show_all(recorded, repeated)
    if out is not None:
        write_replay(out, made[-1] if made else None)
    if len(repeated.ended) < repeat:
        raise typer.Exit(1)


def warning(command: Sequence[str]) -> str:
    """Return the warning that a program runs for real."""
    return (
        f"This runs `{' '.join(command)}`. Models and tools are answered from the record; files, "
        "databases and whatever else its own code touches are real."
    )


@dataclass(frozen=True)
class Repeated:
    """Replays of one arm.

    Attributes:
        arm: the arm.
        results: of its replays.
    """

    arm: ReplayArm
    results: Sequence[ArmResult]

    @property
    def ended(self) -> list[ArmResult]:
        """The replays that ended with an outcome; the others say nothing about success."""
        return [each for each in self.results if each.status == "ok"]

    def as_dict(self) -> dict[str, object]:
        """Return the replays for other programs."""
        return {
            "arm": dataclasses.asdict(self.arm),
            "succeeded": sum(bool(each.success) for each in self.ended),
            "ended": len(self.ended),
            "replays": [
                {name: value for name, value in dataclasses.asdict(each).items() if name != "arm"}
                for each in self.results
            ],
        }


def _replays(
    recorded: Trajectory,
    setup: Setup,
    arm: ReplayArm,
    repeat: int,
    max_calls: int | None,
    replayed: Callable[[Trajectory], None],
) -> Iterator[ArmResult]:
    """Replay an arm ``repeat`` times; the limit of live calls holds for all of them together."""
    left = max_calls
    for _ in range(repeat):
        done = run_arm(recorded, setup, arm, max_calls=left, replayed=replayed)
        yield done
        if done.status == "over budget":
            return
        if left is not None:
            left -= done.live_calls


def told_arm(recorded: Trajectory, arm: ReplayArm) -> str:
    """Return an arm in words, such as ``fix at step 7 (analyst)``.

    A tool call is named with its own agent, an answer with the one whose model gave it.
    """
    held = ", equal requests answered from the record" if arm.hold else ""
    if arm.operator == "start":
        return "the whole program live"
    model = f" to {arm.fix.model}" if arm.fix and arm.fix.model else ""
    is_tool = arm.operator in {"result", "error"}
    parts = [f"{arm.operator}{model} at {_named(recorded, arm.step, is_tool=is_tool)}"]
    parts += [
        f"{'result' if fix.result else arm.operator if not is_tool else 'fix'} at "
        f"{_named(recorded, step, is_tool=fix.result)}"
        for step, fix in arm.also
    ]
    return f"{' and '.join(parts)}{held}"


def _named(recorded: Trajectory, step: int, *, is_tool: bool) -> str:
    agent = recorded.steps[step].agent
    if not is_tool:
        points = (each for each in decision_points(recorded) if each.step == step)
        agent = next((each.agent for each in points), agent)
    return f"step {step} ({agent})" if agent else f"step {step}"


def show_one(number: int, done: ArmResult) -> None:
    """Print one replay for people."""
    word = done.status if done.success is None else ("success" if done.success else "failure")
    style = {"success": "bold green", "failure": "bold red"}.get(word, "bold yellow")
    out = console()
    out.print(plain(f"{number}. {word}", style), end="")
    cost = f", {done.cost_usd:.4f} USD" if done.cost_usd else ""
    tokens = done.input_tokens + done.output_tokens
    out.print(
        plain(
            f": {done.served_calls} model calls and {done.served_tools} tool calls answered from the "
            f"record; {done.live_calls} model calls live ({tokens} tokens{cost}), {done.live_tools} "
            f"tools executed, {done.seconds:.1f} s"
        )
    )
    if done.answer and done.status == "ok":
        out.print(plain(f"   {' '.join(done.answer.split())[:200]}"))
    if done.reason:
        out.print(plain(f"   {done.reason}"))


def show_all(recorded: Trajectory, repeated: Repeated) -> None:
    """Print the conclusion of several replays for people."""
    ended = repeated.ended
    good = sum(bool(each.success) for each in ended)
    note = "; this is no success rate, as answers were held" if repeated.arm.hold else ""
    told = told_arm(recorded, repeated.arm)
    console().print(plain(f"{told}: {good} of {len(ended)} replays succeeded{note}"))
    if left := len(repeated.results) - len(ended):
        warn(f"{left} replays ended without an outcome and say nothing about success.")
