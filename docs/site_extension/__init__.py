"""Sphinx extension of this site: generated pages, and links to files of the repository.

A line ``<!-- generated: NAME -->`` stands for the Markdown that the generator of that name makes from
the code, so that a page of the reference cannot differ from what it describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from site_extension import generated, repository

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension to a build."""
    app.connect("source-read", generated.fill)
    app.connect("source-read", repository.mark_links)
    app.connect("doctree-resolved", repository.resolve_links)
    app.connect("html-collect-pages", repository.pages)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
