"""Locks that are free in a forked child, whoever held them in the parent.

A fork copies only the thread that forks. A lock that another thread held at that moment stays taken in
the child, whose first call into the SDK would then wait for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """Return a lock that a forked child finds free."""
    made = threading.Lock()
    _locks.add(made)
    return made


def reentrant_lock() -> threading.RLock:
    """Return a re-entrant lock that a forked child finds free."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _free() -> None:
    for taken in list(_locks):
        # A thread that forks inside of a block goes on in it, and leaves it, in the child.
        if getattr(taken, "_is_owned", bool)():
            continue
        # The method by which the standard library frees its own locks, those of logging among them.
        taken._at_fork_reinit()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
