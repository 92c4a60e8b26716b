"""A process that has imported a program's libraries once, from which its replays are forked.

Importing a framework takes most of the time of a replay with a scripted or a cached model. The process runs
the Python of the program's command, and forks itself where several replays run together; each replay is a child of one of
them with a process group and a time limit of its own, as other replays are.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from mast_trace.exceptions import MastTraceError
from mast_trace.spans.randomness import HASH_SEED
from mast_trace_lab.program.process import Output, kill_group, run_alone, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_dashboards.programs import Program


_SINGLE_THREADED: Final = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "CREWAI_DISABLE_TELEMETRY": "true",
}
"""Variables without which numerical libraries and CrewAI start threads when they are imported; the children get the
program's own."""
_IMPORT_SECONDS: Final = 120.0
_USUAL: Final = ("openai", "time_machine")
_LIBRARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "ag2": ("ag2.config", "ag2.network"),
    "autogen": ("autogen.agentchat.group.patterns",),
    "crewai": ("crewai",),
    "langgraph": ("langgraph.graph", "langchain_openai"),
    # MetaGPT itself reads its settings while it is imported, and a program may write them before.
    "metagpt": (
        "google.generativeai",
        "anthropic",
        "sklearn.impute",
        "IPython",
        "pandas",
        "qianfan",
        "dashscope",
    ),
}
"""Modules by framework that take long to import, and neither start threads nor do anything else when they are."""


class NotForkable(MastTraceError):
    """Replays of the program cannot be forked; the text says why."""


def program_of(command: Sequence[str]) -> list[str]:
    """Return the kind of a Python program, its name and its arguments.

    Raises:
        NotForkable: the command is not ``PYTHON FILE ...`` or ``PYTHON -m MODULE ...``.
    """
    python, *rest = command
    if "python" in Path(python).name and rest:
        if rest[0] == "-m" and len(rest) > 1:
            return ["module", *rest[1:]]
        if not rest[0].startswith("-"):
            return ["file", *rest]
    raise NotForkable(
        f"`{' '.join(command)}` is not of the form `python FILE ...` or `python -m MODULE ...`, "
        "so that its replays cannot be forked; leave preload out"
    )


class Forking(Protocol):
    """An origin of replays: processes of their own, or forked ones."""

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        timeout: float,
    ) -> int | None:
        """Run a program and return its exit status; None if it was killed at the timeout."""
        ...

    @property
    def is_unasked(self) -> bool:
        """True if replays are forked although nobody has asked for it."""
        ...

    def give_up(self) -> None:
        """Fork no longer."""
        ...


class PreparedParent(ExitStack):
    """A process that has imported modules once, and from which replays are forked, some at a time.

    The end of the ``with`` block ends the process.

    Args:
        python: the Python of the programs.
        modules: modules that are imported before the first fork.
        hash_seed: value of ``PYTHONHASHSEED``, which forks share; empty for none.
        at_a_time: number of replays; those beyond it wait.

    Raises:
        NotForkable: a module cannot be imported, or the modules start threads.
        OSError: the Python cannot be started.
    """

    def __init__(
        self, python: str, modules: Sequence[str], hash_seed: str = "", at_a_time: int = 1
    ) -> None:
        super().__init__()
        ours, theirs = zip(*(socket.socketpair() for _ in range(at_a_time)), strict=True)
        seeded = {HASH_SEED: hash_seed} if hash_seed else {}
        numbers = [each.fileno() for each in theirs]
        try:
            self._process = subprocess.Popen(
                [python, "-m", "mast_trace.replay.forked", ",".join(map(str, numbers)), *modules],
                env={**os.environ, **_SINGLE_THREADED, **seeded},
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
                start_new_session=True,  # Ctrl-C is for us; it ends when our ends of the sockets close
            )
        finally:
            for each in theirs:
                each.close()
        self.callback(self._end)
        self._forkers = [_Forker(each) for each in ours]
        reason = next(filter(None, (each.refusal(modules) for each in self._forkers)), "")
        if reason:
            self.close()
            raise NotForkable(f"{reason}; each replay starts a process of its own")
        self._free: SimpleQueue[_Forker] = SimpleQueue()
        for each in self._forkers:
            self._free.put(each)

    def run(
        self,
        program: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        timeout: float,
    ) -> int | None:
        """Fork a program and return its exit status; None if it was killed at the timeout.

        Args:
            program: see `program_of`.
            environment: all its variables.
            output: see `mast_trace_lab.program.process.Output`.
            timeout: seconds until it is killed, with its child processes.

        Raises:
            NotForkable: the process has ended.
        """
        request = {
            "program": [*program],
            "environment": dict(environment),
            "folder": str(Path.cwd()),
            "output": output,
        }
        forker = self._free.get()
        try:
            return forker.run(json.dumps(request), timeout)
        finally:
            self._free.put(forker)

    def _end(self) -> None:
        for each in self._forkers:
            each.close()
        self._process.kill()
        self._process.wait()


class _Forker:
    """One of the processes that fork a prepared one: a child at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream: IO[str] = connection.makefile("rw", encoding="utf-8")

    def refusal(self, modules: Sequence[str]) -> str:
        """Return the reason why nothing can be forked, once the modules are imported; empty if it can."""
        self._connection.settimeout(_IMPORT_SECONDS)
        try:
            return str(self._told()["unsafe"])
        except (OSError, ValueError, KeyError):
            return f"{', '.join(modules)} cannot be imported within {_IMPORT_SECONDS:g} s"

    def run(self, request: str, timeout: float) -> int | None:
        """Fork a child; see `PreparedParent.run`."""
        child: int | None = None
        try:
            self._connection.settimeout(timeout)
            self._stream.write(request + "\n")
            self._stream.flush()
            child = int(self._told()["process"])
            wait_for(child)
            return int(self._told()["status"])
        except TimeoutError:
            if child is None:
                raise NotForkable("the process that is forked does not answer") from None
            kill_group(child)
            # A stream that has timed out once refuses to be read again.
            self._stream = self._connection.makefile("rw", encoding="utf-8")
            self._connection.settimeout(None)
            self._told()
            return None
        except (OSError, ValueError) as error:
            raise NotForkable(f"the process that is forked has ended: {error}") from error
        finally:
            if child is not None:
                kill_group(child)

    def close(self) -> None:
        """End the process, once its child has ended."""
        with suppress(OSError):  # it has ended already
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._stream.readline())
        return told


class LazyParent(ExitStack):
    """A `PreparedParent` that the first replay makes.

    Where nothing is replayed, such as when the budget of the day is used up, nothing is imported. Where
    replays cannot be forked, each runs in a process of its own. The end of the ``with`` block ends the process.

    Args:
        modules: modules that are imported before the first fork; none for processes of their own.
        at_a_time: number of replays that are forked together; those beyond it wait.
        warn: told once why replays cannot be forked; None where nobody has asked for it.
    """

    def __init__(
        self,
        modules: Sequence[str],
        at_a_time: int = 1,
        *,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self._modules, self._at_a_time, self._warn = modules, at_a_time, warn
        self._making = Lock()
        self._parent: PreparedParent | None = None
        self._kind: tuple[str, str] | None = None

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        timeout: float,
    ) -> int | None:
        """Run a program and return its exit status; see `PreparedParent.run`.

        Raises:
            NotForkable: the process from which it is forked has ended.
            OSError: the command cannot be started.
        """
        kind = (command[0], environment.get(HASH_SEED, ""))
        with self._making:
            try:
                program = program_of(command) if self._modules else []
                if self._modules and self._parent is None:
                    made = PreparedParent(kind[0], self._modules, kind[1], self._at_a_time)
                    self._parent, self._kind = self.enter_context(made), kind
            except NotForkable as error:
                self._modules = ()
                if self._warn is not None:
                    self._warn(str(error))
            parent = self._parent if self._modules and kind == self._kind else None
        if parent is None:
            return run_alone(command, environment, output, timeout)
        return parent.run(program, environment, output, timeout)

    @property
    def is_unasked(self) -> bool:
        """True if replays are forked although nobody has asked for it."""
        return self._warn is None and bool(self._modules)

    def give_up(self) -> None:
        """Fork no longer."""
        self._modules = ()


def parent_of(program: Program, framework: str, warn: Callable[[str], object]) -> LazyParent:
    """Return the process for the replays of a program: with its own modules, else the libraries of a framework.

    Args:
        program: the program.
        framework: of its recorded run.
        warn: told once why the program's own modules do not serve.
    """
    if program.preload is not None:
        return LazyParent(program.preload, program.jobs, warn=warn)
    wanted = (*_USUAL, *_LIBRARIES.get(framework, ()))
    found = [name for name in wanted if find_spec(name.partition(".")[0])]
    return LazyParent(found, program.jobs)
