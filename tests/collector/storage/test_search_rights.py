"""Texts are found by each user who may read them, whatever settings and system tables that user is refused."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from endpoint_server import PASSWORD, WRITE_TOKEN, serve
from otlp_requests import agent_span, request

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP, runner
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.search_index import (
    SETTINGS,
    add_search_index,
    drop_search_index,
    has_search_index,
    narrowing,
)
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.mcp_server.reading import StoreReading
from mast_trace_dashboards.plugins import named_queries
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.finding.run_list import RunList
from mast_trace_dashboards.web.finding.text_search import TextSearch

TEXT = "overcharged"
TRACE = "1" * 32


def fill(store: Store) -> bool:
    """Store one run that has the text, under an index where there may be one; return whether there is."""
    try:
        add_search_index(store)
    except ConfigurationError:
        indexed = False
    else:
        indexed = True
    said = agent_span(1, trace=TRACE)
    said.attributes.add(key="gen_ai.output.messages").value.string_value = f"You {TEXT} me."
    SpanWriter(store).write([request(said)], token="t")
    return indexed


def found(store: Store) -> list[int]:
    """Return how many runs each search finds."""
    filters = Filters.of({"text": TEXT, "since": "9000d"})
    search = TextSearch(store, filters, of_project=False)
    return [
        len(QUERIES["search"].run(store, text=TEXT)),
        len(QUERIES["search"].run(store, text=TEXT, **narrowing(TEXT))),
        len(StoreReading(store, idle=60.0).search(TEXT, "", 10)["runs"]),
        len(search.hits().hits),
        search.count().runs,
        len(RunList(store, idle=60.0).page(filters).rows),
    ]


def test_the_owner_and_a_writer_find_it(store: Store) -> None:
    indexed = fill(store)
    assert found(store) == [1] * 6
    assert has_search_index(store) == indexed
    drop_search_index(store)
    assert found(store) == [1] * 6
    assert not has_search_index(store)


def test_a_reader_of_our_own_address_finds_it(embedded: Store, endpoint: str) -> None:
    """Neither the setting nor the list of indexes is open to readers."""
    fill(embedded)
    with Store.open(f"http://reader:{quote(PASSWORD)}@{endpoint}") as reader:
        with pytest.raises(StorageError, match="optimize_functions_to_subcolumns is not allowed"):
            reader.query("SELECT 1", settings=SETTINGS)
        assert found(reader) == [1] * 6
        assert not has_search_index(reader)
        # All other queries are checked by the names in them alone.
        for query in named_queries().values():
            reader.query(f"EXPLAIN AST {query.sql}", query.values())


def test_a_user_without_settings_finds_it(embedded: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile of the reader in our examples is `readonly`."""
    indexed = fill(embedded)
    known = runner._known_settings
    monkeypatch.setattr(runner, "_known_settings", lambda store: {**known(store), "readonly": "1"})
    app = ClickHouseHTTP(embedded, password=PASSWORD, write_token=WRITE_TOKEN)
    with serve(app) as address, Store.open(f"http://tests:{WRITE_TOKEN}@{address}") as reader:
        with pytest.raises(StorageError, match="readonly"):
            reader.query("SELECT 1", settings=SETTINGS)
        assert found(reader) == [1] * 6
        assert has_search_index(reader) == indexed
    app.close()


def test_an_outage_is_no_missing_index(embedded: Store) -> None:
    with Store.open(embedded.url) as other:
        pass
    with pytest.raises(StorageError, match="closed"):
        has_search_index(other)
