"""Sends what waits when SIGTERM ends the process, because its default action runs no exit handler.

Servers catch the signal, finish their requests, and some then raise it again with the action that it had
before. They are wrapped at the end of their work; a program without a server gets a handler.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NamedTuple

import wrapt

from mast_trace.delivery.span_queue import flush_all

_SECONDS: Final = 2.0
"""Time by which delivery may delay the end of the process."""
_PATIENCE: Final = 0.2
"""Seconds in which the main thread of a child should begin to handle SIGTERM."""
_hooked = False


class _Watched(NamedTuple):
    """A process whose signals are told to a thread, and the ends of the pipe that tells them."""

    process: int = 0
    reader: int = -1
    writer: int = -1


_watched = _Watched()


def flush_at_termination() -> None:
    """Send what waits when SIGTERM ends this process; handlers of others, also those in C, are left alone."""
    global _hooked  # noqa: PLW0603  # the hooks stay for the life of the process
    if not _hooked:
        _hooked = True
        wrapt.register_post_import_hook(_wrap_uvicorn, "uvicorn.server")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_watch)
    if (
        _is_main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and not _c_handler()
    ):
        signal.signal(signal.SIGTERM, _terminated)
        processes = sys.modules.get("multiprocessing.process")
        if processes is not None and processes.parent_process() is not None:
            _watch()


def leave_termination() -> None:
    """Put back the default action of SIGTERM."""
    if _is_main_thread() and signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _c_handler() -> bool:
    """Return whether code other than Python's has installed a handler, which `signal.getsignal` does not see."""
    import ctypes

    getsig = ctypes.pythonapi.PyOS_getsig
    getsig.restype = ctypes.c_void_p
    return bool(getsig(signal.SIGTERM))


def _terminated(number: int, _frame: FrameType | None) -> None:
    # Another handler may call this one, as the earlier handler, and go on: the end is its to decide.
    ours = signal.getsignal(number) is _terminated
    if ours:
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
    try:
        flush_all(_SECONDS)
    finally:
        if ours:
            signal.raise_signal(number)


def _watch() -> None:
    """Let a thread end this child where its main thread does not notice SIGTERM.

    Python runs handlers between two instructions. A signal that comes while the main thread waits for the
    interpreter, and is then to wait for a lock, is noticed when it has the lock. The worker of a pool never gets
    it, and who ends the pool waits for the worker for ever. Programs that are no children keep to Python's way:
    the file descriptor that tells of signals belongs to them.
    """
    global _watched  # noqa: PLW0603  # one for each process
    if not hasattr(os, "fork") or not _is_main_thread() or _watched.process == os.getpid():
        return
    earlier = signal.set_wakeup_fd(-1)
    if earlier not in (-1, _watched.writer):  # another's, such as that of an event loop
        signal.set_wakeup_fd(earlier)
        return
    for inherited in {_watched.reader, _watched.writer} - {-1}:
        os.close(inherited)
    _watched = _Watched()
    # Threads of these are none: one that waits for a pipe would stop all others.
    is_real = not sys.modules.keys() & {"gevent.monkey", "eventlet.patcher"}
    if is_real and signal.getsignal(signal.SIGTERM) is _terminated:
        with suppress(OSError, RuntimeError):  # no file or thread can be had: Python's way
            _watched = _Watched(os.getpid(), *os.pipe())
            os.set_blocking(_watched.writer, False)
            name, given = "mast-trace-sigterm", (_watched.reader,)
            threading.Thread(target=_stand_in, args=given, name=name, daemon=True).start()
            signal.set_wakeup_fd(_watched.writer, warn_on_full_buffer=False)


def _stand_in(reader: int) -> None:
    import ctypes

    while told := os.read(reader, 64):
        if signal.SIGTERM not in told:
            continue
        time.sleep(_PATIENCE)
        if signal.getsignal(signal.SIGTERM) is _terminated:  # else the main thread has begun
            flush_all(_SECONDS)
            ctypes.pythonapi.PyOS_setsig(int(signal.SIGTERM), None)
            os.kill(os.getpid(), signal.SIGTERM)


def _wrap_uvicorn(_module: Any) -> None:
    wrapt.wrap_function_wrapper("uvicorn.server", "Server.shutdown", _shut_down)


async def _shut_down(
    wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    try:
        return await wrapped(*args, **kwargs)
    finally:
        import asyncio  # the server has loaded both, a program without one need not
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1)  # the loop's own may be busy
        with suppress(RuntimeError):  # no thread can be started any more
            await asyncio.get_running_loop().run_in_executor(pool, flush_all, _SECONDS)
        pool.shutdown(wait=False)
