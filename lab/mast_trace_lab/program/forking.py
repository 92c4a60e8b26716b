"""A process that has imported a program's libraries once, from which its replays are forked.

Importing a framework takes most of the time of a replay with a scripted or a cached model. The process runs
the Python of the program's command; each replay is a child of it with a process group and a time limit of its
own, as other replays are.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack
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
    """A process from which replays are forked, one at a time.

    The end of the ``with`` block ends the process.

    Args:
        python: the Python of the programs.
        modules: modules that are imported before the first fork.
        hash_seed: value of ``PYTHONHASHSEED``, which forks share; empty for none.

    Raises:
        NotForkable: a module cannot be imported, or the modules start threads.
        OSError: the Python cannot be started.
    """

    def __init__(self, python: str, modules: Sequence[str], hash_seed: str = "") -> None:
        super().__init__()
        ours, theirs = socket.socketpair()
        seeded = {HASH_SEED: hash_seed} if hash_seed else {}
        with theirs:
            self._process = subprocess.Popen(
                [python, "-m", "mast_trace.replay.forked", str(theirs.fileno()), *modules],
                env={**os.environ, **_SINGLE_THREADED, **seeded},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for us; it ends when our end of the socket closes
            )
        self.callback(self._end)
        self._connection = ours
        self._stream: IO[str] = ours.makefile("rw", encoding="utf-8")
        ours.settimeout(_IMPORT_SECONDS)
        try:
            reason = str(self._told()["unsafe"])
        except (OSError, ValueError, KeyError):
            reason = f"{', '.join(modules)} cannot be imported within {_IMPORT_SECONDS:g} s"
        if reason:
            self.close()
            raise NotForkable(f"{reason}; each replay starts a process of its own")

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
        child: int | None = None
        try:
            self._connection.settimeout(timeout)
            self._stream.write(json.dumps(request) + "\n")
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

    def _end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._stream.readline())
        return told


class PreparedParents(ExitStack):
    """Processes that have imported libraries, made by the first replay; each forks one at a time.

    Where nothing is replayed, such as when the budget of the day is used up, nothing is imported. Where
    replays cannot be forked, each runs in a process of its own. The end of the ``with`` block ends the processes.

    Args:
        modules: modules that are imported before the first fork; none for processes of their own.
        count: number of processes; replays beyond it wait.
        warn: told once why replays cannot be forked; None where nobody has asked for it.
    """

    def __init__(
        self,
        modules: Sequence[str],
        count: int = 1,
        *,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self._modules, self._count, self._warn = modules, count, warn
        self._free: SimpleQueue[PreparedParent] = SimpleQueue()
        self._making = Lock()
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
                if self._modules and self._kind is None:
                    for _ in range(self._count):
                        made = PreparedParent(kind[0], self._modules, kind[1])
                        self._free.put(self.enter_context(made))
                    self._kind = kind
            except NotForkable as error:
                self._modules = ()
                if self._warn is not None:
                    self._warn(str(error))
            forks = bool(self._modules) and kind == self._kind
        if not forks:
            return run_alone(command, environment, output, timeout)
        parent = self._free.get()
        try:
            return parent.run(program, environment, output, timeout)
        finally:
            self._free.put(parent)

    @property
    def is_unasked(self) -> bool:
        """True if replays are forked although nobody has asked for it."""
        return self._warn is None and bool(self._modules)

    def give_up(self) -> None:
        """Fork no longer."""
        self._modules = ()


def parents_of(program: Program, framework: str, warn: Callable[[str], object]) -> PreparedParents:
    """Return the processes for the replays of a program: with its own modules, else the libraries of a framework.

    Args:
        program: the program.
        framework: of its recorded run.
        warn: told once why the program's own modules do not serve.
    """
    if program.preload is not None:
        return PreparedParents(program.preload, program.jobs, warn=warn)
    wanted = (*_USUAL, *_LIBRARIES.get(framework, ()))
    found = [name for name in wanted if find_spec(name.partition(".")[0])]
    return PreparedParents(found, program.jobs)
