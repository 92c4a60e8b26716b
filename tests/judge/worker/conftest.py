"""Workers on the test's store, without a model of the developer."""

import pytest

from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.worker import Worker


@pytest.fixture(autouse=True)
def no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def worker(store):
    """Make workers on the store that take a run as finished at once."""

    def make(judge=None, on_verdicts=None, **settings):
        judge = judge or Judge(JudgeConfig(), ledger=StoreLedger(store))
        config = WorkerConfig(
            **{"run_quiet_seconds": 0.001, "worker_poll_seconds": 0.05} | settings
        )
        return Worker(store, judge, config, on_verdicts=on_verdicts)

    return make
