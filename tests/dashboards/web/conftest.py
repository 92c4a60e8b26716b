"""The web view on a real store, served over loopback."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from guarded_view import View

from mast_trace_collector import security
from mast_trace_collector.receivers.http_server import HTTPServer
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.verdict import Candidate, DecisiveError, Evidence, ModeFinding, Verdict
from mast_trace_judge.verdict_store import save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_dashboards.web.access import Access

SHORT, LONG, BARE, LOOP, LIVE = (letter * 32 for letter in "abcde")
T0 = datetime.now(timezone.utc) - timedelta(hours=1)
HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    "\x1b[31mred\x1b[0m \u202egnol\u202c {{ 7*7 }}"
)
QUOTE = "A night costs 181 EUR."


def message(run: str, number: int, agent: str, text: str) -> dict[str, Any]:
    return {
        "TraceId": run,
        "SpanId": f"{number:016x}",
        "ParentSpanId": "f" * 16,
        "SpanName": f"send_message {agent}",
        "Timestamp": T0 + timedelta(milliseconds=number),
        "Duration": 0,
        "ServiceName": "shop",
        "StatusCode": "Unset",
        "SpanAttributes": {
            "gen_ai.operation.name": "send_message",
            "mast.framework": "ag2",
            "mast.message.sender": agent,
            "mast.message.recipients": '["writer"]',
            "mast.message.id": f"m{number}",
            "mast.message.content": text,
        },
    }


def root(run: str, name: str) -> dict[str, Any]:
    return {
        "TraceId": run,
        "SpanId": "f" * 16,
        "ParentSpanId": "",
        "SpanName": f"invoke_workflow {name}",
        "Timestamp": T0,
        "Duration": 10**9,
        "ServiceName": "shop",
        "StatusCode": "Unset",
        "SpanAttributes": {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": name,
            "mast.framework": "ag2",
        },
    }


def judged(store: Store, run: str, steps: int, decisive: int) -> Verdict:
    summary = run_summary(store, run)
    assert summary
    return Verdict(
        trace_id=run,
        fingerprint=summary.fingerprint,
        judge_version="v1",
        judged_at=T0,
        service="shop",
        framework="ag2",
        name=summary.name,
        run_start=summary.start,
        run_end=summary.end,
        steps=steps,
        outcome="failure",
        failure_probability=0.9,
        modes=(
            ModeFinding(
                code="2.6",
                probability=0.9,
                evidence=Evidence.EXACT,
                reason="The tool said 118.",
                steps=(decisive,),
                quotes=(QUOTE,),
            ),
        ),
        decisive=DecisiveError(
            step=decisive, agent="researcher", probability=0.7, reason="It misread the price."
        ),
        candidates=(
            Candidate(step=decisive, agent="researcher", probability=0.7),
            Candidate(step=0, agent="researcher", probability=0.1, rule="first actor"),
        ),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The runs that the tests look at.

    One short with hostile texts, one of 5,000 steps, one without steps or verdict, one that says
    the same again and again, and one that has only begun.
    """
    with Store.open(f"chdb://{tmp_path_factory.mktemp('web')}") as opened:
        migrate(opened)
        texts = ["Find the price.", QUOTE, HOSTILE, "Again.", "Again.", "x" * 1_000_000]
        short = [
            message(SHORT, n, "researcher" if n % 2 == 0 else "<b>writer</b>", text)
            for n, text in enumerate(texts)
        ]
        long = [message(LONG, n, "researcher", f"Step {n}.") for n in range(5000)]
        long[4321] = message(LONG, 4321, "researcher", QUOTE)
        loop = [
            message(LOOP, n, "researcher" if n % 2 == 0 else "writer", "Again?" if n > 1 else "Go.")
            for n in range(10)
        ]
        for rows in (
            [root(SHORT, "trip & <i>co</i>"), *short],
            [root(LONG, "long"), *long],
            [root(BARE, "bare")],
            [root(LOOP, "loop"), *loop],
            [message(LIVE, 0, "researcher", "I begin.")],
        ):
            opened.insert("otel_traces", rows)
        save(opened, [judged(opened, SHORT, 6, 1), judged(opened, LONG, 5000, 4321)])
        yield opened


@pytest.fixture(scope="module")
def served(store: Store) -> Iterator[str]:
    """The address of the view."""
    yield from serve(store)


def serve(store: Store, access: Access | None = None) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = HTTPServer(web_app(store, access), "127.0.0.1", 0)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(20)
    yield server.address
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


@pytest.fixture
def view(store: Store, tmp_path: Path) -> View:
    """A view with a token, a key and a trusted proxy."""
    return View(store, tmp_path)


@pytest.fixture
def quick_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have changes of the keys file count at once."""
    monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
