"""A worker in a process of its own, to be killed.

Usage: worker_process.py DATABASE_FOLDER [MODEL_URL]
"""

import asyncio
import sys

from mast_trace_collector.storage import Store
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.worker import Worker


async def main() -> None:
    """Judge everything that is finished, then end."""
    folder, *url = sys.argv[1:]
    asked = {"judge_model": "scripted", "judge_candidates": 1}
    model = {**asked, "judge_base_url": url[0]} if url else {}
    with Store.open(f"chdb://{folder}") as store:
        judge = Judge(JudgeConfig(**model), ledger=StoreLedger(store))
        config = WorkerConfig(run_quiet_seconds=0.001, worker_batch=20, worker_concurrency=1)
        worker = Worker(store, judge, config)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while await worker.drain_once():
            sys.stdout.write(f"{worker.status.judged}\n")
            sys.stdout.flush()
        await judge.aclose()


asyncio.run(main())
