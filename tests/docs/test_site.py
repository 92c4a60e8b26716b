"""The built site: every link leads somewhere, and a visitor's browser loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from code_blocks import PAGES

pytestmark = pytest.mark.documents

SITE = Path(os.environ.get("MAST_TRACE_TEST_SITE", ""))
# Tag -> its attributes that make a browser load something.
LOADED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
# Relations of a link that a browser does not follow by itself.
NAMED_ONLY = {"canonical", "index", "search", "next", "prev", "author", "copyright", "license"}
CSS_ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]([^'\"]+)")
ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z+.-]*:)?//|^\s*[a-z][a-z+.-]*:(?!//)", re.IGNORECASE)


class Page(HTMLParser):
    """The addresses that a page loads, its links, and the ids to which a link may lead."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.styles = ""
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and ids of one tag."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        self.styles += given.get("style", "")
        self._in_style = tag == "style"
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) <= NAMED_ONLY:
            return
        self.loads += [given[name] for name in LOADED.get(tag, ()) if given.get(name)]

    def handle_data(self, data: str) -> None:
        """Collect the text of a style sheet."""
        if self._in_style:
            self.styles += data


@cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def pages() -> list[Path]:
    return sorted(SITE.rglob("*.html"))


def test_the_site_has_been_built() -> None:
    assert len(pages()) > 20


def test_the_site_can_be_searched() -> None:
    """The index of words is a file of the site, as all that it loads is, and knows each page."""
    assert "searchindex.js" in " ".join(read(SITE / "search.html").loads)
    index = (SITE / "searchindex.js").read_text("utf-8")
    names = {path.relative_to(PAGES).with_suffix("").as_posix() for path in PAGES.rglob("*.md")}
    assert {name for name in names if f'"{name}"' not in index} == set()


def test_every_link_and_its_anchor_exist() -> None:
    lost = []
    for path in pages():
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                lost.append(f"{path.relative_to(SITE)}: {link}")
            elif target.suffix == ".html" and not has(target, unquote(parts.fragment)):
                lost.append(f"{path.relative_to(SITE)}: {link} (no such anchor)")
    assert lost == []


def test_what_a_page_loads_and_links_is_seen(tmp_path: Path) -> None:
    planted = tmp_path / "page.html"
    planted.write_text(
        '<link rel="stylesheet" href="//fonts.example/f.css"><link rel="canonical" href="https://x/">'
        '<style>@import "https://a.example/s.css"; p { background: url(//b.example/i.png) }</style>'
        '<img src="data:image/png;base64,AA" srcset="https://c.example/i.png"><a href="#there">x</a>'
        '<script src="own.js"></script><h1 id="here" style="cursor: url(https://d.example/c)"></h1>'
    )
    page = read(planted)
    loaded = [*page.loads, *(one or two for one, two in CSS_ADDRESS.findall(page.styles))]
    assert [each for each in loaded if leaves(each)] == [
        "//fonts.example/f.css",
        "https://c.example/i.png",
        "https://a.example/s.css",
        "//b.example/i.png",
        "https://d.example/c",
    ]
    assert page.links == ["#there"]
    assert not has(planted, "there")
    assert has(planted, "here")


def test_nothing_is_loaded_from_elsewhere() -> None:
    foreign = []
    for path in pages():
        page = read(path)
        addresses = [*page.loads, *(one or two for one, two in CSS_ADDRESS.findall(page.styles))]
        foreign += [(path.name, each) for each in addresses if leaves(each)]
    for path in sorted(SITE.rglob("*.css")) + sorted(SITE.rglob("*.svg")):
        found = CSS_ADDRESS.findall(path.read_text("utf-8"))
        foreign += [(path.name, one or two) for one, two in found if leaves(one or two)]
    assert foreign == []


def test_no_script_names_another_host_to_load_from() -> None:
    """Scripts load nothing from another host; the addresses in them are of licences and namespaces."""
    loading = re.compile(
        r"(?:src|href)\s*=\s*[\"'`](?:https?:)?//|import\s*\(?[\"'`](?:https?:)?//"
    )
    calls = re.compile(r"(?:fetch|importScripts|Worker)\(\s*[\"'`](?:https?:)?//")
    found = []
    for path in [*sorted(SITE.rglob("*.js")), *pages()]:
        text = path.read_text("utf-8")
        scripts = (
            text if path.suffix == ".js" else "".join(re.findall(r"<script>(.*?)</script>", text))
        )
        found += [(path.name, hit) for hit in [*loading.findall(scripts), *calls.findall(scripts)]]
    assert found == []


def has(page: Path, anchor: str) -> bool:
    return not anchor or anchor in read(page).ids


def leaves(address: str) -> bool:
    return bool(ELSEWHERE.match(address)) and not address.strip().startswith("data:")
