"""A process that has imported a program's libraries once, from which its replays are forked.

Importing a framework takes most of the time of a replay with a scripted or a cached model. The process runs
the Python of the program's command; each replay is a child of it with a process group and a time limit of its
own, as other replays are.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from mast_trace.exceptions import MastTraceError
from mast_trace_lab.program.process import Output, kill_group, run_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self


_SINGLE_THREADED: Final = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Variables without which numerical libraries start threads when they are imported; the children get the
program's own."""
_IMPORT_SECONDS: Final = 120.0

_LOG = logging.getLogger(__name__)


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


class PreparedParent:
    """The process from which the replays of one program are forked, one at a time.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork.

    Raises:
        NotForkable: the command is no Python program, a module cannot be imported, or the modules start
            threads.
        OSError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str]) -> None:
        self._program = program_of(command)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [command[0], "-m", "mast_trace.replay.forked", str(theirs.fileno()), *modules],
                env={**os.environ, **_SINGLE_THREADED},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
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

    def close(self) -> None:
        """End the process; may be called twice."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._stream.readline())
        return told


class ForkedLater(ExitStack):
    """The replays of one program, one at a time, forked from a process that the first of them makes.

    Where nothing is replayed, such as when the budget of the day is used up, nothing is imported. Where
    replays cannot be forked, this is logged once, and each runs in a process of its own. The end of the
    ``with`` block ends the process.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork; none for processes of their own.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str]) -> None:
        super().__init__()
        self._command, self._modules = command, modules
        self._parent: PreparedParent | None = None

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Run the program and return its exit status; see `PreparedParent.run`.

        Raises:
            NotForkable: the process from which it is forked has ended.
            OSError: the command cannot be started.
        """
        if self._modules:
            modules, self._modules = self._modules, ()
            try:
                self._parent = self.enter_context(PreparedParent(self._command, modules))
            except NotForkable as error:
                _LOG.warning("%s", error)
        if self._parent is None:
            return run_alone(self._command, environment, output, timeout)
        return self._parent.run(environment, output, timeout)


class PreparedParents(ExitStack):
    """Processes that have imported a program's libraries; each forks one replay at a time.

    The end of the ``with`` block ends the processes.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork.
        count: number of processes; replays beyond it wait.

    Raises:
        NotForkable: as for `PreparedParent`.
        OSError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str], count: int = 1) -> None:
        super().__init__()
        self._free: SimpleQueue[PreparedParent] = SimpleQueue()
        try:
            for _ in range(count):
                self._free.put(self.enter_context(PreparedParent(command, modules)))
        except BaseException:
            self.close()
            raise

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Fork the program from a process that is free; see `PreparedParent.run`.

        Raises:
            NotForkable: the process has ended.
        """
        parent = self._free.get()
        try:
            return parent.run(environment, output, timeout)
        finally:
            self._free.put(parent)


@contextmanager
def prepared(
    command: Sequence[str],
    modules: Sequence[str],
    count: int = 1,
    *,
    warn: Callable[[str], None] = lambda _text: None,
) -> Iterator[PreparedParents | None]:
    """Import modules once for the replays of a program; yield None if each starts a process of its own.

    Args:
        command: the program and its arguments.
        modules: to import; none for processes of their own.
        count: replays at the same time.
        warn: told why replays cannot be forked.

    Raises:
        OSError: the command cannot be started.
    """
    if not modules:
        yield None
        return
    try:
        parents = PreparedParents(command, modules, count)
    except NotForkable as error:
        warn(str(error))
        yield None
        return
    with parents:
        yield parents
