"""Generators of the reference, and the place in a page that names one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from site_extension.commands import commands
from site_extension.repository import PAGES, ROOT, moved_links
from site_extension.settings import settings
from site_extension.tables import tables
from site_extension.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sphinx.application import Sphinx

_PLACE = re.compile(r"^<!-- generated: (\S+) -->$", re.MULTILINE)

GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings,
    "tables": tables,
    "versions": versions,
}
"""Name -> the function that returns a page's Markdown."""


def fill(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put what is generated into a page.

    Raises:
        ValueError: the page names neither a generator nor a document of the repository.
    """
    source[0] = _PLACE.sub(lambda place: _text(place[1], PAGES / f"{page}.md"), source[0])


def _text(name: str, page: Path) -> str:
    if name in GENERATORS:
        return GENERATORS[name]()
    document = ROOT / name
    if document.suffix != ".md" or not document.exists():
        raise ValueError(f"{page}: nothing generates {name!r}")
    return moved_links(document.read_text("utf-8"), document.parent, page.parent)
