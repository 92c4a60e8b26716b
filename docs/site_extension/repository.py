"""Links from pages to files of the repository, which the site shows as pages of its own.

The site needs no code host: a program, a report or a folder to which a page links is shown under
``source/``, as it is in the version that the site is of.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util import logging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs"
SCHEME = "repository:"
SHOWN = {
    "ARCHITECTURE.md": "develop/architecture.md",
    "CHANGELOG.md": "develop/changelog.md",
    "CONTRIBUTING.md": "develop/contributing.md",
    "SECURITY.md": "operate/security.md",
}
"""Documents at the top of the repository that are pages of the site."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_LANGUAGES = {".py": "python", ".md": "markdown", ".yaml": "yaml", ".toml": "toml", ".sql": "sql"}
_log = logging.getLogger(__name__)


def moved_links(text: str, old: Path, new: Path) -> str:
    """Return Markdown whose relative links, made for the folder ``old``, lead the same way from ``new``."""
    return _LINK.sub(lambda link: os.path.relpath(old / link[1], new) + (link[2] or ""), text)


def mark_links(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give links that leave the folder of pages a scheme of their own."""
    folder = (PAGES / page).parent

    def mark(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if not target.is_relative_to(ROOT) or target.is_relative_to(PAGES):
            return link[0]
        path = target.relative_to(ROOT).as_posix()
        if path in SHOWN:
            return os.path.relpath(PAGES / SHOWN[path], folder) + (link[2] or "")
        return SCHEME + path

    source[0] = _LINK.sub(mark, source[0])


def resolve_links(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Let the links lead to the pages that show the files."""
    shown: set[str] = app.env.__dict__.setdefault("repository_files", set())
    for link in tree.findall(nodes.reference):
        path = str(link.get("refuri", "")).removeprefix(SCHEME)
        if path == link.get("refuri", ""):
            continue
        if not (ROOT / path).exists():
            _log.warning("%s is no file of the repository", path, location=link)
            continue
        shown.add(path)
        link["refuri"] = app.builder.get_relative_uri(page, _page_of(path))
        link["internal"] = True


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make a page of each file and of each folder to which a page links."""
    wanted = sorted(app.env.__dict__.get("repository_files", ()))
    while wanted:
        path = wanted.pop(0)
        if (ROOT / path).is_dir():
            files = [each for each in sorted((ROOT / path).iterdir()) if each.is_file()]
            names = [each.relative_to(ROOT).as_posix() for each in files]
            wanted += names
            here = _page_of(path)
            links = [(app.builder.get_relative_uri(here, _page_of(name)), name) for name in names]
            body = "".join(f'<li><a href="{link}">{escape(name)}</a></li>' for link, name in links)
            body = f"<ul>{body}</ul>"
        else:
            language = _LANGUAGES.get(Path(path).suffix, "text")
            text = (ROOT / path).read_text("utf-8")
            body = app.builder.highlighter.highlight_block(text, language)  # type: ignore[attr-defined]
        context = {"title": path, "body": f"<h1>{escape(path)}</h1>{body}"}
        yield _page_of(path), context, "page.html"


def _page_of(path: str) -> str:
    return f"source/{path}"
