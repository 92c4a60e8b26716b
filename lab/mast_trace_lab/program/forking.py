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
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from mast_trace.exceptions import MastTraceError
from mast_trace_lab.program.process import Output, kill_group, run_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_SINGLE_THREADED: Final = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Variables without which numerical libraries start threads when they are imported; the children get the
program's own."""
_IMPORT_SECONDS: Final = 120.0


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
    """An origin of forked replays: one prepared process, or several."""

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Fork the program and return its exit status; see `PreparedParent.run`."""
        ...


class PreparedParent(ExitStack):
    """The process from which the replays of one program are forked, one at a time.

    The end of the ``with`` block ends the process.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork.

    Raises:
        NotForkable: the command is no Python program, a module cannot be imported, or the modules start
            threads.
        OSError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str]) -> None:
        super().__init__()
        self._program = program_of(command)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [command[0], "-m", "mast_trace.replay.forked", str(theirs.fileno()), *modules],
                env={**os.environ, **_SINGLE_THREADED},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
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

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Fork the program and return its exit status; None if it was killed at the timeout.

        Args:
            environment: all its variables.
            output: see `mast_trace_lab.program.process.Output`.
            timeout: seconds until it is killed, with its child processes.

        Raises:
            NotForkable: the process has ended.
        """
        request = {
            "program": self._program,
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
    """Processes that have imported a program's libraries, made by its first replay; each forks one at a time.

    Where nothing is replayed, such as when the budget of the day is used up, nothing is imported. Where
    replays cannot be forked, each runs in a process of its own. The end of the ``with`` block ends the processes.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork; none for processes of their own.
        count: number of processes; replays beyond it wait.
        warn: told once why replays cannot be forked.
    """

    def __init__(
        self,
        command: Sequence[str],
        modules: Sequence[str] | None,
        count: int = 1,
        *,
        warn: Callable[[str], object] = lambda _text: None,
    ) -> None:
        super().__init__()
        self._command, self._modules = command, modules
        self._count, self._warn = count, warn
        self._free: SimpleQueue[PreparedParent] = SimpleQueue()
        self._making = Lock()
        self._forks = False

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Run the program and return its exit status; see `PreparedParent.run`.

        Raises:
            NotForkable: the process from which it is forked has ended.
            OSError: the command cannot be started.
        """
        if not self._are_made():
            return run_alone(self._command, environment, output, timeout)
        parent = self._free.get()
        try:
            return parent.run(environment, output, timeout)
        finally:
            self._free.put(parent)

    def _are_made(self) -> bool:
        """Make the processes, the first time; return whether replays are forked."""
        with self._making:
            modules, self._modules = self._modules, ()
            if modules:
                try:
                    for _ in range(self._count):
                        self._free.put(self.enter_context(PreparedParent(self._command, modules)))
                    self._forks = True
                except NotForkable as error:
                    self._warn(str(error))
            return self._forks
