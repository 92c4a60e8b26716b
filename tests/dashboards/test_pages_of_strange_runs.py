"""Runs at any time and of any name are listed, opened, queried and exported, without an error of the server."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from judge.worker.stock_runs import TIMES, stock_run, write_stock
from judge.worker.stored_runs import invoice_run, write

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.alerts.evaluator import Evaluator
from mast_trace_dashboards.plugins import named_queries
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.study.rejudge import Selection, rejudge
from mast_trace_judge.transfer.exporting import export_runs
from mast_trace_judge.worker import Worker

sys.path.insert(0, str(Path(__file__).with_name("web")))
from view_server import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

UTC = timezone.utc
RUNS = {name: f"{number:032x}" for number, name in enumerate(TIMES, 100)}
NAMES = ["not hex", "nul\0", "`a`$(b)\n\x1b[2J'\"\\ %s", "é漢", "a" * 3000]
HEALTHY = f"{1:032x}"
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Judged runs at each time and of each name, beside a usual one."""
    with Store.open(f"chdb://{tmp_path_factory.mktemp('strange')}") as opened:
        migrate(opened)
        for name, times in TIMES.items():
            write_stock(opened, stock_run(RUNS[name], *times, project=""))
        for trace in (*NAMES, b"\xff\xfe", b"\xfe"):
            write_stock(opened, stock_run(trace, project=b"\xff" if trace == b"\xfe" else ""))
        write(opened, invoice_run(1))
        config = WorkerConfig(run_quiet_seconds=0.001, run_idle_seconds=0.001)
        worker = Worker(opened, Judge(JudgeConfig()), config)
        assert asyncio.run(worker.drain_once()) == len(TIMES) + 8
        yield opened


@pytest.fixture(scope="module")
def served(store: Store) -> Iterator[str]:
    yield from serve(store)


def get(address: str) -> tuple[int, str]:
    try:
        with urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    "trace", [*RUNS.values(), *NAMES, HEALTHY], ids=[*RUNS, *"abcde", "healthy"]
)
def test_each_page_of_a_run_shows_it(served: str, trace: str) -> None:
    page = f"{served}/runs/{quote(trace, safe='')}"
    status, text = get(page)
    assert status == 200
    for part in ("/steps", "/steps/1", "/steps/1/input", "/tree", "/spans/00000000000000aa"):
        if trace != HEALTHY or not part.startswith("/spans"):
            assert get(f"{page}{part}")[0] == 200, part
    for kind in ("json", "otlp"):
        status, text = get(f"{page}/download.{kind}")
        assert status == 200
        assert re.search(r"\b(add|open_invoices)\b", text), "the spans are read"
        json.loads(text)


@pytest.mark.parametrize(
    "page",
    [
        *(
            "/",
            "/judge",
            "/patterns",
            "/agents",
            "/cost",
            "/week",
            "/queue",
            "/groups/user",
            "/groups/version",
        ),
        *(
            "/?since=0001-01-01&until=9999-12-31",
            "/?since=2262-04-11",
            "/search?q=20&since=0001-01-01&until=9999-12-31",
        ),
        *("/export.csv", "/export.jsonl", "/export.csv?since=0002-01-01&until=9999-12-31"),
    ],
)
def test_each_list_is_shown(served: str, page: str) -> None:
    status, text = get(served + page)
    assert status == 200
    if page == "/" or page.startswith("/?since=0001"):
        assert HEALTHY[:8] in text


@pytest.mark.parametrize("name", named_queries())
def test_each_query_answers_at_each_time(store: Store, name: str) -> None:
    query = named_queries()[name]
    far = [
        {},
        {"since": FIRST, "until": LAST},
        {"since": LAST, "until": LAST},
        {"since": FIRST, "until": FIRST},
    ]
    for given in far:
        query.run(store, **{each: time for each, time in given.items() if each in query.params})


def test_all_runs_are_exported_once_and_the_export_ends(store: Store) -> None:
    exported = [run["trace_id"] for run in export_runs(store)]
    assert sorted(exported) == sorted([*RUNS.values(), *NAMES, HEALTHY])


@pytest.mark.parametrize(
    "moment",
    [datetime.now(UTC), datetime(1970, 1, 1, tzinfo=UTC), LAST],
    ids=["now", "first", "last"],
)
def test_alerts_are_evaluated(
    store: Store, caplog: pytest.LogCaptureFixture, moment: datetime
) -> None:
    Evaluator(store).look(moment)
    assert not caplog.records


def test_all_runs_are_judged_again(store: Store) -> None:
    """By another version of the judge."""
    store.command("TRUNCATE TABLE mast_verdicts")

    async def again() -> list[str]:
        return [
            verdict.trace_id async for verdict in rejudge(store, Judge(JudgeConfig()), Selection())
        ]

    judged = asyncio.run(again())
    assert {*RUNS.values(), *NAMES, HEALTHY} <= set(judged)


def test_pages_of_long_names_and_texts_stay_short(store: Store, served: str) -> None:
    """A sender that makes up long names fills no page with them; one step has its text once, and the download all."""
    name, text, trace = "n" * 100_000, "t" * 3_000_000, f"{7:032x}"
    shared = {"Timestamp": datetime.now(UTC), "TraceId": trace, "ServiceName": name}
    told = {
        "mast.framework": name,
        "mast.run.outcome": "failure",
        "mast.run.outcome_reason": text,
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": name,
        "gen_ai.conversation.id": text,
        "user.id": text,
    }
    called = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": name,
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps({"q": text}),
        "gen_ai.tool.call.result": text,
    }
    root = {"SpanId": "1" * 16, "ParentSpanId": "", "SpanName": name, "SpanAttributes": told}
    call = {
        "SpanId": "2" * 16,
        "ParentSpanId": "1" * 16,
        "SpanName": name,
        "SpanAttributes": called,
    }
    store.insert("otel_traces", [{**shared, **each} for each in (root, call)])
    run = f"/runs/{trace}"
    pages = ["/", run, f"{run}/steps", f"{run}/steps?lanes=1", f"{run}/tree", "/agents", "/cost"]
    pages += ["/groups/user", "/groups/session", f"/compare?run={trace}&run={HEALTHY}"]
    for page in pages:
        status, shown = get(f"{served}{page}")
        assert (status, len(shown) < 250_000) == (200, True), (page, len(shown))
    assert len(get(f"{served}{run}/steps/0")[1]) < len(text)
    assert get(f"{served}{run}/download.otlp")[1].count(text) == 5
