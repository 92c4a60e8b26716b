"""Signing in and reading runbooks in a real browser: by keyboard, accessible, across sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_web_browser import browser, check_accessible, pytestmark  # noqa: F401  # browser is a fixture
from view_server import serve
from web_runs import message

from mast_trace_collector.security import ProjectKeys, Right, new_key
from mast_trace_dashboards.web.access import COOKIE, Access
from mast_trace_dashboards.web.config import WebConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from mast_trace_collector.storage import Store

TOKEN = "the operator's token"
TEAM_RUN = "9" * 32
KEY, LINE = new_key("team-a", frozenset({Right.READ}))


@pytest.fixture(scope="module")
def closed(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a view that asks who comes."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(LINE)
    ours = message(TEAM_RUN, 0, "planner", "Ours alone.")
    store.insert("otel_traces", [{**ours, "ResourceAttributes": {"mast.project": "team-a"}}])
    access = Access(WebConfig.load(web_token=TOKEN), ProjectKeys(file))
    yield from serve(store, access)


@pytest.fixture
def page(browser: Browser, closed: str) -> Iterator[Page]:  # noqa: F811
    opened = browser.new_page(base_url=closed.replace("127.0.0.1", "localhost"))
    opened.set_default_timeout(60_000)
    yield opened
    opened.context.close()


def sign_in(page: Page, key: str = KEY) -> None:
    page.goto("/sign-in")
    page.get_by_label("Key of a project").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Runs").wait_for()


def test_signing_in_by_keyboard_leads_to_what_was_asked_for(page: Page) -> None:
    """The field has the focus; a wrong key is reported; the right one leads to the page."""
    page.goto(f"/runs/{TEAM_RUN}?x=1#step-0")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    assert "not known here" in page.get_by_role("alert").inner_text()
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{TEAM_RUN}?x=1*")
    assert "Project team-a" in page.locator("header").inner_text()
    assert KEY not in str(page.context.cookies())
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""


def test_signing_out_by_keyboard(page: Page) -> None:
    sign_in(page)
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Sign in").wait_for()
    assert [each for each in page.context.cookies() if each["name"].endswith(COOKIE)] == []
    page.go_back()
    page.reload()
    page.get_by_role("heading", name="Sign in").wait_for()


def test_a_link_on_another_site_arrives_with_the_session(page: Page, served: str) -> None:
    """A link on another site, such as Grafana, arrives with the session, though the cookie is strict."""
    sign_in(page)
    there = page.url.rstrip("/")
    for signed_in in (True, False):
        if not signed_in:
            page.context.clear_cookies()
        page.goto(served)
        page.evaluate("address => { location.href = address }", f"{there}/runs/{TEAM_RUN}")
        if signed_in:
            page.wait_for_url(f"**/runs/{TEAM_RUN}")
            page.get_by_text("Ours alone.").first.wait_for()
        else:
            page.wait_for_url("**/sign-in?next=*")
            page.get_by_label("Key of a project").fill(KEY)
            page.keyboard.press("Enter")
            page.wait_for_url(f"**/runs/{TEAM_RUN}")


def test_another_sites_form_changes_nothing(page: Page) -> None:
    """Another site's form arrives without the cookie, and is refused by its origin."""
    sign_in(page)
    there = page.url.rstrip("/")
    form = f'<form method="post" action="{there}/sign-out"><button>Win</button></form>'
    page.route(
        "http://evil.example/", lambda route: route.fulfill(body=form, content_type="text/html")
    )
    page.goto("http://evil.example/")
    with page.expect_response("**/sign-out") as answered:
        page.get_by_role("button", name="Win").click()
    assert answered.value.status == 403
    page.goto(f"{there}/judge")
    page.get_by_role("heading", name="Judge health").wait_for()


@pytest.mark.parametrize(
    "path", ["/sign-in", "/", "/runbooks", "/runbooks/web-view-not-ready", "/x"]
)
def test_pages_are_accessible_and_fit(page: Page, path: str) -> None:
    complaints: list[str] = []
    page.on(
        "console", lambda entry: complaints.append(entry.text) if entry.type == "error" else None
    )
    if path != "/sign-in":
        sign_in(page)
    check_accessible(page, path)
    assert [entry for entry in complaints if "404" not in entry] == []
