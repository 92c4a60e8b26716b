"""A migrated store for every test, and workers on it."""

import pytest
from stores import new_store

from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.ledger import StoreLedger
from mast_trace_judge.worker import Worker


@pytest.fixture(autouse=True)
def _no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path):
    """A store with all tables."""
    with new_store(tmp_path / "data") as opened:
        yield opened


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
