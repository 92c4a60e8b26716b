"""A worker in a process of its own, to be killed.

Usage: worker_process.py DATABASE_FOLDER|DATABASE_URL [MODEL_URL]

It judges all finished runs of a folder. Workers of an address go on, and notice quickly when one comes or goes.
"""

import asyncio
import sys

from mast_trace_collector.storage import Store, runs
from mast_trace_judge import worker as worker_module
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import workers
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.worker import Worker


async def main() -> None:
    """Judge everything that is finished, then end, or go on."""
    place, *url = sys.argv[1:]
    shared = place.startswith("http")
    if shared:
        workers.BEAT, workers.WORKER_AWAY, workers._SETTLED = 0.5, 5.0, 1.5
        runs.WORKER_AWAY, worker_module.BEAT = 5.0, 0.5
    asked = {"judge_model": "scripted", "judge_candidates": 1}
    model = {**asked, "judge_base_url": url[0]} if url else {}
    with Store.open(place if shared else f"chdb://{place}") as store:
        judge = Judge(JudgeConfig(**model), ledger=StoreLedger(store))
        config = WorkerConfig(
            run_quiet_seconds=0.001, worker_batch=20, worker_concurrency=2 if shared else 1
        )
        worker = Worker(store, judge, config)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if shared:
            await worker.run()
        while await worker.drain_once():
            sys.stdout.write(f"{worker.status.judged}\n")
            sys.stdout.flush()
        await judge.aclose()


asyncio.run(main())
