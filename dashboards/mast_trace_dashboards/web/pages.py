"""The pages of the web view, and stored spans as OTLP for other collectors."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.runs import find_run as ids_beginning
from mast_trace_dashboards.found_run import find_run, last_changes, nearest_good
from mast_trace_dashboards.plugins import sections_of
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.run_names import newest_runs
from mast_trace_dashboards.web.comparisons import stored_and_file, two_stored
from mast_trace_dashboards.web.conversation.graph import BOX_WIDTH, WIDTH, drawn
from mast_trace_dashboards.web.conversation.table import Choice, table_of
from mast_trace_dashboards.web.filters import AGES, ORDERS, OUTCOMES, Filters, read_form, whole
from mast_trace_dashboards.web.finding.pages import FindingPages, TotalsPages
from mast_trace_dashboards.web.finding.queue_view import (
    LABELLED,
    QUEUE,
    blinded,
    is_blind,
    just_labelled,
    seal_of,
)
from mast_trace_dashboards.web.finding.run_list import RunList
from mast_trace_dashboards.web.loaded_run import LoadedRun, read_upload
from mast_trace_dashboards.web.pattern_pages import PatternPages
from mast_trace_dashboards.web.rows import CLIP, blocks
from mast_trace_dashboards.web.run_view import PAGE, Page
from mast_trace_dashboards.web.text_changes import MOST_SHOWN
from mast_trace_dashboards.web.views import in_blocks, streamed
from mast_trace_dashboards.web.visitor import visitor_of
from mast_trace_judge.store.labels import HumanLabel, labels_of, save_labels

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store

LONGEST_TEXT: Final = 1_000_000
"""Characters of a step's text that its page shows."""
_AT_ONCE = 100
"""Steps up to which a page is sent in one piece."""
_ID_LENGTH: Final = 32
"""Characters of a trace id; a shorter name may be the beginning of one, as lists show it."""
_STATUS = {"Ok": 1, "Error": 2}


def as_otlp_json(pages: Iterable[Sequence[SpanRecord]]) -> Iterator[str]:
    """Yield the text of a run's spans; attributes are texts, as the store keeps them.

    Args:
        pages: the spans, some at a time; those of one service and scope are grouped in each page.
    """
    yield '{"resourceSpans": ['
    begun = False
    for spans in pages:
        by_source: dict[tuple[str, str], list[SpanRecord]] = {}
        for span in spans:
            if span.is_open:  # the text is not sent yet
                continue
            by_source.setdefault((span.service, span.scope), []).append(span)
        for (service, scope), group in by_source.items():
            resource = {
                "resource": {"attributes": [_attribute("service.name", service)]},
                "scopeSpans": [{"scope": {"name": scope}, "spans": [_span(s) for s in group]}],
            }
            yield (", " if begun else "") + json.dumps(resource, ensure_ascii=False)
            begun = True
    yield "]}"


def _span(span: SpanRecord) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "status": {"code": _STATUS.get(span.status, 0), "message": span.status_message},
    }


def _attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": str(value)}}


class Pages(PatternPages):
    """The handlers of pages; each queries the database in a thread.

    Attributes:
        finding: the handlers of further pages.
        totals: the handlers of the pages of totals.
    """

    def __init__(self, store: Store, templates: Jinja2Templates, *, idle: float) -> None:
        super().__init__(store, templates)
        self._idle = idle
        self._list = RunList(store, idle=idle)
        self.finding = FindingPages(store, templates, self._open, self._list)
        self.totals = TotalsPages(store, templates)

    async def runs(self, request: Request) -> Response:
        """Answer with the list of runs, or with its table alone on a refresh."""
        filters = Filters.of(request.query_params)
        is_part = "part" in request.query_params
        ask_values = partial(QUERIES["filter_values"].run, self._store)
        listed, *values = await asyncio.to_thread(
            side_by_side, partial(self._list.page, filters), *(() if is_part else (ask_values,))
        )
        shown = {
            "runs": listed.rows,
            "costs": listed.costs,
            "more": listed.more,
            "note": listed.note,
            "filters": filters,
            "modes": FAILURE_MODES,
        }
        if is_part:
            return self._html(request, "_runs.html", **shown)
        offered: dict[str, list[str]] = {}
        for row in values[0]:
            offered.setdefault(row["Filter"], []).append(row["Value"])
        unknown = Filters.unknown_in(request.query_params)
        told = {"unknown": unknown, "strange": filters.strange(offered), "outcomes": OUTCOMES}
        told |= {"orders": ORDERS, "ages": AGES}
        return self._html(request, "runs.html", **shown, **told, offered=offered)

    async def run(self, request: Request) -> Response:
        """Answer with one run, or with its changeable part alone on a refresh.

        The name of a long run is sent before its calls are priced, and the verdict before its steps.
        """
        if request.path_params["run"] == "last":
            for row in await asyncio.to_thread(newest_runs, self._store, limit=1):
                of = urlencode({"project": row["Project"]}) if row["Project"] else ""
                return RedirectResponse(f"/runs/{row['TraceId']}?{of}".rstrip("?"), 303)
        if whole_id := await asyncio.to_thread(self._written_out, request.path_params["run"]):
            return RedirectResponse(f"/runs/{whole_id}?{request.url.query}".rstrip("?"), 303)
        try:
            choice = Choice.of(request.query_params.multi_items())
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        seen, judged = await asyncio.to_thread(
            last_changes, self._store, request.path_params["run"], idle=self._idle
        )
        if request.query_params.get("known") in (seen, seen + judged):
            return Response(status_code=204)
        opened, labels, blind = await asyncio.to_thread(self._seen_by, request)
        values = {
            "blind": blind,
            "version": seen if blind else seen + judged,
            "seal": seal_of(visitor_of(request), opened) if blind else "",
            "just_labelled": just_labelled(request.query_params),
            "opened": opened,
            "row": opened.row,
            "verdict": opened.verdict,
            "labels": [] if blind else labels,
            "modes": FAILURE_MODES,
            "first_steps": lambda opened: _some_steps(opened.page, 0, opened.page.count),
            "choice": choice,
            "graph_of": lambda page: drawn(
                page.outline.said, page.outline.handed, page.colours, choice, page.blamed
            ),
            "table_of": lambda page: table_of(page.outline.said, page.outline.handed, choice),
            "widths": (WIDTH, BOX_WIDTH),
        }
        name = "_run.html" if "part" in request.query_params else "run.html"
        if opened.stored.is_ready and len(opened.stored.outline) < _AT_ONCE:
            return await asyncio.to_thread(self._html, request, name, **values)
        return streamed(self._templates, request, name, values)

    async def steps(self, request: Request) -> Response:
        """Answer with further steps of a long run: one page at most, from one number up to another."""
        begin = _number(request.query_params.get("from", "0"))
        opened, _, _ = await asyncio.to_thread(self._seen_by, request)
        page = await asyncio.to_thread(lambda: opened.page)
        end = min(_number(request.query_params.get("to", str(page.count))), page.count)
        values = await asyncio.to_thread(_some_steps, page, begin, end)
        name = "_lanes.html" if "lanes" in request.query_params else "_steps.html"
        return self._html(
            request,
            name,
            page=page,
            known_rows=values["rows"],
            run_id=opened.stored.trace_id,
            run_project=opened.stored.project,
            **values,
        )

    async def step(self, request: Request) -> Response:
        """Answer with the whole text of one step and its raw span."""
        opened = await asyncio.to_thread(self._open, request.path_params["run"])
        page = await asyncio.to_thread(lambda: opened.page)
        asked = request.path_params["step"]
        number = whole(asked)
        if number is None or number >= page.count:
            raise HTTPException(404, f"The run has no step {asked}.")
        (step,) = await asyncio.to_thread(opened.stored.steps, [number])
        raw = await asyncio.to_thread(opened.stored.span_of, number)
        texts = {name: str(value) for name, value in raw.attributes.items()} if raw else {}
        # A span holds the text of its step, which stands above already.
        shown = {name: text[:MOST_SHOWN] for name, text in texts.items()}
        cut = shown != texts or any(
            len(text) > LONGEST_TEXT for text in (step.text, step.arguments, step.error or "")
        )
        return self._html(
            request,
            "_step.html",
            step=step,
            clip=CLIP,
            raw=raw,
            attributes=json.dumps(shown, indent=2, ensure_ascii=False),
            longest_text=LONGEST_TEXT,
            cut=cut,
        )

    async def download(self, request: Request) -> Response:
        """Answer with a run as JSON: the trajectory and its verdict, or the spans as OTLP."""
        trace_id = request.path_params["run"]
        opened, _, _ = await asyncio.to_thread(self._seen_by, request)
        kind = request.path_params["kind"]
        if kind == "otlp":
            body = as_otlp_json(opened.stored.spans.read())
        else:
            body = opened.stored.json(opened.verdict)
        # Other tools' ids may hold anything, and a header may not.
        plain = re.sub(r"[^0-9A-Za-z.-]", "_", trace_id)
        name = f"{plain}.{'otlp.json' if kind == 'otlp' else 'json'}"
        disposition = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(
            in_blocks(body), media_type="application/json", headers=disposition
        )

    async def label(self, request: Request) -> Response:
        """Store a person's label of a run."""
        trace_id = request.path_params["run"]
        opened = await asyncio.to_thread(self._open, trace_id)
        form = await read_form(request)
        page = await asyncio.to_thread(lambda: opened.page)
        steps = _steps_in(form["decisive_step"][0], page.count)
        try:
            label = HumanLabel(
                trace_id=trace_id,
                project=opened.row["Project"],
                annotator=visitor_of(request).user or form["annotator"][0],
                outcome=form["outcome"][0],
                modes=tuple(code for code in form["modes"] if code),
                decisive_step=steps[0] if steps else None,
                decisive_agent=page.outline.actor(steps[0]) if steps else "",
                decisive_steps=steps,
                note=form["note"][0],
                blind=await asyncio.to_thread(self._was_blind, request, form["seal"][0]),
            )
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        await asyncio.to_thread(save_labels, self._store, [label])
        query = {key: value for key, value in request.query_params.items() if key != QUEUE}
        if QUEUE in request.query_params:
            return RedirectResponse(f"/queue/next?{urlencode({**query, LABELLED: trace_id})}", 303)
        asked = f"?{urlencode(query)}" if query else ""
        return RedirectResponse(f"/runs/{trace_id}{asked}#labels", 303)

    async def compare(self, request: Request) -> Response:
        """Answer with two stored runs side by side; with one, beside the good run nearest to it."""
        chosen = request.query_params.getlist("run")
        if len(chosen) not in (1, 2):
            raise HTTPException(400, "Choose one or two runs in the list to compare them.")
        left = await asyncio.to_thread(self._open, chosen[0])
        project = None
        if len(chosen) == 2:
            other: str | None = chosen[1]
        else:
            other = await asyncio.to_thread(nearest_good, self._store, left)
            project = left.stored.project
        if other is None:
            said = "No run of the same name is known to have succeeded: choose two in the list."
            raise HTTPException(404, said)
        right = await asyncio.to_thread(self._open, other, project)
        values = await asyncio.to_thread(two_stored, left, right)
        return self._html(request, "compare.html", **values, modes=FAILURE_MODES, blind=False)

    async def compare_file(self, request: Request) -> Response:
        """Answer with a stored run beside the run of a file, which is not kept."""
        opened, _, blind = await asyncio.to_thread(self._seen_by, request)
        run = await read_upload(request)
        values = await asyncio.to_thread(stored_and_file, opened, run)
        return self._html(request, "compare.html", **values, modes=FAILURE_MODES, blind=blind)

    async def judge(self, request: Request) -> Response:
        """Answer with the judge's health."""
        lag, calls, sections = await asyncio.to_thread(
            side_by_side,
            partial(QUERIES["judge_lag"].one, self._store),
            partial(QUERIES["judge_calls"].run, self._store),
            partial(sections_of, "judge", self._store),
        )
        values: dict[str, Any] = {"lag": lag, "calls": calls, "sections": sections}
        # A section may measure for seconds, so the rest of the page is sent first.
        return streamed(self._templates, request, "judge.html", values)

    def _written_out(self, name: str) -> str:
        """Return the id that a shorter name, as lists show it, begins; empty for an id, and where no or several runs fit."""
        found = ids_beginning(self._store, name, limit=2) if len(name) < _ID_LENGTH else []
        return found[0] if len(found) == 1 and found[0] != name else ""

    def _seen_by(self, request: Request) -> tuple[LoadedRun, list[HumanLabel], bool]:
        """Look a run up with its labels, and without the judge's word where that is hidden from the visitor."""
        opened = self._open(request.path_params["run"])
        project = opened.row["Project"]
        found = labels_of(self._store, opened.stored.trace_id)
        labels = [label for label in found if label.project == project]
        blind = is_blind(request.query_params, visitor_of(request), labels)
        return blinded(opened) if blind else opened, labels, blind

    def _was_blind(self, request: Request, seal: str) -> bool:
        """Return whether a label comes from a blind page, and is its visitor's first one of the run."""
        opened, _, blind = self._seen_by(request)
        known = seal_of(visitor_of(request), opened)
        return blind and hmac.compare_digest(seal.encode("utf-8", "replace"), known.encode())

    def _open(self, trace_id: str, project: str | None = None) -> LoadedRun:
        found = find_run(self._store, trace_id, project, idle=self._idle)
        # A run that has just begun has a name; of a run without spans, an outcome may be left.
        if found is None or not (found.row["Spans"] or found.row["Name"]):
            raise HTTPException(404, f"There is no run {trace_id or '(none named)'}.")
        return LoadedRun(**vars(found))


def _some_steps(page: Page, begin: int, end: int) -> dict[str, Any]:
    """Return what the templates of steps and lanes show of one page of steps, at most up to an end."""
    next_page = min(begin + PAGE, end)
    rows = page.rows(begin, next_page)
    return {
        "blocks": list(blocks(rows)),
        "rows": {row.step.index: row for row in rows},
        "ticks": page.ticks(begin, next_page),
        "next": begin + PAGE,
        "end": end,
        "shown": len(rows),
    }


def _steps_in(text: str, count: int) -> tuple[int, ...]:
    """Return the numbers of steps that a person wrote, the clearest first.

    Raises:
        HTTPException: 400, one of them is no step of the run.
    """
    steps = []
    for stated in text.replace(",", " ").split():
        number = whole(stated)
        if number is None or number >= count:
            raise HTTPException(400, f"The run has steps 0 to {count - 1}, not {stated}.")
        steps.append(number)
    return tuple(dict.fromkeys(steps))


def _number(text: str) -> int:
    number = whole(text)
    if number is None:
        raise HTTPException(400, f"{text!r} is no number of a step.")
    return number
