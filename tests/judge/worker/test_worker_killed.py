"""A worker that is killed in the middle loses nothing and pays for nothing twice."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from judge.llm.scripted_judge import JudgeScript
from judge.worker.stored_runs import invoice_run, write
from judge.worker.test_worker_model import INVOICES
from scripted_llm import Reply, ScriptedLLM
from stores import SERVER

from mast_trace_collector.storage import Store, migrate

PROGRAM = Path(__file__).with_name("worker_process.py")

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(bool(SERVER), reason="works on an embedded store of its own"),
]


def start(folder, *more):
    """Start a worker and wait until it has opened the database."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, folder, *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def prepare(folder, runs):
    with Store.open(f"chdb://{folder}") as store:
        migrate(store)
        write(store, *(invoice_run(number) for number in range(1, runs + 1)))


def rows(folder, sql):
    with Store.open(f"chdb://{folder}") as store:
        return store.query(sql)


def test_killed_between_batches_it_judges_the_rest(tmp_path):
    folder = tmp_path / "data"
    prepare(folder, 60)
    process = start(folder)
    assert process.stdout.readline().strip() == "20"
    process.kill()
    process.wait(30)
    # Once a run is judged twice, the table forgets one of its verdicts when it merges its parts: what
    # the second worker did is asked of itself.
    (found,) = rows(folder, "SELECT uniqExact(TraceId) AS Runs FROM mast_verdicts")
    assert 20 <= found["Runs"] < 60
    again = start(folder)
    *_, judged = again.stdout.read().split()
    assert again.wait(60) == 0
    assert int(judged) == 60 - found["Runs"]
    (found,) = rows(
        folder, "SELECT count() AS Rows, uniqExact(TraceId) AS Runs FROM mast_verdicts FINAL"
    )
    assert (found["Rows"], found["Runs"]) == (60, 60)


def test_killed_between_calls_it_repeats_only_the_call_in_flight(tmp_path):
    folder = tmp_path / "data"
    prepare(folder, 1)
    script, lock = JudgeScript(dict(INVOICES)), threading.Lock()
    hold, held, asked = threading.Event(), threading.Event(), []

    def holding(request):
        """Answer, but let the last question wait until the worker is gone."""
        reply = script(request)
        with lock:
            asked.append(script.asked[-1])
        if script.asked[-1] == "counterfactual" and not hold.is_set():
            held.set()
            hold.wait(30)
            return Reply(status=500)
        return reply

    with ScriptedLLM(holding) as server:
        process = start(folder, server.url)
        assert held.wait(60)
        before = list(asked)
        process.kill()
        process.wait(30)
        hold.set()
        again = start(folder, server.url)
        assert again.wait(60) == 0
        repeated = asked[len(before) :]
    assert before.count("read") == 1
    assert repeated == ["counterfactual"]
    assert len(rows(folder, "SELECT CallId FROM mast_judge_calls")) == len(before)
    (verdict,) = rows(folder, "SELECT Method, toString(Status) AS Status FROM mast_verdicts FINAL")
    assert verdict == {"Method": "fused", "Status": "ok"}
