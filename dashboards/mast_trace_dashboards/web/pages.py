"""The pages."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import Trajectory
from mast_trace_collector.storage.runs import spans_of
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.forms import read_form
from mast_trace_dashboards.web.graph import drawn
from mast_trace_dashboards.web.otlp import as_otlp_json
from mast_trace_dashboards.web.steps import PAGE, Page, blocks, page_of, parting
from mast_trace_dashboards.web.visitor import visitor_of
from mast_trace_judge.labels import HumanLabel, labels_of, save_labels
from mast_trace_judge.verdict_store import load_latest

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

PER_PAGE = 50


@dataclass(frozen=True)
class Opened:
    """A run as the pages show it.

    Attributes:
        row: of the query `run`.
        spans: as they are stored.
        run: what they say.
        verdict: the newest one; None if there is none.
        page: its steps.
    """

    row: dict[str, Any]
    spans: list[SpanRecord]
    run: Trajectory
    verdict: Verdict | None
    page: Page


class Pages:
    """The handlers; each reads the database in a thread, for its queries take their time."""

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        self._store = store
        self._templates = templates

    async def runs(self, request: Request) -> Response:
        """Answer with the list of runs, or only its table when it is asked for again."""
        filters = Filters.of(request.query_params)
        rows = await asyncio.to_thread(self._runs, filters)
        more = filters.after(rows[PER_PAGE - 1]) if len(rows) > PER_PAGE else None
        shown = {"runs": rows[:PER_PAGE], "more": more, "filters": filters, "modes": FAILURE_MODES}
        if "part" in request.query_params:
            return self._html(request, "_runs.html", **shown)
        offered: dict[str, list[str]] = {}
        for row in await asyncio.to_thread(QUERIES["filter_values"].run, self._store):
            offered.setdefault(row["Filter"], []).append(row["Value"])
        return self._html(request, "runs.html", **shown, offered=offered)

    async def run(self, request: Request) -> Response:
        """Answer with one run, or only what may change of it when it is asked for again."""
        opened = await asyncio.to_thread(self._open, request.path_params["run"])
        page = opened.page
        labels = await asyncio.to_thread(labels_of, self._store, opened.run.trace_id)
        return self._html(
            request,
            "_run.html" if "part" in request.query_params else "run.html",
            row=opened.row,
            run=opened.run,
            verdict=opened.verdict,
            page=page,
            graph=drawn(page.edges, page.handed, page.colours),
            blocks=list(blocks(page.rows[:PAGE])),
            run_id=opened.run.trace_id,
            next=PAGE,
            end=len(page.rows),
            labels=[each for each in labels if each.project == opened.row["Project"]],
            modes=FAILURE_MODES,
        )

    async def steps(self, request: Request) -> Response:
        """Answer with further steps of a long run: at most a page from one number, up to another."""
        begin = _number(request.query_params.get("from", "0"))
        opened = await asyncio.to_thread(self._open, request.path_params["run"])
        rows = opened.page.rows
        end = min(_number(request.query_params.get("to", str(len(rows)))), len(rows))
        return self._html(
            request,
            "_steps.html",
            blocks=list(blocks(rows[begin : min(begin + PAGE, end)])),
            next=begin + PAGE,
            end=end,
            run_id=opened.run.trace_id,
        )

    async def step(self, request: Request) -> Response:
        """Answer with the whole text of one step and its raw span."""
        opened = await asyncio.to_thread(self._open, request.path_params["run"])
        number = int(request.path_params["step"])
        if number >= len(opened.page.rows):
            raise HTTPException(404, f"The run has no step {number}.")
        row = opened.page.rows[number]
        raw = next((span for span in opened.spans if span.span_id == row.step.span_id), None)
        attributes = json.dumps(dict(raw.attributes), indent=2, ensure_ascii=False) if raw else ""
        return self._html(request, "_step.html", row=row, raw=raw, attributes=attributes)

    async def download(self, request: Request) -> Response:
        """Answer with a run as JSON: the trajectory and its verdict, or the spans as OTLP."""
        trace_id = request.path_params["run"]
        opened = await asyncio.to_thread(self._open, trace_id)
        kind = request.path_params["kind"]
        if kind == "otlp":
            body = as_otlp_json(opened.spans)
        else:
            body = {
                "trajectory": opened.run.to_dict(),
                "verdict": opened.verdict.to_json() if opened.verdict else None,
            }
        name = f"{trace_id}.{'otlp.json' if kind == 'otlp' else 'json'}"
        return JSONResponse(body, headers={"content-disposition": f'attachment; filename="{name}"'})

    async def label(self, request: Request) -> Response:
        """Store a person's label of a run."""
        trace_id = request.path_params["run"]
        opened = await asyncio.to_thread(self._open, trace_id)
        form = await read_form(request)
        stated = form["decisive_step"][0].strip()
        steps = opened.run.steps
        if stated and (not stated.isdigit() or int(stated) >= len(steps)):
            raise HTTPException(400, f"The run has steps 0 to {len(steps) - 1}, not {stated}.")
        number = int(stated) if stated else None
        try:
            label = HumanLabel(
                trace_id=trace_id,
                project=opened.row["Project"],
                annotator=visitor_of(request).user or form["annotator"][0],
                outcome=form["outcome"][0],
                modes=tuple(code for code in form["modes"] if code),
                decisive_step=number,
                decisive_agent=steps[number].agent if number is not None else "",
                note=form["note"][0],
            )
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        await asyncio.to_thread(save_labels, self._store, [label])
        asked = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/runs/{trace_id}{asked}#labels", 303)

    async def compare(self, request: Request) -> Response:
        """Answer with two runs side by side."""
        chosen = request.query_params.getlist("run")
        if len(chosen) != 2:
            raise HTTPException(400, "Choose exactly two runs in the list to compare them.")
        sides = [await asyncio.to_thread(self._open, trace_id) for trace_id in chosen]
        return self._html(
            request,
            "compare.html",
            sides=[(side, side.page.rows[:PAGE]) for side in sides],
            parting=parting(*(side.page.rows for side in sides)),
            modes=FAILURE_MODES,
        )

    async def judge(self, request: Request) -> Response:
        """Answer with the judge's health."""
        lag = await asyncio.to_thread(QUERIES["judge_lag"].one, self._store)
        calls = await asyncio.to_thread(QUERIES["judge_calls"].run, self._store)
        counts = await asyncio.to_thread(QUERIES["mode_counts"].run, self._store)
        return self._html(
            request, "judge.html", lag=lag, calls=calls, counts=counts, modes=FAILURE_MODES
        )

    def _runs(self, filters: Filters) -> list[dict[str, Any]]:
        given = filters.parameters()
        if filters.text:
            found = QUERIES["search"].run(self._store, text=filters.text)
            if not found:
                return []
            given["only"] = [row["TraceId"] for row in found]
        return QUERIES["runs"].run(self._store, **given, limit=PER_PAGE + 1)

    def _open(self, trace_id: str) -> Opened:
        # Two projects may have sent spans under one id: what is shown is of one of them.
        rows = QUERIES["run"].run(self._store, run=trace_id)
        row = min(rows, key=lambda each: str(each["Project"]), default=None)
        project = row["Project"] if row else None
        spans = spans_of(self._store, trace_id, project=project) if row else []
        if row is None or not spans:
            raise HTTPException(404, f"There is no run {trace_id or '(none named)'}.")
        run = Trajectory.from_spans(spans)
        verdict = load_latest(self._store, trace_id, project=project)
        return Opened(row, spans, run, verdict, page_of(run, verdict))

    def _html(self, request: Request, name: str, **values: Any) -> Response:
        return self._templates.TemplateResponse(request, name, values)


def _number(text: str) -> int:
    if not text.isdigit():
        raise HTTPException(400, f"{text!r} is no number of a step.")
    return int(text)
