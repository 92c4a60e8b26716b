"""A migrated store for every test."""

import pytest
from stores import new_store


@pytest.fixture(autouse=True)
def _no_model_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MAST_TRACE_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path):
    """A store with all tables."""
    with new_store(tmp_path / "data") as opened:
        yield opened
