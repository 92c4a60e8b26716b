"""The choices of the person whose program is replayed: command, oracle, reset, limits, and fixes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.replay.recording import NotReplayable, tape_of
from mast_trace_dashboards.cli.step_texts import text_of
from mast_trace_lab.program.process import Output, reset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Trajectory
    from mast_trace_dashboards.programs import Program
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.program.forking import Forking


TASK_VARIABLE: Final = "MAST_TRACE_REPLAY_TASK"
"""Variable that holds the task of the recorded run while its program is replayed."""
_LONGEST_TASK: Final = 100_000
"""Bytes of a task beyond which it is not handed over: systems limit the size of variables."""
VERSION: Final = 2
"""Version of the experiments: those of other versions ask for other replays and are not continued."""


@dataclass(frozen=True)
class Setup:
    """All that decides about the replays of a program, apart from their budget.

    Attributes:
        command: the program and its arguments.
        oracle: command that judges a final answer; empty if the program records its outcome.
        reset: command that restores the state outside the program before each replay; empty for none.
        live_tools: names of tools that may be executed, after which the state is restored; ``*`` for all.
        plain: names of tools that may be executed because they change nothing; ``*`` for all.
        hosts: addresses to which the program may connect.
        timeout: seconds of one replay.
        check_timeout: seconds of one question to the oracle, and of one reset.
        fixes: a person's corrections by step.
        results: a person's right results of tools by step.
        resample: whether the model is asked again as a correction.
        stronger_model: name of a model that is asked as a correction; empty for none.
        environment: variables that the program gets besides those of this process.
        output: the destination of the program's standard output.
        prices: of models, by name, in US dollars per million tokens; without one, costs are unknown.
        expected: the right final answer, which no correction may give away; empty if unknown.
        earlier: interrupted runs that the run continues, the first one first. They are answered from the
            record by every operator, except ``start`` without `keeps_earlier`.
        keeps_earlier: whether ``start`` begins with the run and not with the first of `earlier`.
        run: place of the run among those of its program, from 1; calls of later ones are refused. None if it makes one.
        clock: whether the program's clock starts when the recorded run did.
        masks: pairs of a pattern and a name, besides the program's own; see `mast_trace.replay.normalize`.
        parent: the process from which replays are forked; None if each starts a process of its own.
    """

    command: Sequence[str]
    oracle: Sequence[str] = ()
    reset: Sequence[str] = ()
    live_tools: Sequence[str] = ()
    plain: Sequence[str] = ()
    hosts: Sequence[str] = ()
    timeout: float = 120.0
    check_timeout: float = 60.0
    fixes: Mapping[int, str] = field(default_factory=dict)
    resample: bool = True
    stronger_model: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    expected: str = ""
    parent: Forking | None = None
    results: Mapping[int, str] = field(default_factory=dict)
    earlier: Sequence[Trajectory] = ()
    keeps_earlier: bool = True
    run: int | None = None
    clock: bool = True
    masks: Sequence[tuple[str, str]] = ()
    output: Output = "discarded"
    prices: Mapping[str, Price] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return the part that replays of one experiment must share, in a form that JSON can hold."""
        plain: dict[str, Any] = {
            "version": VERSION,
            "command": [*self.command],
            "oracle": [*self.oracle],
            "reset": [*self.reset],
            "live_tools": sorted(self.live_tools),
            "fixes": _by_step(self.fixes),
            "references": {},  # as in plans of earlier versions, which go on
            "resample": self.resample,
            "stronger_model": self.stronger_model,
        }
        if self.results:  # experiments without them have the form of earlier versions
            plain["results"] = _by_step(self.results)
        if self.plain:
            plain["plain"] = sorted(self.plain)
        return plain

    def with_task(self, task: str) -> Setup:
        """Return it with the variable of the task of a run, or of the run that it continues.

        A variable of `environment` comes before it.
        """
        begun = self.earlier[0].task if self.earlier else task
        return replace(self, environment={**task_environment(begun), **self.environment})

    @property
    def program(self) -> dict[str, Any]:
        """The part on which the evidence for a fix depends, besides the fix."""
        plain = self.to_plain()
        keys = ("version", "command", "oracle", "reset", "live_tools", "plain")
        return {key: plain[key] for key in keys if key in plain}

    @property
    def executed(self) -> tuple[str, ...]:
        """Names of all tools that may be executed; ``*`` for all."""
        return (*self.live_tools, *self.plain)

    def tape(self, recorded: Trajectory) -> Tape:
        """Return the tape of a run.

        Raises:
            NotReplayable: the record lacks data that a replay needs, or each replay would execute a function of the
                program whose changes nothing restores.
        """
        tape = tape_of(recorded, *self.earlier, live_tools=self.executed)
        changing = [name for name in tape.plain_functions if not {name, "*"} & {*self.plain}]
        if changing and not self.reset:
            raise NotReplayable(
                f"Run {recorded.trace_id} cannot be replayed: its program executes {', '.join(changing)} by itself in "
                "each replay, and nothing restores the state that it changes: --set reset=COMMAND names a command "
                f"that does, --set plain={changing[0]} says that it changes nothing."
            )
        return replace(tape, masks=self.masks)

    def restore(self) -> None:
        """Restore the state outside the program, if a command does that.

        Raises:
            ResetFailed: it has failed.
        """
        if self.reset:
            reset(self.reset, self.check_timeout)

    @property
    def outside_state(self) -> str:
        """The reason why replays may meet different states outside the program; empty if there is none."""
        if self.live_tools and not self.reset:
            named = "all tools" if "*" in self.live_tools else ", ".join(self.live_tools)
            return (
                f"{named} may be executed, and nothing restores the state that they change; "
                "--set reset=COMMAND names a command that does"
            )
        return ""


def setup_of(program: Program, **others: Any) -> Setup:
    """Return the setup of a program.

    Args:
        program: as the configuration file or the command line names it.
        others: further fields of `Setup`.

    Raises:
        ConfigurationError: the file of the expected answer cannot be read.
    """
    plain = {"*" if name == "all" else name for name in program.plain}
    return Setup(
        program.command,
        oracle=program.oracle or (),
        reset=program.reset or (),
        live_tools=tuple(name for name in program.executed if name not in plain),
        plain=tuple(plain),
        hosts=program.allow_hosts,
        timeout=program.timeout,
        check_timeout=program.oracle_timeout,
        resample=program.resample,
        stronger_model=program.stronger_model,
        expected=text_of(program.expected, "expected"),
        run=program.run,
        clock=program.clock,
        **others,
    )


def task_environment(task: str) -> dict[str, str]:
    """Return the variable with the task of a run; empty for a task that no variable can hold."""
    if "\0" in task or len(task.encode(errors="replace")) > _LONGEST_TASK:
        return {}
    return {TASK_VARIABLE: task}


def _by_step(texts: Mapping[int, str]) -> dict[str, str]:
    return {str(step): texts[step] for step in sorted(texts)}
