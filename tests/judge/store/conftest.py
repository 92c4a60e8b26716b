"""A migrated store for every test."""

import pytest
from stores import Tables, new_store


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
