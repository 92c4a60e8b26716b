"""The pages on patterns: the list, one pattern, and what people say of it; counts that take long are shown again at once."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.found_pattern import FoundPattern, cost_of, find_pattern, set_state
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.run_names import NotFound, parse_time
from mast_trace_dashboards.web.filters import read_form
from mast_trace_dashboards.web.views import StoredPages
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store


_LOG = logging.getLogger(__name__)
_MOST_COUNTS: Final = 32
LONGEST: Final = 600.0
"""Seconds after which a count is shown no more: what was erased meanwhile may be in it."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Counted(Generic[Made]):
    """A count, with its time.

    Attributes:
        made: the count.
        at: time at which it was begun.
        is_newest: False if something has been stored since; a newer count is then being made.
    """

    made: Made
    at: datetime
    is_newest: bool = True


@dataclass
class _Kept(Generic[Made]):
    counted: Counted[Made]
    version: Hashable
    begun: float
    is_renewed: bool = False


class CountCache(Generic[Made]):
    """Counts by the question that they answer, at most 32 of them.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._generation = 0
        # Ordered by last use.
        self._kept: OrderedDict[Hashable, _Kept[Made]] = OrderedDict()

    def of(self, question: Hashable, version: Hashable, count: Callable[[], Made]) -> Counted[Made]:
        """Return the count of a question, one that was made before if there is one.

        Args:
            question: what is counted.
            version: of what is stored; a kept count of another version is renewed in the background.
            count: makes the count; it may be called in a thread of its own.
        """
        with self._lock:
            kept = self._kept.get(question)
            if kept is not None and self._clock() - kept.begun > LONGEST:
                del self._kept[question]
                kept = None
            if kept is not None:
                self._kept.move_to_end(question)
                if kept.version == version:
                    return kept.counted
                renews, kept.is_renewed = not kept.is_renewed, True
        if kept is None:
            return self._make(question, version, count)
        if renews:
            given = (question, version, count)
            threading.Thread(
                target=self._renew, args=given, name="renew a count", daemon=True
            ).start()
        return replace(kept.counted, is_newest=False)

    def forget(self) -> None:
        """Drop all counts, those that are being made too: their subject was changed, or erased."""
        with self._lock:
            self._generation += 1
            self._kept.clear()

    def _make(
        self, question: Hashable, version: Hashable, count: Callable[[], Made]
    ) -> Counted[Made]:
        generation, begun, at = self._generation, self._clock(), datetime.now(timezone.utc)
        counted = Counted(count(), at)
        with self._lock:
            before = self._kept.get(question)
            if generation != self._generation or (before is not None and before.begun > begun):
                return counted
            self._kept.pop(question, None)
            self._kept[question] = _Kept(counted, version, begun)
            while len(self._kept) > _MOST_COUNTS:
                self._kept.popitem(last=False)
        return counted

    def _renew(self, question: Hashable, version: Hashable, count: Callable[[], Made]) -> None:
        try:
            self._make(question, version, count)
        except Exception:  # noqa: BLE001  # whatever it was, the next visitor tries again
            _LOG.exception("a newer count failed, the one before is shown")
            with self._lock:
                if kept := self._kept.get(question):
                    kept.is_renewed = False


_WARNING: Final = 3.0
"""Least evidence against a version that is shown, as in the alerts."""
_STATES: Final = ("open", "acknowledged", "resolved", "reopened")
_MOST: Final = 100
_OF_SERVICE: Final = 15
LARGE: Final = 20_000
"""Judged runs from which the list is kept, and counted anew in the background; below it takes a tenth of a second."""
_STORED: Final = """
SELECT (SELECT (count(), max(JudgedAt)) FROM mast_pattern_runs) AS Runs,
    (SELECT (count(), max(ChangedAt)) FROM mast_pattern_states) AS States,
    (SELECT (count(), max(NamedAt)) FROM mast_pattern_names) AS Names,
    (SELECT (count(), max(ConfirmedAt)) FROM mast_confirmations) AS Confirmations"""
"""Tells in milliseconds whether something was stored since a count."""


class PatternPages(StoredPages):
    """The handlers of these pages.

    Args:
        store: the database; one project's, if only that may be seen.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        super().__init__(store, templates)
        self._counts: CountCache[tuple[list[Any], ...]] = CountCache()
        self._rows: list[int] = []

    async def patterns(self, request: Request) -> Response:
        """Answer with the patterns, the actions that separate runs, and the versions that got worse."""
        asked = request.query_params
        since, state = asked.get("since", ""), asked.get("state", "")
        service, mode = asked.get("service", ""), asked.get("mode", "")
        if state not in {"", *_STATES}:
            raise HTTPException(400, "Choose a state that the page offers.")
        try:
            given: dict[str, Any] = {"since": parse_time(since)} if since else {}
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        if service:
            given["services"] = [service]
        chosen = {"states": [state] if state else [], "modes": [mode] if mode else []}
        counted = await asyncio.to_thread(
            self._counted, (since, state, service, mode), given, chosen
        )
        rows, separating, versions, problems, counts = counted.made
        return self._html(
            request,
            "patterns.html",
            rows=rows[:_MOST],
            more=len(rows) > _MOST,
            separating=separating,
            versions=versions,
            counts=counts,
            problems=found_pattern.naming_problems(problems, rows[:_MOST]),
            counted=counted,
            chosen={"since": since, "state": state, "service": service, "mode": mode},
            states=_STATES,
            modes=FAILURE_MODES,
            words=found_pattern,
        )

    def _counted(
        self, question: tuple[str, ...], given: dict[str, Any], chosen: dict[str, Any]
    ) -> Counted[tuple[list[Any], ...]]:
        (stored,) = self._store.query(_STORED)
        if stored["Runs"][0] < LARGE:
            return Counted(self._listed(given, chosen), datetime.now(timezone.utc))
        version = tuple(stored.values())
        rows = [count for count, _ in version]
        # Fewer rows: something was erased, and no list may show it any more. Merged parts do no harm.
        if any(now < before for now, before in zip(rows, self._rows, strict=False)):
            self._counts.forget()
        self._rows = rows
        return self._counts.of(question, version, lambda: self._listed(given, chosen))

    def _listed(self, given: dict[str, Any], chosen: dict[str, Any]) -> tuple[list[Any], ...]:
        patterns, separating, worse, naming, modes = side_by_side(
            partial(QUERIES["patterns"].run, self._store, **given, **chosen, limit=_MOST + 1),
            partial(QUERIES["separating_actions"].run, self._store, **given, limit=_OF_SERVICE),
            partial(QUERIES["version_regressions"].run, self._store, **given, limit=_OF_SERVICE),
            partial(QUERIES["pattern_naming"].run, self._store),
            partial(QUERIES["mode_counts"].run, self._store, **given),
        )
        warned = [row for row in worse if row["Evidence"] >= _WARNING]
        return patterns, separating, warned, naming, modes

    async def pattern(self, request: Request) -> Response:
        """Answer with one pattern, its runs and the commands that go on from it."""
        found = await asyncio.to_thread(self._pattern, request.path_params["pattern"])
        cost = await asyncio.to_thread(cost_of, self._store, found)
        return self._html(
            request,
            "pattern.html",
            row=found.row,
            title=found_pattern.title(found.row),
            said=found_pattern.said_of(found, cost),
        )

    async def pattern_state(self, request: Request) -> Response:
        """Store that a pattern is acknowledged, resolved or open again."""
        name = request.path_params["pattern"]
        found = await asyncio.to_thread(self._pattern, name)
        form = await read_form(request)
        author = visitor_of(request).user or form["author"][0]
        try:
            await asyncio.to_thread(
                set_state,
                self._store,
                found.row["PatternId"],
                form["state"][0],
                author,
                version=form["version"][0] if form["state"][0] == "resolved" else "",
                note=form["note"][0],
                project=found.row["Project"],
            )
            self._counts.forget()
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        asked = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/patterns/{found.row['PatternId']}{asked}", 303)

    def _pattern(self, name: str) -> FoundPattern:
        try:
            return find_pattern(self._store, name)
        except NotFound as error:
            raise HTTPException(404, f"There is no pattern {name}.") from error
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
