"""The index of texts: a search with it finds exactly what a search without it finds."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_collector.storage.removal.erasure import erase, of_runs
from mast_trace_collector.storage.search_index import (
    OLDEST,
    SETTINGS,
    add_search_index,
    drop_search_index,
    has_search_index,
    narrowing,
)
from mast_trace_dashboards.mcp_server.reading import StoreReading
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.finding import run_list, text_search
from mast_trace_dashboards.web.finding.run_list import RunList
from mast_trace_dashboards.web.finding.text_search import TextSearch

NOW = datetime.now(timezone.utc)
# Without the Kelvin sign: whether the engine itself takes it for a k depends on the rows beside it.
WORDS = (
    'overcharged Refund policy_v2 100%_sure INV-00123 it\'s "quoted" back\\slash Über STRASSE straße İstanbul '
    "istanbul kelvin Kelvin \u017fchloss schloss \u043f\u0440\u0438\u0432\u0435\u0442 \u041f\u0420\u0418\u0412\u0415\u0422 日本語 日本 \u023aBCDE \u2c65bcde naïve cafe\u0301 "
    "a b to 42 0042 f00dcafe F00DCAFE under_score per%cent tab\ttab 🙂smile new\nline x" + "y" * 300
).split(" ")
KEYS = {
    "send_message": "mast.message.content",
    "execute_tool": "gen_ai.tool.call.result",
    "chat": "gen_ai.output.messages",
}


def spans(dice: random.Random, numbers: range) -> list[dict[str, Any]]:
    """Spans of one run each, with words in every kind of text."""
    made = []
    for number in numbers:
        operation, key = dice.choice(list(KEYS.items()))
        text = dice.choice([" ", "", ", ", "-", "\n"]).join(dice.choices(WORDS, k=6))
        attributes = {"gen_ai.operation.name": operation, key: text}
        if operation == "execute_tool":
            attributes["gen_ai.tool.call.arguments"] = dice.choice(WORDS)
        made.append(
            {
                "Timestamp": NOW - timedelta(minutes=number % 600),
                "TraceId": f"{dice.getrandbits(128):032x}",
                "SpanId": f"{number:016x}",
                "ResourceAttributes": {"mast.project": f"p{number % 2}"},
                "SpanAttributes": attributes,
            }
        )
    return made


def texts(dice: random.Random, stored: list[dict[str, Any]]) -> list[str]:
    """Parts of stored texts, in another case at times, and texts that nothing holds."""
    found = [*WORDS, "nothing has this", "overchargedx", "%", "_", "\\", "'", "\\%", "\\N"]
    for _ in range(80):
        text = " ".join(str(each) for each in dice.choice(stored)["SpanAttributes"].values())
        start = dice.randrange(len(text))
        part = text[start : start + dice.randint(1, 30)]
        found.append(dice.choice([part, part.upper(), part.lower(), part.swapcase()]))
    return [text for text in found if text.strip()]


def answers(store: Store, text: str, **narrowed: str) -> list[Any]:
    """Return what the three named queries find."""
    hits = QUERIES["search_hits"].run(store, text=text, limit=100_000, **narrowed)
    count = QUERIES["search_count"].run(store, text=text, **narrowed)
    return [hits, count, QUERIES["search"].run(store, text=text, limit=100_000, **narrowed)]


@pytest.fixture
def indexed(store: Store) -> Store:
    """A store with an index, if its ClickHouse can have one."""
    if tuple(int(part) for part in store_version(store).split(".")[:2]) < OLDEST:
        with pytest.raises(ConfigurationError, match=r"takes 26\.2 or newer"):
            add_search_index(store)
        assert not has_search_index(store)
    else:
        add_search_index(store)
    return store


def test_random_texts_have_the_same_hits_with_the_index_as_without(indexed: Store) -> None:
    """In parts with the index, of before it, merged and with deleted runs; the patterns alone change nothing either."""
    dice = random.Random(4)
    had = has_search_index(indexed)
    drop_search_index(indexed)
    stored = spans(dice, range(300))
    indexed.insert("otel_traces", stored)
    if had:
        add_search_index(indexed)
    for first in (300, 600):
        more = spans(dice, range(first, first + 300))
        indexed.insert("otel_traces", more)
        stored += more
    asked = texts(dice, stored)
    narrowed = [text for text in asked if narrowing(text)]
    assert len(narrowed) > 50
    for text in dice.sample(narrowed, 36):
        assert answers(indexed, text, **narrowing(text)) == answers(indexed, text), text
    erase(indexed, *of_runs(indexed, [span["TraceId"] for span in stored[:400]]))
    indexed.command("OPTIMIZE TABLE otel_traces FINAL")
    some = 0
    for text in dice.sample(narrowed, 20):
        found = answers(indexed, text, **narrowing(text))
        assert found == answers(indexed, text), text
        some += bool(found[0])
    assert some > 5


def test_a_rare_text_reads_few_rows(indexed: Store) -> None:
    if not has_search_index(indexed):
        return
    dice = random.Random(5)
    stored = spans(dice, range(6000))
    stored[3000]["SpanAttributes"]["mast.message.content"] = "one zwiebelkuchen here"
    indexed.insert("otel_traces", stored)
    query = QUERIES["search_hits"]
    for text in ("one Zwiebelkuchen here", "wiebelkuch"):
        plan = indexed.query(
            f"EXPLAIN indexes = 1 {query.sql}",
            query.values(text=text, **narrowing(text)),
            settings=query.wishes,
        )
        lines = [row["explain"].strip() for row in plan]
        skipped = lines[lines.index("Name: idx_texts") :]
        granules = next(line for line in skipped if line.startswith("Granules"))
        read, _, of_all = granules.removeprefix("Granules: ").partition("/")
        assert int(of_all) >= 5
        if " " in text or not store_version(indexed).startswith("26.3."):
            assert read == "1"


def store_version(store: Store) -> str:
    """Return the engine's version: 26.3 does not look up parts of words in the index."""
    return str(store.query("SELECT version() AS version")[0]["version"])


def test_pages_use_it_in_projects_too(indexed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(6)
    indexed.insert("otel_traces", spans(dice, range(200)))
    monkeypatch.setattr(text_search, "_SMALL_SHARE", "8")
    monkeypatch.setattr(text_search, "READ_WHOLE", 0)
    monkeypatch.setattr(text_search, "COUNTED_SECONDS", 600.0)
    with store_of_project(indexed, "p1") as ours:
        assert has_search_index(ours) == has_search_index(indexed)
        for text in ("overcharged", "refund", "kelvin", "nothing of it"):
            filters = Filters.of({"text": text, "since": "20h"})
            hits = TextSearch(ours, filters, of_project=True).hits().hits
            counted = TextSearch(ours, filters, of_project=True).count()
            plain = QUERIES["search_hits"].run(ours, text=text, limit=1000)
            assert len(hits) == min(len(plain), text_search.MOST_HITS)
            assert {hit.span for hit in hits} <= {row["SpanId"] for row in plain}
            assert counted.spans == len(plain)


def test_every_search_asks_the_index(indexed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of runs, the page of the search and assistants."""
    indexed.insert("otel_traces", spans(random.Random(7), range(20)))
    asked: list[Any] = []
    original = Store.query

    def query(self: Store, sql: str, params: Any = None, **more: Any) -> Any:
        if params and "phrase" in params:
            asked.append((params["word"], params["phrase"], dict(more["wishes"])))
        return original(self, sql, params, **more)

    monkeypatch.setattr(Store, "query", query)
    filters = Filters.of({"text": "Refund"})
    RunList(indexed, idle=60.0).page(filters)
    TextSearch(indexed, filters, of_project=False).count()
    StoreReading(indexed, idle=60.0).search("Refund", "", 5)
    with_index = ("%refund%", "%refund%", SETTINGS)
    assert len(asked) == 22  # each of the five runs is asked for its passage
    assert set(map(str, asked)) == {str(with_index if has_search_index(indexed) else ("", "", {}))}


def test_a_list_with_a_text_ends_in_time(indexed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer runs with the text do not use up the number of runs that are looked at."""
    dice = random.Random(8)
    indexed.insert("otel_traces", spans(dice, range(60)))
    every = RunList(indexed, idle=60.0).page(Filters.of({"text": "refund"}), 1000).rows
    middle = every[len(every) // 2]["Start"]
    older = [row["TraceId"] for row in every if row["Start"] < middle]
    monkeypatch.setattr(run_list, "MOST_CHOSEN", len(older))
    found = RunList(indexed, idle=60.0).page(
        Filters.of({"text": "refund", "until": middle.isoformat()}), 1000
    )
    assert [row["TraceId"] for row in found.rows] == older
    assert not found.note
    assert older


@pytest.mark.parametrize(
    ("text", "word", "phrase"),
    [
        ("INV-00123", "%00123%", "%inv-00123%"),
        ("100%_SURE\\", "%sure%", "%100\\%\\_sure\\\\%"),
        ("Überraschung", "%berraschung%", ""),
    ],
)
def test_patterns(text: str, word: str, phrase: str) -> None:
    assert narrowing(text) == {"word": word, "phrase": phrase}


@pytest.mark.parametrize(
    "text", ["abc", "a-b-c-d", "日本語", "\u212aelvins", "İstanbul", "\u023abcdef", ""]
)
def test_texts_that_no_index_can_narrow(text: str) -> None:
    assert narrowing(text) == {}
