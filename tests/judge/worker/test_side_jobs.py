"""Jobs beside the judging: none holds up another one, or the judging of runs."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from judge.worker.stored_runs import invoice_run, write
from judge.worker.waiting import eventually

from mast_trace.exceptions import StorageError
from mast_trace_dashboards.cli.commands import judge as judge_commands
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.side_jobs import SideJobs, to_the_end
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.verdict_writer import HeldOff

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixture_types import Capture, Patch

    from mast_trace_collector.storage import Store
    from mast_trace_judge.worker import Worker

ERRORS = [
    StorageError("away"),
    OverflowError("date value out of range"),
    MemoryError(),
    KeyError("x"),
]


async def test_a_failing_job_pauses_longer_each_time_and_the_others_go_on() -> None:
    now = [0.0]
    began: dict[str, list[float]] = {"bad": [], "good": []}
    broken = True

    async def bad() -> bool:
        began["bad"].append(now[0])
        if broken:
            raise StorageError("the table is read-only")
        return False

    async def good() -> bool:
        began["good"].append(now[0])
        return len(began["good"]) % 2 == 1

    jobs = SideJobs({"bad": bad, "good": good}, clock=lambda: now[0])
    for now[0] in range(0, 160, 10):
        jobs.start()
        await jobs.idle()
        assert jobs.problem == "bad: the table is read-only"
    assert began["bad"] == [0, 10, 30, 70, 150]
    assert began["good"] == [time for time in range(0, 160, 10) for _ in range(2)]
    broken, now[0] = False, 1000.0
    jobs.start()
    await jobs.idle()
    assert jobs.problem == ""
    broken, now[0] = True, 2000.0
    for _ in range(2):
        jobs.start()
        await jobs.idle()
        now[0] += 10
    assert began["bad"][-2:] == [2000, 2010]


async def test_a_job_that_is_broken_off_ends_the_thread_in_which_it_stores() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def stores() -> None:
        begun.set()
        assert go_on.wait(30)
        ended.set()

    async def step() -> bool:
        await to_the_end(stores)
        return True

    jobs = SideJobs({"slow": step})
    jobs.start()
    assert await asyncio.to_thread(begun.wait, 30)
    stopping = asyncio.create_task(jobs.stop())
    await asyncio.sleep(0.01)
    assert not stopping.done()
    go_on.set()
    await stopping
    assert ended.is_set()
    jobs.start()
    await jobs.once()
    assert jobs.problem == ""


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize(
    ("place", "method", "name"),
    [(PatternIndexer, "index", "patterns"), (StoreLedger, "flush", "ledger")],
)
async def test_runs_are_judged_whatever_a_job_raises(
    store: Store,
    worker: Callable[..., Worker],
    monkeypatch: Patch,
    place: type,
    method: str,
    name: str,
    error: Exception,
) -> None:
    """Once and for ever; the status has the reason."""

    def failing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(place, method, failing)
    write(store, invoice_run(1))
    one = worker()
    assert await one.drain_once() == 1
    assert one.status.beside.startswith(f"{name}: ")
    assert one.status.problem == ""
    running = worker()
    task = asyncio.create_task(running.run())
    for number in range(2, 5):
        write(store, invoice_run(number))
        await eventually(lambda: running.status.judged == number - 1)  # noqa: B023
    assert running.status.beside.startswith(f"{name}: ")
    monkeypatch.undo()
    await running.stop()
    await task


async def test_runs_are_judged_while_a_job_hangs(
    store: Store, worker: Callable[..., Worker], monkeypatch: Patch
) -> None:
    hanging, go_on = threading.Event(), threading.Event()

    def hangs(*_: Any, **__: Any) -> int:
        hanging.set()
        assert go_on.wait(60)
        return 0

    monkeypatch.setattr(PatternIndexer, "index", hangs)
    one = worker()
    task = asyncio.create_task(one.run())
    assert await asyncio.to_thread(hanging.wait, 30)
    for number in range(1, 4):
        write(store, invoice_run(number))
        await eventually(lambda: one.status.judged == number)  # noqa: B023
    go_on.set()
    await one.stop()
    await task


def test_the_command_says_what_failed_and_ends_well(
    store: Store, worker: Callable[..., Worker], monkeypatch: Patch, capsys: Capture
) -> None:
    """`judge work --once` has judged what was due."""

    def failing(*_: Any, **__: Any) -> int:
        raise StorageError("Code: 407. Decimal math overflow")

    monkeypatch.setattr(PatternIndexer, "index", failing)
    write(store, invoice_run(1))
    assert asyncio.run(judge_commands._drain(worker())) == 1
    assert "Code: 407" in capsys.readouterr().err


def test_a_run_pauses_longer_each_time_and_is_forgotten_when_it_comes_up_no_more() -> None:
    now = [100.0]
    runs = HeldOff(clock=lambda: now[0])
    key = ("", "t", "f")
    assert [runs.add(key) for _ in range(8)] == [10, 20, 40, 80, 160, 320, 600, 600]
    assert runs.look() == ({key}, False)
    now[0] += 600
    assert runs.look() == (set(), True)
    assert runs.look() == (set(), False)
    assert len(runs) == 1
    now[0] += 3601
    runs.look()
    assert len(runs) == 0
    assert runs.add(key) == 10
    runs.remove(key)
    assert runs.look() == (set(), False)
