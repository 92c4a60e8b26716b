"""Sections of pages that plugins add."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jinja2 import pass_context
from markupsafe import Markup

from mast_trace_collector.plugins import answers
from mast_trace_dashboards.plugins import Plugin, Section

if TYPE_CHECKING:
    from jinja2.runtime import Context

    from mast_trace_collector.storage import Store

logger = logging.getLogger(__name__)


def sections_of(page: str, store: Store) -> list[Section]:
    """Return the sections of a page, in the order of the plugins.

    Args:
        page: ``agents``, ``judge`` or ``queue``.
        store: the database; one project's, if only that may be seen.
    """
    asked = answers(Plugin, lambda each: tuple(each.sections(page, store)))
    return [section for _, sections in asked for section in sections]


@pass_context
def html_of(context: Context, section: Section) -> Markup:
    """Return a section as HTML; nothing if it fails, so that the rest of its page is shown."""
    try:
        template = context.environment.get_template(section.template)
        return Markup(template.render({**context.get_all(), "values": section.values}))  # noqa: S704  # escaped by the template
    except Exception as error:
        logger.warning("the section %s is left out: %r", section.template, error)
        logger.debug("the section %s", section.template, exc_info=error)
        return Markup()
