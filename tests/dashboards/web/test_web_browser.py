"""The web view in a real browser: accessible, usable by keyboard, nothing runs that should not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from replayed_runs import PROVED, TWIN, team
from web_runs import CROWD, LIVE, LONG, LOOP, SHORT, judged, message, root

from mast_trace_judge.store.verdicts import save

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_core_python", reason="needs axe-core-python")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from mast_trace_collector.storage import Store

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium"),
]
AXE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
PAGES = (
    "/",
    f"/runs/{SHORT}",
    f"/runs/{LOOP}",
    "/judge",
    "/patterns",
    "/agents",
    "/cost",
    "/settings",
    "/profile",
    "/experiments",
    "/experiments/planned",
    "/runs/nope",
    f"/compare?run={SHORT}&run={LOOP}",
    f"/runs/{PROVED}",
    f"/compare?run={PROVED}&run={TWIN}",
    f"/runs/{SHORT}/tree",
    "/groups/version",
    "/search?text=again&since=9d",
    "/queue",
    f"/runs/{SHORT}?queue=1",
    f"/runs/{CROWD}?with=writer",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser, served: str) -> Iterator[Page]:
    opened = browser.new_page(base_url=served)
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()


def violations(page: Page) -> list[str]:
    """Return axe's objections. Its script is evaluated by the test, past the page's own policy.

    It describes nothing to which it does not object: that would take three quarters of its time.
    """
    page.evaluate(f"() => {{ if (!window.axe) {{ {AXE} }} }}")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [f"{v['id']}: {[n['html'][:200] for n in v['nodes']][:3]}" for v in found]


def check_accessible(page: Page, path: str) -> None:
    """Check a page on a phone, on a screen, and there in dark colours, for which it need not be loaded again."""
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(path, wait_until="networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    for details in page.locator("details").all()[:3]:
        details.locator("summary").click()
    page.wait_for_load_state("networkidle")
    assert violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []


def test_keys_lead_through_the_runs_of_the_list(page: Page) -> None:
    """In the list's own order, also where it is filtered; the help says so."""
    page.goto("/?outcome=failure")
    runs = [link.get_attribute("href") for link in page.locator(".runs .what > a").all()]
    assert len(runs) > 1
    page.goto(runs[0] or "")
    press(page, "n")
    page.wait_for_url(f"**{runs[1]}")
    press(page, "p")
    page.wait_for_url(f"**{runs[0]}")
    press(page, "?")
    page.get_by_role("dialog", name="Keys").wait_for()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_and_ask_nobody_else(page: Page, served: str, path: str) -> None:
    """In both colour schemes and on a phone, which they fit; they break no rule of their own."""
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda entry: entry.type == "error" and complaints.append(entry.text))
    check_accessible(page, path)
    assert [url for url in asked if not url.startswith((served, "data:"))] == []
    assert [entry for entry in complaints if "404" not in entry] == []


@pytest.mark.parametrize("width", [1280, 375])
def test_a_long_name_takes_one_line_of_the_list(page: Page, width: int) -> None:
    """The whole of it stands in its title."""
    page.set_viewport_size({"width": width, "height": 700})
    page.goto("/")
    # In one go, since the page may show the list anew in between.
    grow = """(one) => {
        const height = () => (one.closest('a') ?? one).getBoundingClientRect().height;
        const before = height();
        one.textContent = 'a very long name '.repeat(30);
        return [before, height()];
    }"""
    for line in page.locator(".runs .line").all():
        assert line.get_attribute("title") is not None
        before, after = line.evaluate(grow)
        assert after <= before
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("place", ["/", "/agents", "/cost", f"/runs/{SHORT}"])
def test_a_long_name_makes_no_page_wider(page: Page, place: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(place)
    page.evaluate("""() => document.querySelectorAll('.narrows, .agent a, .head strong, .kind, th[scope=row] a, .facts dd')
        .forEach(one => one.textContent = 'a_name_without_spaces_'.repeat(9))""")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_texts_of_a_run_do_nothing(page: Page) -> None:
    page.goto(f"/runs/{SHORT}", wait_until="networkidle")
    assert "owned" not in page.title()
    assert page.locator("img").count() == 0


def test_the_decisive_step_is_reached_by_keyboard_alone(page: Page) -> None:
    page.goto(f"/runs/{SHORT}")
    page.keyboard.press("d")
    focused = page.locator(":focus")
    assert focused.get_attribute("id") == "step-1"
    assert "DECISIVE" in focused.inner_text()
    page.keyboard.press("j")
    assert page.locator(":focus").get_attribute("id") == "step-2"
    page.keyboard.press("k")
    assert page.locator(":focus").get_attribute("id") == "step-1"


def test_more_steps_come_on_request_and_a_late_decisive_one_by_keyboard(page: Page) -> None:
    page.goto(f"/runs/{LONG}")
    assert page.locator(".step").count() == 500
    # A mouse would scroll there first, and the steps come by that alone.
    page.get_by_role("link", name="more of 4,500 steps").dispatch_event("click")
    page.locator("#step-999").wait_for()
    page.keyboard.press("d")
    page.locator("#step-4321:focus").wait_for()


def test_a_run_is_opened_from_the_list_by_keyboard(page: Page) -> None:
    page.goto("/?text=Find%20the%20price")
    link = page.get_by_role("link", name="trip")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{SHORT}")


def test_the_first_stop_of_the_keyboard_skips_the_navigation(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to content"


def test_a_link_to_a_late_step_arrives_and_what_lies_before_comes_on_request(page: Page) -> None:
    """Only the requested pages are loaded, in their order."""
    page.goto(f"/runs/{LONG}#step-4321")
    page.locator("#step-4321.decisive").wait_for()
    page.locator("#step-4321:focus").wait_for()
    assert page.locator("#step-500").count() == 0
    page.get_by_role("link", name="Show 500 more of 3,500 steps").dispatch_event("click")
    page.locator("#step-999").wait_for()
    shown = page.locator(".step").evaluate_all("steps => steps.map(s => Number(s.id.slice(5)))")
    assert shown == [*range(1000), *range(4000, 4500)]
    page.get_by_role("link", name="Show 500 more of 3,000 steps").wait_for()
    page.get_by_role("link", name="Show 500 more of 500 steps").wait_for()


def test_the_graph_is_narrowed_by_keyboard_without_scripts(browser: Browser, served: str) -> None:
    page = browser.new_page(base_url=served, java_script_enabled=False)
    page.goto(f"/runs/{CROWD}?queue=1")
    assert page.locator("svg .node").count() == 16
    page.get_by_role("link", name="draw more of them").press("Enter")
    page.wait_for_url("**/*?queue=1&boxes=40#graph")
    assert page.locator("svg .node").count() == 31
    page.get_by_role("link", name="member 7: show its messages").press("Enter")
    page.wait_for_url("**/*?queue=1&with=member+7&boxes=40#graph")
    assert page.locator("svg .node").count() == 2
    form = page.get_by_role("form", name="Messages in the graph")
    form.get_by_label("Messages, at least").fill("4")
    form.get_by_label("Messages, at least").press("Enter")
    page.get_by_text("No messages between agents match.").wait_for()
    form.get_by_label("member 7").uncheck()
    form.get_by_label("Messages, at least").fill("3")
    form.get_by_role("button").press("Enter")
    page.wait_for_url("**/*?queue=1&with=&least=3&boxes=40#graph")
    assert page.locator("svg .node").count() == 31
    page.close()


def test_the_lanes_are_read_as_a_conversation_without_scripts(
    browser: Browser, page: Page, served: str
) -> None:
    """The speakers are seen, a turn may take lines, and each is still the link to its step."""
    plain = browser.new_page(base_url=served, java_script_enabled=False)
    plain.goto(f"/runs/{SHORT}")
    who, dot = plain.locator(".tick .who").first, plain.locator(".tick .dot").first
    assert dot.is_visible()
    plain.get_by_label("as conversation").press("Space")
    assert not dot.is_visible()
    assert (who.bounding_box() or {})["width"] > 10
    plain.locator(".tick.first").press("Enter")
    plain.wait_for_url("**/*#step-1")
    plain.close()
    for width, colours in ((375, "light"), (1280, "dark")):
        page.set_viewport_size({"width": width, "height": 700})
        page.emulate_media(color_scheme=colours)
        page.goto(f"/runs/{SHORT}")
        page.get_by_label("as conversation").press("Space")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []


def test_folded_steps_open_for_the_keyboard_and_for_links(page: Page) -> None:
    page.goto(f"/runs/{LOOP}")
    page.locator("#step-3").focus()
    assert not page.locator("#step-4").is_visible()
    page.keyboard.press("j")
    assert page.locator(":focus").get_attribute("id") == "step-4"
    page.goto("/")
    page.goto(f"/runs/{LOOP}#step-6")
    page.locator("#step-6").wait_for(state="visible")


def test_a_run_is_followed_while_it_goes_on(page: Page, store: Store) -> None:
    page.goto(f"/runs/{LIVE}")
    assert "The run goes on" in page.locator("#run").inner_text()
    store.insert("otel_traces", [message(LIVE, 1, "writer", "I go on.")])
    page.locator(".steps").get_by_text("I go on.").wait_for()
    store.insert("otel_traces", [root(LIVE, "live"), message(LIVE, 2, "writer", "Done.")])
    page.get_by_text("Not judged yet").wait_for()
    save(store, [judged(store, LIVE, 3, 1)])
    page.locator("#step-1.decisive").wait_for()
    assert page.evaluate("document.querySelector('[data-state]').dataset.state") == "judged"


def test_who_reads_is_not_disturbed(page: Page, store: Store) -> None:
    page.goto(f"/runs/{LOOP}")
    page.locator("#step-0").get_by_text("Raw span").click()
    store.insert("otel_traces", [message(LOOP, 10, "writer", "Once more.")])
    page.get_by_role("link", name="show its present state").click()
    page.locator("#step-10").wait_for(state="attached")


def test_the_list_keeps_up_unless_runs_are_being_chosen(page: Page, store: Store) -> None:
    page.goto("/")
    store.insert("otel_traces", [root("1" * 32, "came later")])
    page.get_by_role("link", name="came later").wait_for()
    page.get_by_label(f"Compare run {SHORT[:8]}").check()
    page.get_by_role("heading", name="Runs").click()
    store.insert("otel_traces", [root("2" * 32, "came too late")])
    page.wait_for_timeout(4_000)
    assert page.get_by_role("link", name="came too late").count() == 0
    assert page.get_by_label(f"Compare run {SHORT[:8]}").is_checked()


def test_two_runs_are_chosen_and_compared(page: Page) -> None:
    page.goto("/")
    assert page.get_by_role("button", name="Compare two chosen runs").is_disabled()
    page.get_by_label(f"Compare run {SHORT[:8]}").check()
    page.get_by_label(f"Compare run {LONG[:8]}").check()
    page.get_by_role("button", name="Compare two chosen runs").click()
    page.get_by_role("heading", name="Two runs").wait_for()
    assert page.locator("section").count() == 2


def test_a_command_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(f"/runs/{PROVED}")
    step = page.locator("#step-2")
    step.get_by_text("Replay from here").click()
    step.get_by_role("button", name="Copy").first.click()
    step.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"mast-trace replay {PROVED} --change keep:2 -- COMMAND"
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_one_key_copies_the_command_that_proves_the_cause(page: Page, store: Store) -> None:
    run = "5" * 32
    store.insert("otel_traces", team(run))
    save(store, [judged(store, run, 7, 2)])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/runs/{run}")
    page.keyboard.press("c")
    page.locator(".verdict").get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"mast-trace prove {run} -- COMMAND"


def test_a_file_is_compared_from_the_page_of_its_run(page: Page, tmp_path: Path) -> None:
    page.goto(f"/runs/{PROVED}")
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").click()
    saved = tmp_path / "run.json"
    download.value.save_as(saved)
    page.get_by_text("Replay this run").click()
    page.get_by_label("A replay, written by").set_input_files(saved)
    page.get_by_role("button", name="Compare with this run").click()
    page.get_by_text("The runs are equal, step by step.").wait_for()
    assert violations(page) == []


def test_a_run_is_labelled(page: Page) -> None:
    page.goto(f"/runs/{LONG}")
    page.get_by_text("Label this run").click()
    page.get_by_label("Your name").fill("grace")
    page.get_by_label("Decisive step").fill("7")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/runs/{LONG}#labels")
    assert "grace: no outcome" in page.locator("section[aria-labelledby=labels]").inner_text()


def test_a_step_is_labelled_by_keyboard_alone(page: Page) -> None:
    page.goto(f"/runs/{SHORT}")
    press(page, "d", "x", "j", "x", "l")
    assert page.locator("form.label [name=decisive_step]").input_value() == "1, 2"
    assert page.locator(":focus").get_attribute("name") == "annotator"


def test_a_run_of_the_queue_is_labelled_blind_by_keyboard_alone(page: Page) -> None:
    page.goto("/queue", wait_until="networkidle")
    page.get_by_role("link", name="Begin with the first run").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Hidden until your label of this run is saved").wait_for()
    run = page.url.split("/runs/")[1].split("?")[0]
    assert (
        page.locator(".decisive, .candidate, .said-lead, .chip, .tick.first, .tick.place").count()
        == 0
    )
    press(page, "d", "j", "x", "l")
    page.keyboard.type("grace")
    page.locator("form.label [name=outcome]").select_option("failure")
    page.get_by_role("button", name="Save, and show the next run").press("Enter")
    page.get_by_role("status").get_by_text(f"Your label of run {run[:8]} is saved").wait_for()
    page.get_by_role("link", name="The judge's verdict on that run").press("Enter")
    page.wait_for_url(f"**/runs/{run}")
    assert page.get_by_text("Hidden until your label").count() == 0
    assert "grace" in page.locator("section[aria-labelledby=labels]").inner_text()


def test_parts_of_a_step_are_unfolded(page: Page) -> None:
    page.goto(f"/runs/{SHORT}")
    step = page.locator("#step-0")
    step.get_by_text("what the agent saw").focus()
    page.keyboard.press("Enter")
    step.get_by_text("No model call with its input").wait_for()
    step.get_by_text("Raw span").click()
    step.locator("pre").wait_for()
    assert "mast.message.sender" in step.inner_text()
