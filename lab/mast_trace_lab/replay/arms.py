"""Replays of a change that a person has asked for, one after the other, and their output."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.output import console, plain, print_json, say, warn
from mast_trace_dashboards.cli.step_texts import text_of, texts_by_step
from mast_trace_dashboards.printable import counted
from mast_trace_judge.arms import ArmResult, Fix, Operator, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.replay.arm_runner import run_arm
from mast_trace_lab.replay.changes import intervention_of
from mast_trace_lab.replay.replaying import ask, not_started, warning, write_replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.program.setup import Setup

KINDS: Final[Mapping[str, str]] = {
    "fix": "STEP=TEXT or fix:STEP=@FILE",
    "result": "STEP=TEXT or result:STEP=@FILE",
    "arguments": "STEP=JSON or arguments:STEP=@FILE",
    "drop": "STEP or drop:STEP=TEXT",
    "model": "STEP=NAME",
    "resample": "STEP",
    "keep": "STEP",
}
"""Forms of a change by its kind; ``start`` takes no step."""
_JOINT: Final = frozenset({"fix", "result"})
"""Kinds of which several are made in one replay."""


def arm_of(changes: Sequence[str]) -> ReplayArm | None:
    """Return the arm that the values of ``--change`` ask for; None for none.

    Args:
        changes: ``KIND:STEP=TEXT`` or ``start``. Several of ``fix`` and ``result`` are one joint change, in the
            order of the steps.

    Raises:
        ConfigurationError: the values ask for several changes, or one cannot be read.
    """
    given = [_kind_and_value(each) for each in changes]
    kinds = {kind for kind, _ in given}
    if len(given) > 1 and kinds - _JOINT:
        raise ConfigurationError(f"a replay makes one change, and not {' and '.join(changes)}")
    if not given:
        return None
    if kinds <= _JOINT:
        return _joint_arm(given)
    ((kind, value),) = given
    if kind == "start":
        return ReplayArm("start")
    step, fix = _step_and_fix(kind, value)
    operator: Operator = kind  # type: ignore[assignment]  # kinds are operators
    return ReplayArm(operator, step, fix)


def _kind_and_value(change: str) -> tuple[str, str]:
    kind, _, value = change.partition(":")
    if kind not in KINDS and change != "start":
        raise ConfigurationError(
            f"--change is KIND:STEP, with the kinds {', '.join(KINDS)}, or start, and not {change!r}"
        )
    return kind, value


def _joint_arm(given: Sequence[tuple[str, str]]) -> ReplayArm:
    """Return the arm that corrects answers and tools' results; of one step the answer comes first."""
    texts = [
        (step, kind == "result", text)
        for kind in ("fix", "result")
        for step, text in texts_by_step(
            [value for each, value in given if each == kind], f"--change {kind}:"
        ).items()
    ]
    (step, fix), *also = [
        (step, Fix("person", text, result=is_result)) for step, is_result, text in sorted(texts)
    ]
    return ReplayArm("result" if fix.result else "fix", step, fix, also=tuple(also))


def _step_and_fix(kind: str, value: str) -> tuple[int, Fix | None]:
    if kind == "arguments":
        ((step, text),) = texts_by_step([value], f"--change {kind}:").items()
        return step, Fix("person", text)
    number, equals, rest = value.partition("=")
    if not number.strip().isdigit() or ((kind == "model") != bool(rest) and kind != "drop"):
        raise ConfigurationError(f"--change {kind}: is {KINDS[kind]}, and not {value!r}")
    if kind == "model":
        return int(number), Fix("stronger model", model=rest)
    return int(number), Fix("person", text_of(rest, f"--change {kind}:")) if equals else None


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
    given_answer: bool = False,
) -> None:
    """Replay a change, print its results, write the last run to ``out``, and set the exit status.

    Args:
        recorded: the run.
        setup: of the replays.
        arm: the change.
        repeat: number of replays.
        max_calls: live model calls of all replays together.
        out: file for the replayed run.
        yes: whether nobody is asked.
        as_json: whether the results are printed for other programs.
        given_answer: whether the change may hold the right answer, so that success says nothing of a step.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        NotAnArm: the run has no such step, or the step does not allow the change.
        ConfigurationError: the command cannot be started, nobody can be asked, or the run cannot be written.
        typer.Exit: a replay has ended without an outcome.
    """
    tape = setup.tape(recorded)
    intervention_of(recorded, tape, arm)  # refused before anybody is asked
    each = calls_after(recorded, arm)
    most = "" if max_calls is None else f", at most {max_calls}"
    live = f"About {each * repeat} model calls go to the program's model{most}."
    ask(f"{warning(setup, tape.plain_functions)} {live}", yes=yes)
    results: list[ArmResult] = []
    made: list[Trajectory] = []
    try:
        for done in _replays(recorded, setup, arm, repeat, max_calls, made.append):
            results.append(done)
            if not as_json:
                show_one(len(results), done)
    except OSError as error:
        raise not_started(setup.command, error) from error
    repeated = Repeated(arm, results, given_answer)
    if as_json:
        print_json(repeated.as_dict())
    else:
        show_all(recorded, repeated)
    if out is not None:
        write_replay(out, made[-1] if made else None)
    if len(repeated.ended) < repeat:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Repeated:
    """Replays of one arm.

    Attributes:
        arm: the arm.
        results: of its replays.
        given_answer: whether the arm may hold the right answer.
    """

    arm: ReplayArm
    results: Sequence[ArmResult]
    given_answer: bool = False

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
            "given_answer": self.given_answer,
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
        setup.restore()
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
    return " and ".join(parts)


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
            f": {counted(done.served_calls, 'model call')} and {counted(done.served_tools, 'tool call')} answered from the "
            f"record; {counted(done.live_calls, 'model call')} live ({tokens} tokens{cost}), {done.live_tools} "
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
    told = f"{told_arm(recorded, repeated.arm)}: {good} of {len(ended)} replays succeeded"
    if repeated.given_answer:
        told += (
            ", which were given the answer: this proves nothing about a step, and nothing is stored"
        )
    say(told)
    if left := len(repeated.results) - len(ended):
        warn(f"{left} replays ended without an outcome and say nothing about success.")
