"""A run says which instrumentation sent it, and what its telemetry lacks, with the remedy."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from record import EXAMPLES
from test_examples import sent
from test_foreign import largest_trace

from mast_trace.trajectory import SpanRecord, Step, StepKind, Trajectory, read_trajectory
from mast_trace_dashboards.senders import LACKS, held, lacking

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = {"inputs", "answers", "results"}


def lacks(spans: list[SpanRecord]) -> tuple[set[str], str]:
    """The facts that are absent from a run, and the sentences about them."""
    run = read_trajectory(spans)
    absent = {fact for fact, is_held in held(run).items() if is_held is False}
    told = " ".join(lacking(run, {span.scope for span in spans if span.operation})).lower()
    assert {fact for fact in LACKS if LACKS[fact] in told} == absent
    return absent, told


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_run_whose_telemetry_is_whole_lacks_nothing(name: str) -> None:
    assert lacks(sent(f"{name}-posted")) == (set(), "")


@pytest.mark.parametrize(
    ("recording", "absent", "remedy"),
    [
        ("quiet/agno", TEXTS, "`openinference_hide_inputs`"),
        ("quiet/openai-agents", {*TEXTS, "tokens"}, "sensitive_data=true`"),
        ("google-adk", TEXTS, "content=span_only`"),
        ("autogen-agentchat", {"results"}, "`gen_ai.tool.call.result`"),
    ],
)
def test_a_run_without_texts_names_the_setting(
    recording: str, absent: set[str], remedy: str
) -> None:
    found, told = lacks(largest_trace(recording))
    assert found == absent
    assert remedy in told


def without(*names: str) -> Callable[[SpanRecord], SpanRecord | None]:
    def strip(span: SpanRecord) -> SpanRecord:
        kept = {k: v for k, v in span.attributes.items() if not k.startswith(names)}
        return dataclasses.replace(span, attributes=kept)

    return strip


@pytest.mark.parametrize(
    ("example", "change", "absent", "remedy"),
    [
        ("vercel-ai", without("ai.telemetry.functionId"), {"agents"}, "`experimental_telemetry"),
        ("llama-index", without("llm.token_count."), {"tokens"}, "include_usage"),
        (
            "dspy",
            lambda span: None if span.scope.endswith("litellm") else span,
            {"tokens"},
            "`openinference-instrumentation-litellm`",
        ),
        (
            "agno",
            lambda span: None if span.operation == "execute_tool" else span,
            {"tools"},
            "framework beside",
        ),
    ],
)
def test_a_fact_that_is_taken_away_is_missed(
    example: str,
    change: Callable[[SpanRecord], SpanRecord | None],
    absent: set[str],
    remedy: str,
) -> None:
    found, told = lacks([kept for span in sent(f"{example}-posted") if (kept := change(span))])
    assert found == absent
    assert remedy in told


@pytest.mark.parametrize("told", ["[REDACTED]", '[{"role": "user", "parts": [{"type": "text"}]}]'])
def test_what_stands_for_a_hidden_text_is_no_text(told: str) -> None:
    """Strands' word for it, and pydantic-ai's part without a content."""
    call = SpanRecord(
        *("0" * 32, "1" * 16, "", "chat", 1, 2),
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": told,
            "gen_ai.usage.input_tokens": 9,
        },
        scope="pydantic-ai",
    )
    assert lacks([call])[0] == {"agents", "inputs", "answers"}


def test_a_run_of_which_little_is_known_lacks_nothing_that_it_has_no_place_for() -> None:
    """A message alone: no model, no tool."""
    said = SpanRecord(
        *("0" * 32, "1" * 16, "", "send", 1, 2),
        {
            "gen_ai.operation.name": "send_message",
            "gen_ai.agent.name": "clerk",
            "mast.message.content": "Done.",
        },
        scope="mast_trace",
    )
    assert lacks([said]) == (set(), "")


def test_log_events_of_claude_code_name_their_own_settings() -> None:
    said = Step(0, StepKind.MESSAGE, "claude", "")
    run = Trajectory("0" * 32, (said,), framework="claude-code-events")
    (told,) = lacking(run, ["mast_trace.import"])
    assert "`OTEL_LOG_RAW_API_BODIES=1`" in told
