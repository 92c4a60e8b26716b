"""Runbooks are Markdown of ours, shown as pages on which nothing else happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jinja2 import Environment
from starlette.templating import Jinja2Templates

from mast_trace_dashboards.web.app import Runbooks, rendered, title_of

if TYPE_CHECKING:
    from pathlib import Path


def runbooks(folder: Path | None = None) -> Runbooks:
    return Runbooks(Jinja2Templates(env=Environment(autoescape=True)), folder)


def test_the_packages_own_are_found_and_have_titles() -> None:
    found = runbooks().texts()
    assert "web-view-not-ready" in found
    for name, text in found.items():
        assert title_of(text), name
        assert "<h1>" in rendered(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "[a](javascript:alert(1))",
        "[a](vbscript:x) [b](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        "![a](https://evil.example/x.png)",
        '[a](https://example.org "x\\" onmouseover=\\"alert(1)")',
        "```<script>\n</script>\n```",
        "| <b>a</b> |\n|---|\n| <i>b</i> |",
        "&lt;script&gt;",
    ],
)
def test_markup_stays_text(text: str) -> None:
    page = str(rendered(text)).lower()
    for tag in ("<script", "<img", "<b>", "<i>", 'href="javascript', 'href="data', 'href="vb'):
        assert tag not in page
    assert ' onmouseover="' not in page


def test_what_runbooks_are_made_of_is_rendered() -> None:
    page = rendered("# T\n\n1. `a`\n\n| x |\n|---|\n| [y](/judge) |\n\n```sh\nls\n```\n")
    for tag in ("<h1>T</h1>", "<ol>", "<code>a</code>", "<td>", '<a href="/judge">', "<pre>"):
        assert tag in page


def test_only_files_with_plain_names_are_served(tmp_path: Path) -> None:
    for name in (
        *("good.md", "also-good-2.md", "..md", "Bad.md", "a b.md", "x.txt"),
        *(".hidden.md", "-.md"),
    ):
        (tmp_path / name).write_text("# x\n")
    assert list(runbooks(tmp_path).texts()) == ["also-good-2", "good"]
    assert runbooks(tmp_path / "none").texts() == {}
