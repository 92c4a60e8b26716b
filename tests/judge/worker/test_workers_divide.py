"""Workers that come and go divide the runs: each run has one verdict, and no two pay for the same reading."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from end_to_end.processes import CollectorProcess
from endpoint_server import PASSWORD, WRITE_TOKEN, serve
from judge.llm.scripted_judge import JudgeScript
from judge.worker.stored_runs import invoice_run, write
from judge.worker.test_worker_model import INVOICES
from scripted_llm import ScriptedLLM
from stores import SERVER

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import workers
from mast_trace_judge.store.workers import Workers
from mast_trace_judge.worker import Worker

PROGRAM = Path(__file__).with_name("worker_process.py")
RUNS = [f"{number:032x}" for number in range(1, 400)]

pytestmark = pytest.mark.skipif(bool(SERVER), reason="serves an embedded store")


@pytest.fixture
def url(store):
    """The address of the store for other processes."""
    app = ClickHouseHTTP(store, password=PASSWORD, write_token=WRITE_TOKEN)
    with serve(app) as address:
        yield f"http://tests:{WRITE_TOKEN}@{address}"
    app.close()


@pytest.fixture
def member(url):
    """Make workers of one store, whose clocks the test moves."""
    with Store.open(url) as shared:
        yield lambda clock, reading=(): Workers(shared, lambda: reading, clock=lambda: clock[0])


def look(*members, clock):
    """Let everybody look who lives, one beat later."""
    clock[0] += workers.BEAT
    return [each.keep() for each in members]


def test_runs_are_divided_once_all_know_of_each_other(member):
    clock = [0.0]
    first, second, third = (member(clock) for _ in range(3))
    first.keep()
    assert first.takes
    assert first.leads
    second.keep()
    third.keep()
    assert not second.takes, "the others do not know of it"
    assert second.claim(RUNS) == frozenset()
    for _ in range(3):
        look(first, second, third, clock=clock)
    shares = [each.claim(RUNS) for each in (first, second, third)]
    assert sorted(run for share in shares for run in share) == RUNS
    assert all(len(share) > len(RUNS) / 6 for share in shares)
    assert [each.leads for each in (first, second, third)].count(True) == 1
    third.leave()
    assert look(first, second, clock=clock) == [True, True]
    after = [each.claim(RUNS) for each in (first, second)]
    assert sorted(run for share in after for run in share) == RUNS
    assert shares[0] <= after[0]
    assert shares[1] <= after[1], "a run moves only from the one that has gone"


def test_one_that_was_stopped_comes_anew(member, monkeypatch):
    """Others took its runs meanwhile, and it takes none until they know of it again."""
    clock = [0.0]
    first, second = member(clock), member(clock)
    for _ in range(4):
        look(first, second, clock=clock)
    assert second.takes
    monkeypatch.setattr(workers, "WORKER_AWAY", 1.0)
    monkeypatch.setattr(workers, "BEAT", 0.5)
    noticed = []
    for _ in range(5):  # by the server's clock, too
        time.sleep(0.5)
        noticed += look(first, clock=clock)
    assert noticed.count(True) == 1
    assert first.claim(RUNS) == frozenset(RUNS)
    assert second.claim(RUNS) == frozenset()
    assert not second.takes


async def test_one_command_after_another_does_the_work_of_all(store, url):
    """The second one does not wait for the first, which has ended: it leads, too."""
    for number in (1, 2):
        write(store, invoice_run(number))
        with Store.open(url) as shared:
            one = Worker(shared, Judge(JudgeConfig()), WorkerConfig(run_quiet_seconds=0.001))
            assert await one.drain_once() == 1
        rows = store.query("SELECT count() AS n FROM mast_pattern_runs FINAL")
        assert rows == [{"n": number}]


@pytest.mark.parametrize("command", [False, True])
async def test_a_worker_that_others_do_not_know_yet_takes_no_run(store, url, member, command):
    """Another one would judge it as well; a command judges it at once."""
    member([0.0]).keep()
    write(store, invoice_run(1))
    with Store.open(url) as shared:
        one = Worker(shared, Judge(JudgeConfig()), WorkerConfig(run_quiet_seconds=0.001))
        assert await one._cycle(all_at_once=command) == command
        await asyncio.gather(*one._in_flight.values())
    assert len(states(store)) == command


def test_an_embedded_store_has_one_worker(store):
    alone = Workers(store, tuple)
    assert not alone.keep()
    assert alone.takes
    assert alone.leads
    assert alone.claim(RUNS) == frozenset(RUNS)
    alone.leave()
    assert store.query("SELECT count() AS n FROM mast_workers") == [{"n": 0}]


@contextmanager
def three_workers(url):
    """Three workers in processes of their own, and how many readings they have asked for."""
    script = JudgeScript(dict(INVOICES))

    def slow(request):
        time.sleep(0.2)
        return script(request)

    with ScriptedLLM(slow) as server:
        processes = [
            subprocess.Popen([sys.executable, PROGRAM, url, server.url], stdout=subprocess.PIPE)
            for _ in range(3)
        ]
        try:
            for each in processes:
                assert each.stdout.readline() == b"ready\n"
            yield processes, lambda: script.asked.count("read")
        finally:
            for each in processes:
                each.kill()
                each.wait()


def wait_for(condition, pause=0.05):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(pause)


def final(store):
    (row,) = store.query("SELECT countIf(Method != 'reading') AS n FROM mast_latest_verdicts")
    return row["n"]


def states(store):
    """The number of states of each run that have a verdict."""
    sql = "SELECT TraceId, uniqExact(Fingerprint) AS States FROM mast_verdicts GROUP BY 1"
    return [row["States"] for row in store.query(sql)]


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_two_of_three_are_killed_and_one_is_stopped(store, url, seed):
    """Readings are at most the runs and those that were going on at the kills or the stop."""
    chance = random.Random(seed)
    with three_workers(url) as (processes, readings):
        chance.shuffle(processes)
        write(store, *(invoice_run(number) for number in range(1, 25)))
        wait_for(lambda: readings() > chance.randint(1, 6))
        processes[0].kill()
        processes[1].send_signal(signal.SIGSTOP)
        write(store, *(invoice_run(number) for number in range(25, 49)))
        time.sleep(chance.uniform(7, 9))  # longer than it takes to be taken for dead
        processes[1].send_signal(signal.SIGCONT)
        time.sleep(chance.uniform(0, 3))
        processes[2].kill()
        # A look takes the database from the workers.
        wait_for(lambda: final(store) == 48, pause=0.5)
    assert states(store) == [1] * 48
    assert readings() <= 48 + 3 * 2


@pytest.mark.long
@pytest.mark.end_to_end
@pytest.mark.parametrize("seed", [1, 2])
def test_the_server_is_killed_and_stopped_under_three_workers(tmp_path, seed):
    """They wait for it: each run has one verdict, and a reading at most is lost for each call that was going on."""
    chance = random.Random(seed)
    database = CollectorProcess(tmp_path / "database", database_only=True)
    database.start()
    try:
        with Store.open(database.url()) as store, three_workers(database.url()) as (_, readings):
            for part in range(3):
                numbers = range(1 + 16 * part, 17 + 16 * part)
                write(store, *map(invoice_run, numbers))
                known = readings()
                wait_for(lambda known=known: readings() > known + chance.randint(0, 4))
                if part == 1:
                    database.signal(signal.SIGSTOP)
                    time.sleep(chance.uniform(1, 9))
                    database.signal(signal.SIGCONT)
                else:
                    database.kill()
                    time.sleep(chance.uniform(1, 9))
                    database.start()
            wait_for(lambda: final(store) == 48, pause=0.5)
            assert states(store) == [1] * 48
            assert readings() <= 48 + 3 * 3 * 2
    finally:
        database.close()
