"""Sections of pages that plugins add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.plugins import answers
from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.plugins import Section


def sections_of(page: str, store: Store) -> list[Section]:
    """Return the sections of a page, in the order of the plugins.

    Args:
        page: ``judge`` or ``queue``.
        store: the database; one project's, if only that may be seen.
    """
    asked = answers(Plugin, lambda each: tuple(each.sections(page, store)))
    return [section for _, sections in asked for section in sections]
