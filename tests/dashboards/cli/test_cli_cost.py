"""`mast-trace cost` on a store with two priced models and one that nobody knows."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.cost_words import cost_words

if TYPE_CHECKING:
    from pathlib import Path

    from fixture_types import Capture, Patch

RUN = "ab" * 16
MODELS = {"small-1": 1000, "gpt-4o-mini": 2_000_000, "nobody-knows": 7}


@pytest.fixture
def url(tmp_path: Path, monkeypatch: Patch) -> str:
    monkeypatch.setenv("MAST_TRACE_OWN_PRICES", '{"small-1": {"input": 1, "output": 2}}')
    url = f"chdb://{tmp_path / 'data'}"
    with Store.open(url) as store:
        migrate(store)
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
        store.insert("otel_traces", rows)
    return url


def test_costs_are_shown_and_the_unknown_is_named(url: str, capsys: Capture) -> None:
    assert run(["cost", RUN[:6], "--by", "model", "--by", "tool", "--url", url]) == 0
    shown = capsys.readouterr()
    out = " ".join(shown.out.split())
    assert "cost $0.301 and 1 call of unknown price" in out
    assert "nobody-knows unknown" in out
    assert "gpt-4o-mini $0.3" in out
    assert "no price is known of nobody-knows" in " ".join(shown.err.split())


def test_a_part_without_costs_is_a_sentence(url: str, capsys: Capture) -> None:
    assert run(["cost", "--by", "tool", "--by", "mode", "--url", url]) == 0
    out = capsys.readouterr().out
    assert "tool: no agent has run a tool after a model call." in out
    assert "mode: no run shows a failure mode." in out
    assert "TOKENS" not in out


def test_json_has_no_price_where_none_is_known(url: str, capsys: Capture) -> None:
    assert run(["cost", "--json", "--by", "model", "--url", url]) == 0
    found = json.loads(capsys.readouterr().out)
    costs = {row["Key"]: row["Cost"] for row in found["by_model"]}
    assert costs == {"small-1": 0.001, "gpt-4o-mini": 0.3, "nobody-knows": None}
    assert found["total"]["UnpricedModels"] == ["nobody-knows"]


def test_a_store_without_calls_says_so(tmp_path: Path, capsys: Capture) -> None:
    url = f"chdb://{tmp_path / 'empty'}"
    assert run(["migrate", "--url", url]) == 0
    assert run(["cost", "--url", url]) == 0
    assert "No model calls with a number of tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cost", "unpriced", "words"),
    [
        (None, 3, "unknown"),
        (None, 0, "$0"),
        (0.0, 0, "$0"),
        (0.0, 2, "$0 and 2 calls of unknown price"),
        (1234.5, 0, "$1,234.50"),
        (0.00042, 1, "$0.00042 and 1 call of unknown price"),
        (0.0000001, 0, "less than $0.000001"),
    ],
)
def test_costs_in_words(cost: float | None, unpriced: int, words: str) -> None:
    assert cost_words(cost, unpriced) == words
