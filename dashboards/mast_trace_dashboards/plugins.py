"""The methods of a plugin that commands, pages, dashboards and the MCP server ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mast_trace_collector.plugins import answers
from mast_trace_judge import plugins

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from starlette.routing import Route
    from typer import Typer

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.grafana.panels import Panel
    from mast_trace_dashboards.queries.query import Query
    from mast_trace_dashboards.web.views import Web

    StoreOf = Callable[[Context[Any, Any]], Store]
    """Returns the store that the sender of a request may see."""


logger = logging.getLogger(__name__)


class Section(NamedTuple):
    """A part of a page of the core.

    Attributes:
        template: name of a template of the plugin.
        values: its variable of this name, beside those of the page.
    """

    template: str
    values: Mapping[str, Any]


class CommandReport(NamedTuple):
    """A part of a command's output.

    Attributes:
        json: under the plugin's name in the output as JSON.
        lines: sentences and commands of the output for people.
    """

    json: Any
    lines: Sequence[str]


class LastAct(NamedTuple):
    """A further act of `mast-trace demo`.

    Attributes:
        title: of its progress bar.
        done: the sentence at its end, with ``{}`` for the run.
        total: the number of its steps, as far as it is known.
        play: plays it on a finished act, and tells the number of steps that are done. It is given the store,
            the row of the act's run, the program under `examples`, its argument, and whom to tell.
    """

    title: str
    done: str
    total: int
    play: Callable[[Store, Mapping[str, Any], str, str, Callable[[int], None]], object]


class Plugin(plugins.Plugin):
    """A feature that people see.

    Attributes:
        templates: package with a folder ``templates`` for its pages and sections; empty if it has none.
    """

    templates: ClassVar[str] = ""

    def commands(self) -> Mapping[str, Callable[[Typer], None]]:
        """Return by the name of each command, such as ``judge fit``, the function that registers it."""
        return {}

    def pages(self, web: Web) -> Sequence[Route]:  # noqa: ARG002
        """Return further routes of the web view; those of the core cannot be replaced."""
        return ()

    def links(self) -> Sequence[tuple[str, str]]:
        """Return the title and the path of pages that every page links to."""
        return ()

    def sections(self, page: str, store: Store) -> Sequence[Section]:  # noqa: ARG002
        """Return further parts of a page: ``agents``, ``judge`` or ``queue``."""
        return ()

    def words(self) -> Mapping[str, Callable[..., Any]]:
        """Return further filters of its templates."""
        return {}

    def queries(self) -> Iterable[Query]:
        """Return further named queries."""
        return ()

    def panels(self) -> Mapping[str, Sequence[Sequence[Panel]]]:
        """Return further rows of the Grafana dashboards, by the uid of the dashboard."""
        return {}

    def tools(self, store_of: StoreOf) -> Sequence[Callable[..., Any]]:  # noqa: ARG002
        """Return further tools of the MCP server, which only read; their docstrings are for the model."""
        return ()

    def reports(self, command: str, store: Store, config: Path | None) -> Sequence[CommandReport]:  # noqa: ARG002
        """Return further parts of the output of a command: ``judge agree``."""
        return ()

    def last_act(self) -> LastAct | None:
        """Return a further act of the demo, if it has one."""
        return None


def named_queries() -> dict[str, Query]:
    """Return the named queries of the core and of all plugins; a plugin's one that has a taken name is left out."""
    from mast_trace_dashboards.queries import (
        QUERIES,  # All of them: the command line waits for none.
    )

    found = dict(QUERIES)
    for plugin, queries in answers(Plugin, lambda each: tuple(each.queries())):
        for query in queries:
            if found.setdefault(query.name, query) is not query:
                logger.warning("the query %s of %s is left out", query.name, plugin.name)
    return found


def sections_of(page: str, store: Store) -> list[Section]:
    """Return the sections that plugins add to a page, in the order of the plugins.

    Args:
        page: ``agents``, ``judge`` or ``queue``.
        store: the database; one project's, if only that may be seen.
    """
    asked = answers(Plugin, lambda each: tuple(each.sections(page, store)))
    return [section for _, sections in asked for section in sections]
