"""Things that exist once for each project, on a store that is limited to it."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace_collector.storage.project_store import store_of_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.storage import Store

_MOST_PROJECTS = 256
_IDLE_SECONDS = 600.0

Made = TypeVar("Made")


@dataclass
class _OfProject(Generic[Made]):
    """A project's store and what was made on it, with the time of their last use."""

    store: Store
    made: Made
    used: float = 0.0


class PerProject(Generic[Made]):
    """Makes one object for each project that is asked for, and one for all projects together.

    The object needs no check of the project: its store leaves out all other projects. Projects that
    nobody uses are closed, because each connection takes half a MiB and more.

    Args:
        store: of all projects; the caller closes it.
        make: makes an object on a store.
    """

    def __init__(self, store: Store, make: Callable[[Store], Made]) -> None:
        self._store = store
        self._make = make
        self._all = make(store)
        self._lock = Lock()
        # Ordered by last use.
        self._of_project: OrderedDict[str, _OfProject[Made]] = OrderedDict()

    def of(self, project: str | None) -> Made:
        """Return the object of a project; that of all projects for None."""
        if project is None:
            return self._all
        with self._lock:
            found = self._of_project.pop(project, None)
            if found is None:
                self._close_idle()
                store = store_of_project(self._store, project)
                found = _OfProject(store, self._make(store))
            found.used = time.monotonic()
            self._of_project[project] = found
            return found.made

    def _close_idle(self) -> None:
        while self._of_project:
            longest = next(iter(self._of_project.values()))
            idle = time.monotonic() - longest.used
            if idle < _IDLE_SECONDS and len(self._of_project) < _MOST_PROJECTS:
                return
            self._of_project.popitem(last=False)
            longest.store.close()
