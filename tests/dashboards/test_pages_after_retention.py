"""Pages, queries, alerts and exports after retention has dropped a day of spans."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from judge.worker.stock_runs import NOW, stock_run, write_stock

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.removal.retention import shrink_to
from mast_trace_dashboards.alerts.evaluator import Evaluator
from mast_trace_dashboards.plugins import named_queries
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.transfer.exporting import export_runs
from mast_trace_judge.worker import Worker

sys.path.insert(0, str(Path(__file__).with_name("web")))
from view_server import serve

if TYPE_CHECKING:
    import pytest

OLD, KEPT = "a" * 32, "b" * 32
DAY = 86_400 * 10**9
LISTS = (
    *("/", "/judge", "/patterns", "/agents", "/cost", "/week", "/queue", "/groups/version"),
    *("/?since=0001-01-01", "/search?q=20&since=0001-01-01", "/export.csv", "/export.jsonl"),
)
PARTS = ("", "/steps", "/tree", "/download.json", "/download.otlp")


def test_a_day_that_is_dropped_leaves_no_page_in_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The spans of a run are gone, and its state and its verdict, which are written later, stay."""
    with Store.open(f"chdb://{tmp_path}") as store:
        migrate(store)
        for trace, start in ((OLD, NOW - 40 * DAY), (KEPT, NOW)):
            write_stock(store, stock_run(trace, start, 10**9, project=""))
        config = WorkerConfig(run_quiet_seconds=0.001, run_idle_seconds=0.001)
        assert asyncio.run(Worker(store, Judge(JudgeConfig()), config).drain_once()) == 2
        assert len(shrink_to(store, 1)) == 1
        for address in serve(store):
            with httpx.Client(base_url=address, timeout=60) as client:
                found = {page: client.get(page).status_code for page in LISTS}
                assert found == dict.fromkeys(LISTS, 200)
                assert "no longer stored" in client.get(f"/runs/{OLD}").text
                for part in PARTS:
                    assert client.get(f"/runs/{KEPT}{part}").status_code == 200, part
                    assert client.get(f"/runs/{OLD}{part}").status_code == 200, part
        for query in named_queries().values():
            query.run(store)
        Evaluator(store).look(datetime.now(timezone.utc))
        assert not [each for each in caplog.records if each.levelname == "ERROR"]
        assert [run["trace_id"] for run in export_runs(store)] == [KEPT]
