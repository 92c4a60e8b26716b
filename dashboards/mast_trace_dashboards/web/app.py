"""Assembles the web view, with its pages of runbooks."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from jinja2 import (
    ChoiceLoader,
    Environment,
    PackageLoader,
    StrictUndefined,
    pass_context,
    select_autoescape,
)
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from mast_trace.exceptions import RunErased, StorageError
from mast_trace.taxonomy import mode_words
from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_collector.plugins import answers
from mast_trace_collector.security import Right
from mast_trace_dashboards.certainty import BASES, LOOK_HEADING, no_place, not_measured, share_of
from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.document import CommandLine
from mast_trace_dashboards.found_pattern import command_line
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.queries.runs import run_key
from mast_trace_dashboards.run_documents import modes_and_judge, replays_said, where_to_look
from mast_trace_dashboards.run_names import SharedId
from mast_trace_dashboards.run_outcome import in_words, outcome_words, tokens_of
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.conversation.graph import label_of
from mast_trace_dashboards.web.filters import AGES
from mast_trace_dashboards.web.finding.queue_view import QUEUE
from mast_trace_dashboards.web.guard import Guard, Health
from mast_trace_dashboards.web.pages import Pages
from mast_trace_dashboards.web.sign_in import LEAVE as SIGN_OUT
from mast_trace_dashboards.web.sign_in import PATH as SIGN_IN
from mast_trace_dashboards.web.sign_in import SignIn
from mast_trace_dashboards.web.text_changes import changes, named, visible
from mast_trace_dashboards.web.views import Views, Web, chosen_project
from mast_trace_dashboards.web.visitor import visitor_of, visitor_or_none

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jinja2.runtime import Context
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from mast_trace_collector.settings import ProcessSettings
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.plugins import Section

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TITLE = re.compile(r"#\s+(.+)")
# Markup in a text is escaped, and a page loads no pictures from elsewhere.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

logger = logging.getLogger(__name__)
_RUN = "/runs/{run:str}"
_TIMED: Final = ("/", "/patterns", "/agents", "/cost")
"""Pages that a time narrows, besides those of groups."""
_OF_PAGE: Final = ("since", "until", "before", "before_run", "page", "part")
"""Parameters that another time leaves out."""
_LONGEST_LINK: Final = 4000
"""Characters of a value that an address holds; servers refuse much longer ones."""
_LABEL = 32
"""Columns of an agent's name in a list of choices."""
# A number and its unit stay on one line.
_SPACE = "\N{NO-BREAK SPACE}"
_COMMAND = re.compile(r"`([^`]+)`")
_PERCENT = re.compile(r"(?<=\d) ?%(?!\w)")
_WEEK: Final = 7 * 86_400


class Runbooks:
    """Serves the Markdown files of the package's folder ``runbooks``.

    Args:
        templates: of the pages.
        folder: of the files; the package's own if None.
    """

    def __init__(self, templates: Jinja2Templates, folder: Traversable | None = None) -> None:
        self._templates = templates
        self._folder = folder or resources.files("mast_trace_dashboards.alerts.runbooks")
        self.routes = [
            Route("/runbooks", self.index),
            Route("/runbooks/", self.index),
            Route("/runbooks/{name:str}", self.show),
        ]

    async def index(self, request: Request) -> Response:
        """Answer with the list of runbooks."""
        visitor_of(request).demand(Right.READ)
        found = {name: title_of(text) or name for name, text in self.texts().items()}
        return self._templates.TemplateResponse(request, "runbooks.html", {"runbooks": found})

    async def show(self, request: Request) -> Response:
        """Answer with one runbook."""
        visitor_of(request).demand(Right.READ)
        name = request.path_params["name"]
        text = self.texts().get(name)
        if text is None:
            raise HTTPException(404, f"There is no runbook {name}.")
        values = {"title": title_of(text) or name, "body": rendered(text)}
        return self._templates.TemplateResponse(request, "runbook.html", values)

    def texts(self) -> dict[str, str]:
        """Return the texts by their names, in alphabetical order."""
        if not self._folder.is_dir():
            return {}
        files = {each.name.removesuffix(".md"): each for each in self._folder.iterdir()}
        return {
            name: files[name].read_text(encoding="utf-8")
            for name in sorted(files)
            if _NAME.fullmatch(name) and files[name].name == f"{name}.md"
        }


def rendered(text: str) -> Markup:
    """Return Markdown as HTML; everything that is no Markdown is escaped."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704  # made by the renderer, which escapes


def title_of(text: str) -> str:
    """Return the first heading; empty if there is none."""
    found = next((match for line in text.splitlines() if (match := _TITLE.fullmatch(line))), None)
    return found[1].strip() if found else ""


def whole_run(trace_id: str, project: str) -> list[CommandLine]:
    """Return the commands that replay a run from its beginning."""
    verify = "Runs the program again from the record, and shows the first difference"
    confirm = "Proves by replays which step decided the failure"
    return [
        CommandLine(verify, command_line("replay", trace_id, project)),
        CommandLine(confirm, command_line("prove", trace_id, project)),
    ]


def from_step(trace_id: str, project: str, step: int) -> list[CommandLine]:
    """Return the commands that keep the run up to a step, and run the rest live."""
    effects = {
        "Keeps this answer, and runs the rest live": f"--change keep:{step}",
        "Replaces this answer by the text of a file": f"--change fix:{step}=@answer.txt",
        "Asks the model again here": f"--change resample:{step}",
    }
    return [
        CommandLine(effect, command_line("replay", trace_id, project, change))
        for effect, change in effects.items()
    ]


_STATIC = Path(__file__).parent / "static"


def web_app(
    store: Store,
    access: Access | None = None,
    *,
    idle: float = DEFAULT_RUN_IDLE,
    mounted: Mapping[str, ASGIApp] | None = None,
    settings: Sequence[ProcessSettings] = (),
) -> ASGIApp:
    """Return the web view on a store.

    Args:
        store: the database, of all projects.
        access: access control; None admits everybody who reaches it under a name of this machine.
        idle: seconds after which a run without a root counts as finished.
        mounted: further applications by path, for the same visitors.
        settings: of this process, for the page that shows them.
    """
    access = access or Access()
    templates = Jinja2Templates(
        env=_environment(),
        context_processors=[_of_visitor],
    )
    web = Web(store, templates, idle)
    sign_in = SignIn(access, templates)

    async def failed(request: Request, error: Exception) -> Response:
        return _failed(request, error, templates)

    async def effective(request: Request) -> Response:
        visitor = visitor_of(request)
        visitor.demand(Right.READ)
        if visitor.project is not None or visitor.user:
            raise HTTPException(403, "The settings are shown to the operator alone.")
        tables = {each.table: each.effective() for each in settings}
        return templates.TemplateResponse(request, "settings.html", {"tables": tables})

    app = Starlette(
        routes=[
            *_pages(web.views(lambda its, of: Pages(its, of, idle=idle))),
            *Runbooks(templates).routes,
            Route("/settings", effective),
            *Health(store).routes,
            Route(SIGN_IN, sign_in.form),
            Route(SIGN_IN, sign_in.enter, methods=["POST"]),
            Route(SIGN_OUT, sign_in.leave, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
            *(
                route
                for _, routes in answers(Plugin, lambda each: tuple(each.pages(web)))
                for route in routes
            ),
            # The path itself, too: a redirect to the one with a slash would name http behind a proxy for TLS.
            *(Route(path, other) for path, other in (mounted or {}).items()),
            *(Mount(path, other) for path, other in (mounted or {}).items()),
        ],
        exception_handlers={
            HTTPException: failed,
            RunErased: failed,
            SharedId: failed,
            StorageError: failed,
        },
    )
    return Guard(app, access, sign_in)


def _of_visitor(request: Request) -> dict[str, Any]:
    """Return the variables of every page: its visitor, and the parameters that its links keep.

    ``of_bar`` has the project and the time, which the places of the bar share; ``of_project`` names the project that an operator selected; ``of_view`` says in addition that the page was
    opened from the queue, which links to pages of the same run have to keep, so that these are blind too.
    """
    visitor, chosen = visitor_or_none(request), chosen_project(request)
    sees_all = visitor is not None and visitor.project is None
    kept = {"project": chosen} if sees_all and chosen is not None else {}
    queued = {QUEUE: "1"} if QUEUE in request.query_params else {}
    asked = request.query_params
    timed = {name: asked[name] for name in ("since", "until") if asked.get(name)}
    return {
        "visitor": visitor,
        "of_project": _query(kept),
        "of_view": _query({**kept, **queued}),
        "of_bar": _query({**kept, **timed}),
        "times": _times(request),
        "all_projects": f"{request.url.path}{_query({name: asked[name] for name in asked if name != 'project'})}"
        if kept
        else "",
    }


def _times(request: Request) -> list[tuple[str, str, bool]]:
    """Return the times that the bar offers: words, address, and whether it is chosen; none where it narrows nothing."""
    path, asked = request.url.path, request.query_params
    if path not in _TIMED and not path.startswith("/groups/"):
        return []
    kept = {name: value for name, value in asked.items() if name not in _OF_PAGE}
    chosen = asked.get("since", "")
    return [
        (words, f"{path}{_query({**kept, 'since': age})}", age == chosen)
        for age, words in {"": "any time", **AGES}.items()
    ]


def _query(kept: Mapping[str, str]) -> str:
    given = {name: value for name, value in kept.items() if value or name == "project"}
    return f"?{urlencode(given)}" if given else ""


def _pages(views: Views[Pages]) -> list[Route]:
    return [
        Route("/", views.page(lambda its: its.runs)),
        Route("/week", views.page(lambda its: its.totals.week)),
        Route("/judge", views.page(lambda its: its.judge)),
        Route("/patterns", views.page(lambda its: its.patterns)),
        Route("/patterns/{pattern:str}", views.page(lambda its: its.pattern)),
        Route(
            "/patterns/{pattern:str}/state",
            views.page(lambda its: its.pattern_state, Right.LABEL),
            methods=["POST"],
        ),
        Route("/compare", views.page(lambda its: its.compare)),
        Route("/agents", views.page(lambda its: its.totals.agents)),
        Route("/cost", views.page(lambda its: its.totals.cost)),
        Route("/groups/{by:str}", views.page(lambda its: its.finding.groups)),
        Route("/queue", views.page(lambda its: its.finding.queue)),
        Route("/queue/next", views.page(lambda its: its.finding.next_queued, Right.LABEL)),
        Route("/export.{kind:str}", views.page(lambda its: its.finding.export)),
        Route("/search", views.page(lambda its: its.finding.search)),
        Route(_RUN, views.page(lambda its: its.run)),
        Route(f"{_RUN}/tree", views.page(lambda its: its.finding.tree)),
        Route(f"{_RUN}/spans/{{span:str}}", views.page(lambda its: its.finding.span)),
        Route(f"{_RUN}/steps", views.page(lambda its: its.steps)),
        Route(f"{_RUN}/steps/{{step:str}}", views.page(lambda its: its.step)),
        Route(f"{_RUN}/steps/{{step:str}}/input", views.page(lambda its: its.finding.step_input)),
        Route(f"{_RUN}/label", views.page(lambda its: its.label, Right.LABEL), methods=["POST"]),
        Route(f"{_RUN}/compare", views.page(lambda its: its.compare_file), methods=["POST"]),
        Route(f"{_RUN}/download.{{kind:str}}", views.page(lambda its: its.download)),
    ]


def _failed(request: Request, error: Exception, templates: Jinja2Templates) -> Response:
    headers = None
    choices: Sequence[str] = ()
    if isinstance(error, HTTPException):
        status, text, headers = error.status_code, str(error.detail), error.headers
    elif isinstance(error, RunErased):
        status, text = 410, f"{error}."
    elif isinstance(error, SharedId):
        status, text = 300, "Several projects have a run of this id. Choose one:"
        choices = error.projects
    else:
        status, text = 503, f"The database does not answer: {error}"
        visitor = visitor_or_none(request)
        if visitor is None or visitor.project is not None:
            # Its text about tables, limits and address is for the operator only.
            logger.warning("a page failed: %s", error)
            text = "The database does not answer. The operator's log says why."
    asked = {
        name: request.url.include_query_params(project=name).query
        for name in choices
        if request.method == "GET"
    }
    values = {"status": status, "text": text, "asked": asked}
    return templates.TemplateResponse(
        request, "error.html", values, status_code=status, headers=headers
    )


def _shown_by(
    plugin: Plugin,
) -> tuple[list[PackageLoader], dict[str, Any], list[tuple[str, str]]]:
    """Return the templates, filters and links of a plugin, made here so that an error is its own."""
    folders = [PackageLoader(plugin.templates)] if plugin.templates else []
    return folders, dict(plugin.words()), [(title, path) for title, path in plugin.links()]


def _environment() -> Environment:
    added = [found for _, found in answers(Plugin, _shown_by)]
    made = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("mast_trace_dashboards.web"),
                *(folder for folders, _, _ in added for folder in folders),
            ]
        ),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        percent=_percent,
        moment=_moment,
        ago=_ago,
        seconds=partial(in_words, space=_SPACE),
        visible=visible,
    )
    made.filters.update(named=named, run_key=run_key, counted=counted)
    made.globals.update(longest_link=_LONGEST_LINK)
    made.filters.update(label=lambda name: label_of(name, _LABEL))
    made.filters.update(no_place=no_place, not_measured=not_measured, html=_html)
    made.filters.update(share_of=lambda rate: _spaced(share_of(rate)), outcome_words=outcome_words)
    made.globals.update(where_to_look=where_to_look, modes_and_judge=modes_and_judge)
    made.globals.update(replays_said=replays_said, changes=changes)
    made.filters.update(mode_words=mode_words)
    made.globals.update(bases=BASES, look_heading=LOOK_HEADING)
    made.globals.update(links=[link for _, _, links in added for link in links])
    for _, words, _ in added:
        made.filters.update(
            {name: each for name, each in words.items() if name not in made.filters}
        )
    made.filters.update(said=_said, tokens=tokens_of, spaced=_spaced, cost_words=cost_words)
    made.globals.update(replay_from=from_step, replay_whole=whole_run)
    return made


def _spaced(text: str) -> str:
    """Write percentages as `_percent` does."""
    return _PERCENT.sub(f"{_SPACE}%", text)


def _said(text: str) -> Markup:
    """Return a sentence with its commands, which stand between backticks, as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(visible(_spaced(text))))))  # noqa: S704  # escaped


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}{_SPACE}%"


def _moment(value: datetime | None) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S") if value else "-"


def _ago(value: datetime) -> str:
    """Return the age of a time in one unit, or its date where it is older than a week, or not past."""
    seconds = (datetime.now(timezone.utc) - value.astimezone(timezone.utc)).total_seconds()
    if not 0 <= seconds < _WEEK:
        return value.strftime("%Y-%m-%d")
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f}{_SPACE}{unit} ago"
    return "just now"


@pass_context
def _html(context: Context, section: Section) -> Markup:
    """Return a section of a plugin as HTML; nothing if it fails, so that the rest of its page is shown."""
    try:
        template = context.environment.get_template(section.template)
        return Markup(template.render({**context.get_all(), "values": section.values}))  # noqa: S704  # escaped by the template
    except Exception as error:
        logger.warning("the section %s is left out: %r", section.template, error)
        logger.debug("the section %s", section.template, exc_info=error)
        return Markup()
