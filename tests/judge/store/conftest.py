"""A migrated store for every test."""

import pytest

from mast_trace_collector.storage import Store, migrate


@pytest.fixture(autouse=True)
def _no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path):
    """A store in the embedded engine, with all tables."""
    with Store.open(f"chdb://{tmp_path}/data") as opened:
        migrate(opened)
        yield opened
