"""An erasure and a worker meet at every statement of each other, and nothing about the run is left."""

import asyncio

import pytest
from judge.llm.scripted_judge import JudgeScript, config_for
from judge.worker.stored_runs import invoice_run, write
from judge.worker.test_worker_model import INVOICES
from scripted_llm import ScriptedLLM

from mast_trace_collector.storage import Store
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.removal.sweep import sweep
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.ledger import StoreLedger

GONE, STAYS = f"{1:032x}", f"{2:032x}"
_STATEMENTS = ("query", "command", "insert", "insert_columns")


def left(store):
    """Return the tables with a row about the erased run."""
    tables = store.query(
        "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'TraceId' "
        "AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() "
        "AND engine LIKE '%MergeTree') AND table != 'mast_tombstones'"
    )
    counts = " UNION ALL ".join(
        f"SELECT '{row['table']}' AS name FROM {row['table']} WHERE TraceId = '{GONE}'"
        for row in tables
    )
    return {row["name"] for row in store.query(counts)}


def at_statement(monkeypatch, number, action):
    """Do something before a statement of a store; return what counts the statements."""
    seen = []

    def counted(name):
        original = getattr(Store, name)

        def call(self, *given, **options):
            seen.append(name)
            if len(seen) == number:
                action()
            return original(self, *given, **options)

        return call

    for name in _STATEMENTS:
        monkeypatch.setattr(Store, name, counted(name))
    return seen


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16])
async def test_a_run_is_erased_before_a_statement_of_the_worker(store, worker, monkeypatch, number):
    write(store, invoice_run(1), invoice_run(2))
    told = []
    one = worker(on_verdicts=told.extend)

    def erase():
        erasure.erase(store, *erasure.of_runs(store, [GONE]))

    seen = at_statement(monkeypatch, number, erase)
    await one.drain_once()
    monkeypatch.undo()
    if len(seen) < number:
        erase()
    await one.drain_once()
    # Only what was on its way to the database when the run was erased is left for the sweep.
    sweep(store)
    assert left(store) == set()
    assert await one.drain_once() == 0
    assert verdict_store.load_latest(store, STAYS) is not None
    assert one.status.judged == len({verdict.trace_id for verdict in told})


@pytest.mark.parametrize("number", [1, 4, 10, 20, 30, 40, 50, 60])
def test_a_worker_judges_before_a_statement_of_an_erasure(store, worker, monkeypatch, number):
    write(store, invoice_run(1), invoice_run(2))
    at_statement(monkeypatch, number, lambda: asyncio.run(worker().drain_once()))
    erasure.erase(store, *erasure.of_runs(store, [GONE]))
    monkeypatch.undo()
    assert left(store) == set(), "the erasure itself looks for what came meanwhile"
    asyncio.run(worker().drain_once())
    assert left(store) == set()
    assert verdict_store.load_latest(store, STAYS) is not None


@pytest.mark.parametrize("reads", [False, True])
async def test_a_verdict_that_is_ready_is_dropped_with_its_run(store, worker, monkeypatch, reads):
    """No model reads it then."""
    write(store, invoice_run(1), invoice_run(2))
    told = []
    original = verdict_store.save

    def late(of, verdicts):
        erasure.erase(store, *erasure.of_runs(store, [GONE]))
        return original(of, verdicts)

    monkeypatch.setattr(verdict_store, "save", late)
    with ScriptedLLM(JudgeScript(dict(INVOICES))) as server:
        judge = Judge(config_for(server) if reads else JudgeConfig(), ledger=StoreLedger(store))
        assert await worker(judge, told.extend).drain_once() == 1
        await judge.aclose()
    assert len(server.requests) == reads
    assert {verdict.trace_id for verdict in told} == {STAYS}
    assert left(store) == set()
