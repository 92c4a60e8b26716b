"""A migrated store for every test, and judged runs on it."""

import pytest
from stores import Tables, new_store


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
