"""The handlers of the pages on which runs, steps and texts are found, and of those of totals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards.cost_words import cost_words, costs_of
from mast_trace_dashboards.plugins import sections_of
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.groups import GROUPS
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.step_input import seen_at, why_unknown
from mast_trace_dashboards.web.counts import StoredCounts
from mast_trace_dashboards.web.filters import AGES, COST, Filters, whole
from mast_trace_dashboards.web.finding.queue_view import (
    LABELLED,
    agreement_as_it_grows,
    just_labelled,
    queue,
)
from mast_trace_dashboards.web.finding.run_list import (
    KINDS,
    MOST_EXPORTED,
    RunList,
    csv_of,
    jsonl_of,
)
from mast_trace_dashboards.web.finding.seen_view import seen_view, tree_of
from mast_trace_dashboards.web.finding.text_search import SearchHits, TextHit, TextSearch
from mast_trace_dashboards.web.views import StoredPages, in_blocks, streamed
from mast_trace_dashboards.web.visitor import visitor_of
from mast_trace_judge.store.model_records import model_records
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.loaded_run import LoadedRun


PER_PAGE: Final = 50
"""Number of groups on a page."""


@dataclass(frozen=True)
class Group:
    """The runs of one user, session or version.

    Attributes:
        value: the user, the session or the version.
        service: of the runs; one of them, if there are several.
        runs: their number.
        words: the share of failures among the runs with an outcome, with its interval.
        tokens: of the judged runs.
        first: start of the first run.
        last: start of the last run.
        address: the query string of the list of its runs.
    """

    value: str
    service: str
    runs: int
    words: str
    tokens: int
    first: datetime
    last: datetime
    address: str


def groups(store: Store, by: str, filters: Filters) -> tuple[Sequence[Group], bool]:
    """Return a page of groups, the latest first, and whether there are more.

    Args:
        store: the database, of the visitor's project.
        by: one of `mast_trace_dashboards.queries.groups.GROUPS`.
        filters: the time, and the service.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES[f"runs_by_{by}"].run(
        store, **filters.narrowing, limit=PER_PAGE + 1, offset=filters.number * PER_PAGE
    )
    found = [
        Group(
            value=row["Value"],
            service=row["ServiceName"],
            runs=row["Runs"],
            words=rate_words(row["Failures"], row["Known"]),
            tokens=row["Tokens"],
            first=row["First"],
            last=row["Last"],
            address=filters.with_value(by, row["Value"]),
        )
        for row in rows[:PER_PAGE]
    ]
    return found, len(rows) > PER_PAGE


def without_groups(store: Store, by: str, filters: Filters) -> int:
    """Return the number of runs of the time whose user or session is lost; 0 for versions, which all runs keep.

    Raises:
        StorageError: the database does not answer.
    """
    if by == "version":
        return 0
    row = QUERIES["runs_without_groups"].one(store, **filters.narrowing)
    return int(row["Runs"]) if row else 0


def rate_words(failures: int, known: int) -> str:
    """Return a share of failures with its interval; words where no outcome is known."""
    if not known:
        return "no outcome is known"
    span = wilson(failures, known)
    share, low, high = (_in_hundred(each) for each in (failures / known, span.low, span.high))
    return f"{failures:,} of {known:,} ({share} %, {low} to {high} %)"


def _in_hundred(share: float) -> str:
    """Return a share in per cent; a small one keeps its first digit."""
    return f"{100 * share:.{0 if share >= _SMALL or share < _NONE else 2}f}"


_SMALL: Final = 0.01
_NONE: Final = 0.00005
_NOTHING: Final = SearchHits([], more=False, newest=True)


class FindingPages(StoredPages):
    """The handlers of these pages.

    Args:
        store: the database, of the visitor's project.
        templates: of the pages.
        open_run: looks a run up; raises HTTPException where there is none.
        run_list: reads pages of the run list.
    """

    def __init__(
        self,
        store: Store,
        templates: Jinja2Templates,
        open_run: Callable[[str], LoadedRun],
        run_list: RunList,
    ) -> None:
        super().__init__(store, templates)
        self._list = run_list
        self._open = open_run

    async def step_input(self, request: Request) -> Response:
        """Answer with the messages that the agent of a step was shown, as a part of the run page."""
        asked, trace_id = request.path_params["step"], request.path_params["run"]
        values = await asyncio.to_thread(self._seen, trace_id, asked)
        return self._html(request, "_input.html", **values)

    async def groups(self, request: Request) -> Response:
        """Answer with the users, the sessions or the versions, and the rate of failures of each."""
        by = request.path_params["by"]
        if by not in GROUPS:
            raise HTTPException(404, f"Runs are grouped by {', '.join(GROUPS)}, not by {by}.")
        filters = Filters.of(request.query_params)
        rows, more = await asyncio.to_thread(groups, self._store, by, filters)
        lost = await asyncio.to_thread(without_groups, self._store, by, filters)
        return self._html(
            request,
            "groups.html",
            by=by,
            rows=rows,
            lost=lost,
            filters=filters,
            ages=AGES,
            more=filters.later() if more else None,
            address=filters.with_value("text", "") if filters.chosen else "",
        )

    async def search(self, request: Request) -> Response:
        """Answer with the texts that hold a text: the first hits at once, then their number."""
        filters = Filters.of(request.query_params)
        of_project = visitor_of(request).project is not None
        asked = TextSearch(self._store, filters, of_project=of_project)
        found = await asyncio.to_thread(asked.hits) if filters.text else _NOTHING
        whole = not found.more and not filters.number
        values = {
            "filters": filters,
            "found": found,
            "grouped": await asyncio.to_thread(self._by_run, filters, found.hits),
            "whole": whole,
            "count": asked.count,
            "ages": AGES,
        }
        if whole:
            return self._html(request, "search.html", **values)
        return streamed(self._templates, request, "search.html", values)

    def _by_run(
        self, filters: Filters, hits: Sequence[TextHit]
    ) -> list[tuple[Mapping[str, Any] | None, list[TextHit]]]:
        """Return each run, None if it has no state yet, with its hits, in the order of the newest hit of each."""
        groups: dict[tuple[str, str], list[TextHit]] = {}
        for hit in hits:
            groups.setdefault((hit.owner, hit.run), []).append(hit)
        runs = list({run for _, run in groups})
        rows = self._list.selected(filters, runs, len(groups)).rows if runs else []
        known = {(row["Project"], row["TraceId"]): row for row in rows}
        return [(known.get(named), each) for named, each in groups.items()]

    async def queue(self, request: Request) -> Response:
        """Answer with the runs to label, and the agreement so far."""
        user = visitor_of(request).user
        values = {
            "queued": await asyncio.to_thread(queue, self._store, user),
            "grown": await asyncio.to_thread(agreement_as_it_grows, self._store),
            "records": await asyncio.to_thread(model_records, self._store),
            "sections": await asyncio.to_thread(sections_of, "queue", self._store),
            "just_labelled": just_labelled(request.query_params),
        }
        return streamed(self._templates, request, "queue.html", values)

    async def next_queued(self, request: Request) -> Response:
        """Redirect to the first run of the queue, or to the one after a run that is skipped."""
        rows = await asyncio.to_thread(queue, self._store, visitor_of(request).user)
        skipped = request.query_params.get("after", "")
        places = [place for place, row in enumerate(rows) if row["TraceId"] == skipped]
        rest = rows[places[0] + 1 :] if places else rows
        chosen = request.query_params.get("project", "")
        kept = {"project": chosen} if chosen else {}
        saved = just_labelled(request.query_params)
        kept |= {LABELLED: saved} if saved else {}
        if not rest:
            return RedirectResponse(f"/queue{'?' + urlencode(kept) if kept else ''}", 303)
        sees_all = visitor_of(request).project is None
        if sees_all and rest[0]["Project"]:
            kept["project"] = rest[0]["Project"]
        query = urlencode({**kept, "queue": "1"})
        return RedirectResponse(f"/runs/{rest[0]['TraceId']}?{query}#label", 303)

    async def export(self, request: Request) -> Response:
        """Answer with the selected runs as a file: those named by ``run``, else those that match the filters."""
        filters = Filters.of(request.query_params)
        chosen = request.query_params.getlist("run")[:MOST_EXPORTED]
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(404, f"Runs are exported as {' or '.join(KINDS)}, not as {kind}.")
        for each in filters.unread:
            # A file has no place for the words by which a page says it.
            raise HTTPException(400, f"{each.value[:60]!r} is no {each.filter} that can be read.")
        listed = await asyncio.to_thread(self._list.selected, filters, chosen)
        body = csv_of(listed) if kind == "csv" else jsonl_of(listed)
        name = {"content-disposition": f'attachment; filename="runs.{kind}"'}
        return StreamingResponse(in_blocks(body), media_type=KINDS[kind], headers=name)

    async def tree(self, request: Request) -> Response:
        """Answer with the spans of a run as a tree."""
        values = await asyncio.to_thread(self._tree, request.path_params["run"])
        return self._html(request, "tree.html", **values)

    async def span(self, request: Request) -> Response:
        """Redirect to the step that a span holds, else to the span in the tree."""
        trace_id, span_id = request.path_params["run"], request.path_params["span"]
        opened = await asyncio.to_thread(self._open, trace_id)
        steps = await asyncio.to_thread(lambda: opened.stored.outline.span_ids)
        asked = f"?{request.url.query}" if request.url.query else ""
        run = f"/runs/{opened.stored.trace_id}"
        if span_id in steps:
            return RedirectResponse(f"{run}{asked}#step-{list(steps).index(span_id)}", 303)
        if await asyncio.to_thread(lambda: list(opened.stored.spans.of([span_id]))):
            return RedirectResponse(f"{run}/tree{asked}#span-{quote(span_id, safe='')}", 303)
        raise HTTPException(404, f"The run has no span {span_id}.")

    def _tree(self, trace_id: str) -> dict[str, Any]:
        opened = self._open(trace_id)
        return {"row": opened.row, "found": tree_of(self._store, opened.stored)}

    def _seen(self, trace_id: str, asked: str) -> dict[str, Any]:
        opened = self._open(trace_id)
        number = whole(asked)
        if number is None or number >= opened.stored.count:
            raise HTTPException(404, f"The run has no step {asked}.")
        run = opened.stored.read()
        seen = seen_at(run, number)
        if seen is None:
            return {"view": None, "reason": why_unknown(run, number)}
        return {"view": seen_view(seen), "reason": ""}


PARTS: Final = ("agent", "tool", "model", "version")
"""Parts by which the cost is shown."""
_ROWS: Final = 20
_BUCKETS: Final = {"1h": timedelta(minutes=5), "24h": timedelta(hours=1)}
"""The stretches of the cost over time, by the chosen age; days for the others."""


DAYS: Final = 7
"""Days of the tiles above the list of runs; the last one is today."""
_TILES: Final = (
    ("failure", "Failed", "outcome=failure"),
    ("suspect", "Suspect", "outcome=suspect"),
    ("mode", "Most frequent mode", "mode"),
    ("agent", "Decided most", "decided_by"),
)
"""Failures, and kinds of the query `found_by_day`, with titles, and the filter that lists their runs."""


@dataclass(frozen=True)
class Tile:
    """One measure of the last days above the list of runs.

    Attributes:
        title: its name.
        words: its value today; of a failure mode and an agent, its own name.
        more: its value in all days, in words.
        address: the query string of the list of its runs.
        bars: its value of each day, the latest last.
    """

    title: str
    words: str
    more: str
    address: str
    bars: Sequence[float]


def week_of(store: Store, filters: Filters) -> dict[str, Sequence[Tile]]:
    """Return the tiles of failed and suspect runs, of the mode and the agent that fail most, and of the cost, of the last `DAYS`.

    There are none where no run of these days failed or was judged, and no call priced.

    Args:
        store: the database, of the visitor's project.
        filters: of the list; its service and its project narrow the tiles.

    Raises:
        StorageError: the database does not answer.
    """
    today = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=DAYS - 1)
    # A sender's clock may be ahead: its runs of tomorrow have no bar.
    until = today + timedelta(days=1)
    given = {"since": first, "until": until, "services": filters.narrowing["services"]}
    found: dict[str, dict[str, list[int]]] = {kind: {} for kind, _, _ in _TILES}
    # Failures that nobody judged yet count like the others, as they do in the list.
    ended, explained, spent = side_by_side(
        partial(QUERIES["outcomes_over_time"].run, store, **given, bucket=86_400),
        partial(QUERIES["found_by_day"].run, store, **given),
        partial(costs_of, store, ["time"], **given, bucket=86_400),
    )
    for row in ended:
        if row["Failures"]:
            bars = found["failure"].setdefault("", [0] * DAYS)
            bars[(row["Time"].date() - first.date()).days] = row["Failures"]
    for row in explained:
        bars = found[row["Kind"]].setdefault(row["Value"], [0] * DAYS)
        bars[(row["Day"] - first.date()).days] = row["Runs"]
    (total,), days = spent["total"], spent["time"]
    if not (any(found.values()) or days):
        return {"tiles": []}
    of_days = Filters(project=filters.project, service=filters.service, since=first.isoformat())
    tiles = []
    for kind, title, chosen in _TILES:
        most = max(found[kind].items(), key=lambda each: sum(each[1]), default=("", [0] * DAYS))
        value, bars = most
        if chosen.startswith("outcome"):
            words, address = f"{bars[-1]:,} today", of_days.with_value(*chosen.split("="))
        else:
            words, address = mode_words(value), of_days.with_value(chosen, value)
        tiles.append(Tile(title, words or "-", f"{sum(bars):,} in {DAYS} days", address, bars))
    priced = [0.0] * DAYS
    for row in days:
        priced[(row["Time"].date() - first.date()).days] = row["Cost"] or 0.0
    words, _, unpriced = cost_words(total["Cost"], total["UnpricedCalls"]).partition(" and ")
    more = f"and {unpriced} in {DAYS} days" if unpriced else f"in {DAYS} days"
    tiles.append(Tile("Cost", words, more, of_days.with_value("sort", COST), priced))
    return {"tiles": tiles}


_STORED: Final = """
SELECT (SELECT (count(), max(Seen)) FROM mast_run_facts) AS Facts,
    (SELECT (count(), max(JudgedAt)) FROM mast_verdicts) AS Verdicts,
    (SELECT (count(), max(PricedAt)) FROM mast_prices) AS Prices,
    (SELECT (uniqExact(RunKey), max(LastSeen)) FROM mast_run_states) AS States"""
"""Runs are counted by their keys, for states merge: fewer of them were erased, with or without facts."""


class TotalsPages(StoredPages):
    """The handlers of these pages.

    Args:
        store: the database; one project's, if only that may be seen.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        super().__init__(store, templates)
        self._counts: StoredCounts[dict[str, Any]] = StoredCounts(store, _STORED)

    async def week(self, request: Request) -> Response:
        """Answer with the last days in a few tiles, as a part of the list of runs."""
        return await self._counted(request, "_week.html", week_of)

    async def agents(self, request: Request) -> Response:
        """Answer with the agents: asserted errors among all that each did, and its cost."""
        return await self._counted(request, "agents.html", agents_of)

    async def cost(self, request: Request) -> Response:
        """Answer with the cost over time, by its parts, and after the decisive step."""
        return await self._counted(request, "cost.html", cost_of_runs)

    async def _counted(
        self, request: Request, name: str, count: Callable[[Store, Filters], dict[str, Any]]
    ) -> Response:
        """Answer with a count of the runs that the filters of the address name."""
        filters = Filters.of(request.query_params)
        counted = await asyncio.to_thread(
            self._counts.of, (name, filters), partial(count, self._store, filters)
        )
        return self._html(request, name, **counted.made, filters=filters, counted=counted)


def agents_of(store: Store, filters: Filters) -> dict[str, Any]:
    """Return the variables of the page of agents.

    Raises:
        StorageError: the database does not answer.
    """
    given = filters.narrowing
    rows, costs = side_by_side(
        partial(QUERIES["decisive_by_agent"].run, store, **given),
        partial(costs_of, store, ["agent"], **given),
    )
    spent = {row["Key"]: cost_words(row["Cost"], row["UnpricedCalls"]) for row in costs["agent"]}
    for row in rows:
        row["Errs"] = rate_words(row["Errors"], row["Acts"])
        row["Cost"] = spent.get(row["Agent"], "-")
    return {"rows": rows, "sections": sections_of("agents", store)}


def cost_of_runs(store: Store, filters: Filters) -> dict[str, Any]:
    """Return the variables of the page of costs.

    Raises:
        StorageError: the database does not answer.
    """
    bucket = _BUCKETS.get(filters.since, timedelta(days=1)).total_seconds()
    found = costs_of(store, ["time", *PARTS], limit=_ROWS, bucket=int(bucket), **filters.narrowing)
    (total,), stretches = found.pop("total"), found.pop("time")
    return {
        "total": total,
        "stretches": stretches,
        "most": max((row["Cost"] or 0.0 for row in stretches), default=0.0),
        "parts": found,
    }
