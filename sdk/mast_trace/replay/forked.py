"""Forks replays of a program from a process that has imported its libraries once.

``python -m mast_trace.replay.forked DESCRIPTOR,... MODULE...`` imports the modules and becomes one process for each
socket. Each of them says on its socket whether it may be forked, and then makes one child process for each request. The child is
the program: it has the request's variables, folder and arguments, leads a session of its own, and ends as Python programs end.
`mast_trace_lab.program.forking` is the other side.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, Final

from mast_trace._frameworks import ENTRY_POINT_GROUP
from mast_trace.replay.program import REPLAY_GROUP

_TASKS: Final = Path("/proc/self/task")
_OURS: Final = ("mast_trace.delivery.provider", "mast_trace.delivery.span_queue", "requests")
"""Modules that a program loads when it calls `mast_trace.instrument()`."""
_AT_FIRST_USE: Final = {
    "openai": "openai.resources.chat.completions.completions",
    "httpx": "httpcore",
    "httpx2": "httpcore2",
}
"""A module by the library that imports it with its first client or request: each child would do so anew."""


def unsafe() -> str:
    """Return the reason why this process must not be forked; empty if it may be.

    A fork copies one thread. Locks that another one held stay taken for ever in the child.
    """
    threads = threading.active_count()
    with suppress(OSError):  # systems without /proc: Python's own threads are all that is known
        threads = max(threads, len(list(_TASKS.iterdir())))
    return f"the imported modules have started {threads - 1} threads" if threads > 1 else ""


def prepare(modules: list[str]) -> str:
    """Import modules; return the reason why this process must not be forked, or nothing.

    Args:
        modules: names of modules.
    """
    failed = ""
    try:
        for name in (*modules, *_OURS):
            importlib.import_module(name)
        for library in sys.modules.keys() & _AT_FIRST_USE.keys():
            with suppress(ImportError):  # another release
                importlib.import_module(_AT_FIRST_USE[library])
        name = "mast-trace"
        for group in (ENTRY_POINT_GROUP, REPLAY_GROUP):
            for point in entry_points(group=group):
                point.load()
    except Exception as error:  # noqa: BLE001  # a library's own error; the text goes to the starter
        failed = f"{name} cannot be imported: {type(error).__name__}: {error}"
    # A child that ends looks through all objects for garbage, and so copies the memory that it shares with this process.
    gc.freeze()
    return failed or unsafe()


def serve(stream: IO[str], reason: str) -> dict[str, Any] | None:
    """Fork a child for each request; return the request in a child, None at the end.

    Args:
        stream: JSON lines; requests are read, and a process id and its exit status are written for each.
        reason: why this process must not be forked, or nothing.
    """
    _tell(stream, unsafe=reason)
    for line in stream:
        request: dict[str, Any] = json.loads(line)
        process = os.fork()
        if not process:
            stream.close()
            return request
        _tell(stream, process=process)
        _, status = os.waitpid(process, 0)
        _tell(stream, status=os.waitstatus_to_exitcode(status))
    return None


def run(request: dict[str, Any]) -> None:
    """Run the program of a request in this process.

    Raises:
        SystemExit: the program has ended so.
        Exception: the program has ended so.
    """
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    _redirect(request["output"])
    kind, program, *arguments = request["program"]
    sys.argv = [program, *arguments]
    if kind == "module":
        sys.path[0] = request["folder"]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


def _redirect(output: str) -> None:
    """Give the program no input, and its outputs the same destinations as in a process of its own."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    if output == "discarded":
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    elif output == "standard error":
        os.dup2(2, 1)
    os.close(nowhere)


def _tell(stream: IO[str], **values: object) -> None:
    stream.write(json.dumps(values) + "\n")
    stream.flush()


def main() -> None:
    """Serve until the starter closes its end."""
    descriptors, *modules = sys.argv[1:]
    every = [int(each) for each in descriptors.split(",")]
    own = every[0]
    reason = prepare(modules)
    for descriptor in () if reason else every[1:]:
        if not os.fork():
            own = descriptor
            break
    # A socket that another process holds as well does not end when its own one dies.
    for descriptor in every:
        if descriptor != own:
            os.close(descriptor)
    request = None
    with socket.socket(fileno=own) as connection, suppress(ConnectionError):
        # A starter that was killed reads no more.
        request = serve(connection.makefile("rw", encoding="utf-8"), reason)
    if request is not None:
        run(request)


if __name__ == "__main__":
    main()
