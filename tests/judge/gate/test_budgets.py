"""Budgets on runs whose model is a scripted server, asked by the real client, and on their replays."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from scripted_llm import Reply, ScriptedLLM

import mast_trace
from mast_trace.testing import capture_spans, replayed
from mast_trace.trajectory import SpanRecord, to_dict
from mast_trace_judge.gate.assertions import priced_calls
from mast_trace_judge.pricing import OwnPrice
from mast_trace_judge.testing import assert_budget, assert_outcome

openai = pytest.importorskip("openai", reason="needs the openai client")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace.testing import CapturedSpans

ADDRESS = "http://127.0.0.1:9/v1"
"""An address without a model: a replayed run asks nobody."""


def capital(address: str, model: str = "gpt-4o-mini", times: int = 2) -> None:
    with mast_trace.run("capital", input="Capital?"), mast_trace.agent("geographer"):
        client = openai.OpenAI(base_url=address, api_key="none", max_retries=0)
        for _ in range(times):
            client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "Capital?"}]
            )
        mast_trace.record_outcome(True)


@pytest.fixture
def address() -> Iterator[str]:
    with ScriptedLLM(lambda _: Reply("Paris. " * 40, delay=0.05)) as serving:
        yield serving.url


@pytest.fixture
def asked(address: str) -> CapturedSpans:
    with capture_spans(frameworks=["openai"]) as spans:
        capital(address)
    return spans


def test_each_limit_is_kept_at_the_measured_value_and_broken_below(asked: CapturedSpans) -> None:
    run = asked.trajectory()
    used = run.input_tokens + run.output_tokens
    assert used > 100
    assert_budget(asked, tokens=used, model_calls=2, model_seconds=60, steps=len(run.steps))
    for limits, said in (
        ({"tokens": used - 1}, f"{used} tokens"),
        ({"model_calls": 1}, "2 model calls, more than 1"),
        ({"steps": len(run.steps) - 1}, f"{len(run.steps)} steps"),
        ({"model_seconds": 0.09}, "s of model time in 2 calls, more than 0.09 s"),
    ):
        with pytest.raises(AssertionError, match=said):
            assert_budget(asked, **limits)


def test_cost_is_by_the_price_table(asked: CapturedSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = {"gpt-4o-mini": {"input": 1, "output": 2}, "scripted": {"input": 1, "output": 2}}
    monkeypatch.setenv("MAST_TRACE_OWN_PRICES", json.dumps(prices))
    run = asked.trajectory()
    cost = (run.input_tokens + 2 * run.output_tokens) / 1e6
    assert_budget(asked, cost_usd=cost)
    with pytest.raises(AssertionError, match=r"dearest calls: geographer on .* \$0\.0"):
        assert_budget(asked, cost_usd=cost - 1e-6)


def test_a_model_without_a_price_is_no_pass(address: str) -> None:
    with capture_spans(frameworks=["openai"]) as spans:
        capital(address, model="nobody-knows")
    with pytest.raises(AssertionError, match=r"no price is known of nobody-knows"):
        assert_budget(spans, cost_usd=100)


def test_what_was_not_measured_is_no_pass(captured_spans: CapturedSpans) -> None:
    with mast_trace.run("r"), mast_trace.agent("a"):
        mast_trace.message("a", "user", "hello")
    for limits in ({"tokens": 10}, {"cost_usd": 10}, {"model_seconds": 10}):
        with pytest.raises(AssertionError, match="says nothing"):
            assert_budget(captured_spans, **limits)
    with pytest.raises(TypeError, match="needs a limit"):
        assert_budget(captured_spans)
    with pytest.raises(TypeError, match="needs the spans"):
        assert_budget(captured_spans.trajectory(), cost_usd=1)


@pytest.mark.parametrize("kept", [True, False])
def test_a_replay_has_tokens_and_no_time(
    asked: CapturedSpans, tmp_path: Path, *, kept: bool
) -> None:
    """A file and a trajectory are replayed alike."""
    path = tmp_path / "capital.jsonl"
    path.write_text(json.dumps({"trajectory": to_dict(asked.trajectory())}), encoding="utf-8")
    run = path if kept else asked.trajectory()
    with replayed(run, frameworks=["openai"]) as replay:
        capital(ADDRESS)
    replay.assert_identical()
    assert_outcome(replay, "success")
    assert_budget(replay, model_calls=2)
    with pytest.raises(TypeError, match="asks no model"):
        assert_budget(replay, model_seconds=10)


def test_a_call_is_priced_by_each_kind_of_its_tokens_once() -> None:
    """Cached input has prices of its own; a span of another tool for the same call, and one without tokens, add nothing."""

    def span(number: int, **usage: int) -> SpanRecord:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.provider.name": "here" if number < 3 else "there",
            "mast.framework": "langgraph",
            **{f"gen_ai.usage.{name.replace('__', '.')}": value for name, value in usage.items()},
        }
        return SpanRecord(
            "a" * 32,
            f"{number:016x}",
            "",
            "chat m",
            number,
            number + 1,
            attributes,
            "Unset",
            "",
            "s",
        )

    used = {"input_tokens": 1000, "output_tokens": 10}
    spans = [
        span(1, **used),
        span(2, **used, cache_read__input_tokens=600, cache_creation__input_tokens=300),
        span(3, **used),
        span(4, output_tokens=10),
        span(5, input_tokens=1000),
        span(6),
    ]
    theirs = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 1000}
    spans.append(replace(spans[0], span_id="f" * 16, parent_span_id=f"{1:016x}", attributes=theirs))
    own = {
        "here/m": OwnPrice(input=Decimal(2), output=Decimal(5), cache_read=Decimal(1), cache_write=Decimal(3)),
        "m": OwnPrice(input=Decimal(4), output=Decimal(7)),
    }  # fmt: skip
    found = [each.cost and each.cost * 1_000_000 for each in priced_calls(spans, own)]
    assert found == [2050, 100 * 2 + 600 * 1 + 300 * 3 + 50, 4070, 70, 4000]
