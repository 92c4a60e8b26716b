"""Judging again on request."""

import datetime as dt

from judge.llm.scripted_judge import JudgeScript, config_for
from judge.worker.stored_runs import invoice_run, write
from judge.worker.test_worker_model import INVOICES
from scripted_llm import Reply, ScriptedLLM

from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.study.rejudge import Selection, diff_versions, rejudge


async def again(store, judge, selection=None):
    verdicts = [verdict async for verdict in rejudge(store, judge, selection)]
    await judge.aclose()
    return verdicts


async def test_another_judge_judges_everything_once(store, worker):
    write(store, *(invoice_run(number) for number in range(1, 6)))
    local = Judge(JudgeConfig(), ledger=StoreLedger(store))
    await worker(local).drain_once()
    with ScriptedLLM(JudgeScript(dict(INVOICES))) as server:
        verdicts = await again(store, Judge(config_for(server), ledger=StoreLedger(store)))
        assert {verdict.method for verdict in verdicts} == {"fused"}
        asked = len(server.requests)
        assert await again(store, Judge(config_for(server), ledger=StoreLedger(store))) == []
        assert len(server.requests) == asked
    diff = diff_versions(store, local.version, verdicts[0].judge_version)
    assert (diff.compared, diff.gained) == (5, {"3.2": 5})


async def test_selects_by_time_version_and_project(store, worker):
    write(store, *(invoice_run(number) for number in range(1, 4)))
    old = Judge(JudgeConfig(), ledger=StoreLedger(store))
    await worker(old).drain_once()
    write(store, invoice_run(9))
    tomorrow = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)

    def newer():
        judge = Judge(JudgeConfig(), ledger=StoreLedger(store))
        judge.version = "newer"
        return judge

    assert await again(store, newer(), Selection(since=tomorrow)) == []
    assert await again(store, newer(), Selection(project="none")) == []
    assert len(await again(store, newer(), Selection(of_version=old.version))) == 3
    assert len(await again(store, newer())) == 1


async def test_tries_again_what_was_left_unscored(store, worker):
    write(store, invoice_run(1, outcome=""))
    script = JudgeScript({**INVOICES, "read": Reply(text="no JSON")})
    with ScriptedLLM(script) as server:
        config = config_for(server)
        judge = Judge(config, ledger=StoreLedger(store))
        await worker(judge).drain_once()
        await judge.aclose()
        assert verdict_store.load_latest(store, f"{1:032x}").status == "unscored"
        script.answers = dict(INVOICES)
        assert await again(store, Judge(config, ledger=StoreLedger(store))) == []
        retried = Judge(config, ledger=StoreLedger(store))
        (verdict,) = await again(store, retried, Selection(unscored=True))
    assert (verdict.status, verdict.method) == ("ok", "fused")
    assert verdict_store.load(store, f"{1:032x}") == [verdict]
