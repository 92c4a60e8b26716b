"""Sends what waits when SIGTERM or `os._exit` ends the process, because neither runs an exit handler.

Forked children end by `os._exit`: those of multiprocessing and its copies, the workers of Celery, RQ and Airflow.
Servers catch the signal, finish their requests, and some then raise it again with the action that it had before.
They are wrapped at the end of their work; a program without a server gets a handler.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FrameType
from typing import Any, Final

import wrapt

from mast_trace.delivery.span_queue import (
    TERMINATING,
    flush_all,
    is_terminated_at_the_end,
    shut_down_all,
)

_SECONDS: Final = 2.0
"""Time by which delivery may delay the end of the process."""


def flush_at_termination(*, on_sigterm: bool) -> None:
    """Send what waits when `os._exit` ends this process.

    Args:
        on_sigterm: also when SIGTERM does; handlers of others, also those in C, are left alone.
    """
    _wrap_exit()
    if not on_sigterm:
        return
    _wrap_others()
    if (
        _is_main_thread()
        and not is_terminated_at_the_end()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and not _c_handler()
    ):
        signal.signal(signal.SIGTERM, _terminated)


@cache  # as the hooks below, once for the life of the process
def _wrap_exit() -> None:
    wrapt.wrap_function_wrapper("os", "_exit", _exit)


@cache
def _wrap_others() -> None:
    wrapt.register_post_import_hook(_wrap_uvicorn, "uvicorn.server")
    for package in TERMINATING:
        wrapt.register_post_import_hook(_leave_in_workers, f"{package}.util")


def leave_termination() -> None:
    """Put back the default action of SIGTERM."""
    if _is_main_thread() and signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave_in_workers(util: Any) -> None:
    """Put back the default action in workers that are ended by the signal: their runs are sent as they end.

    Python runs a handler in the main thread, between two instructions. A signal that comes while that thread waits
    for the interpreter, and is then to wait for a lock, is not noticed. One pool in a hundred hung on busy cores.
    """
    util.register_after_fork(_leave_in_worker, lambda leave: leave())


def _leave_in_worker() -> None:
    if is_terminated_at_the_end():
        leave_termination()


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


def _exit(
    wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    try:
        shut_down_all()
    finally:
        wrapped(*args, **kwargs)


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
