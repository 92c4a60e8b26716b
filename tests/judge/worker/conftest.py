"""A migrated store for every test, and workers on it."""

import pytest
from stores import Tables, new_store

from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.worker import Worker


@pytest.fixture(autouse=True)
def _no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The module's store."""
    with new_store(tmp_path_factory.mktemp("store")) as opened:
        yield opened, Tables(opened, made=True)


@pytest.fixture
def store(tables):
    """A store with all tables, and nothing in them."""
    opened, made = tables
    made.renew()
    return opened


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
