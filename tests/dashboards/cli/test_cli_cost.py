"""`mast-trace cost` on a store with two priced models and one that nobody knows."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.storage import Store
from mast_trace_dashboards.cost_words import cost_words

if TYPE_CHECKING:
    from conftest import CLI
    from fixture_types import Patch

RUN = "ab" * 16
MODELS = {"small-1": 1000, "gpt-4o-mini": 2_000_000, "nobody-knows": 7}


@pytest.fixture
def priced(empty: CLI, monkeypatch: Patch) -> CLI:
    monkeypatch.setenv("MAST_TRACE_OWN_PRICES", '{"small-1": {"input": 1, "output": 2}}')
    rows = [
        {
            "Timestamp": datetime(2026, 3, 1, 12, second, tzinfo=timezone.utc),
            "TraceId": RUN,
            "SpanId": f"{second:016x}",
            "SpanAttributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.agent.name": "writer",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": model,
                "gen_ai.usage.input_tokens": str(tokens),
            },
        }
        for second, (model, tokens) in enumerate(MODELS.items(), 1)
    ]
    with Store.open(empty.recorded.url) as store:
        store.insert("otel_traces", rows)
    return empty


def test_costs_are_shown_and_the_unknown_is_named(priced: CLI) -> None:
    status, shown, err = priced("cost", RUN[:6], "--by", "model", "--by", "tool")
    assert status == 0
    out = " ".join(shown.split())
    assert "cost $0.301 and 1 call of unknown price" in out
    assert "nobody-knows unknown" in out
    assert "gpt-4o-mini $0.3" in out
    assert "no price is known of nobody-knows" in " ".join(err.split())


def test_a_part_without_costs_is_a_sentence(priced: CLI) -> None:
    out = priced.out("cost", "--by", "tool", "--by", "mode")
    assert "tool: no agent has run a tool after a model call." in out
    assert "mode: no run shows a failure mode." in out
    assert "TOKENS" not in out


def test_json_has_no_price_where_none_is_known(priced: CLI) -> None:
    found = json.loads(priced.out("cost", "--json", "--by", "model"))
    costs = {row["Key"]: row["Cost"] for row in found["by_model"]}
    assert costs == {"small-1": 0.001, "gpt-4o-mini": 0.3, "nobody-knows": None}
    assert found["total"]["UnpricedModels"] == ["nobody-knows"]


def test_a_store_without_calls_says_so(empty: CLI) -> None:
    assert "No model calls with a number of tokens" in empty.err("cost", status=0)


@pytest.mark.parametrize(
    ("cost", "unpriced", "words"),
    [
        (None, 3, "unknown"),
        (None, 0, "$0"),
        (0.0, 0, "$0"),
        (0.0, 2, "$0 and 2 calls of unknown price"),
        (1234.5, 0, "$1,234.50"),
        (0.00042, 1, "$0.00042 and 1 call of unknown price"),
        (0.0123456, 0, "$0.0123"),
        (0.9999, 0, "$1"),
        (0.0000001, 0, "less than $0.000001"),
    ],
)
def test_costs_in_words(cost: float | None, unpriced: int, words: str) -> None:
    assert cost_words(cost, unpriced) == words
