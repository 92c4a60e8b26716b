"""Budgets of a run: tokens, cost, steps, model calls and the time of its models.

Calls count as in the totals of a run: a call that two tools have recorded counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import without_copies
from mast_trace_judge.gate.subjects import listed, one_line, subject_of
from mast_trace_judge.pricing import PriceConfig
from mast_trace_judge.pricing.bands import bands_of, cost_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import SpanRecord
    from mast_trace_judge.gate.subjects import AnyRun, Subject
    from mast_trace_judge.pricing.bands import OwnPrice

_LONGEST = 5


@dataclass(frozen=True)
class Priced:
    """A model call with its cost in US dollars; None if its price is unknown."""

    model: str
    agent: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


def check_budget(
    run: AnyRun,
    *,
    tokens: int | None = None,
    cost_usd: float | None = None,
    steps: int | None = None,
    model_calls: int | None = None,
    model_seconds: float | None = None,
) -> None:
    """Assert that a run stays within a budget; see `mast_trace_judge.testing.assert_budget`."""
    __tracebackhide__ = True
    if all(each is None for each in (tokens, cost_usd, steps, model_calls, model_seconds)):
        raise TypeError(
            "assert_budget needs a limit: tokens, cost_usd, steps, model_calls or model_seconds"
        )
    subject = subject_of(run)
    problems = []
    if steps is not None and len(subject.run.steps) > steps:
        problems.append(f"{len(subject.run.steps):,} steps, more than {steps:,}")
    calls = sum(each.kind == "model" for each in subject.run.invocations)
    if model_calls is not None and calls > model_calls:
        problems.append(f"{calls:,} model calls, more than {model_calls:,}")
    if tokens is not None:
        problems.extend(_tokens(subject, tokens))
    if cost_usd is not None:
        problems.extend(_cost(subject, Decimal(str(cost_usd))))
    if model_seconds is not None:
        problems.extend(_seconds(subject, model_seconds))
    if problems:
        raise AssertionError(f"{subject.title} is over its budget: {'; '.join(problems)}")


def _tokens(subject: Subject, most: int) -> list[str]:
    __tracebackhide__ = True
    used = subject.run.input_tokens + subject.run.output_tokens
    if not used:
        raise AssertionError(
            f"{subject.title} records no tokens of any model call, so a budget of tokens says nothing"
        )
    if used <= most:
        return []
    parts = f"{subject.run.input_tokens:,} read, {subject.run.output_tokens:,} written"
    return [f"{used:,} tokens ({parts}), more than {most:,}"]


def _cost(subject: Subject, most: Decimal) -> list[str]:
    __tracebackhide__ = True
    if subject.spans is None:
        raise TypeError(
            "a budget of cost needs the spans of the run, which captured_spans has: a file or a "
            "trajectory has no tokens of single calls"
        )
    calls = priced_calls(subject.spans, PriceConfig.load().own_prices)
    if not calls:
        raise AssertionError(
            f"{subject.title} records no tokens of any model call, so a budget of cost says nothing"
        )
    unknown = sorted(
        {call.model or "a call without a model's name" for call in calls if call.cost is None}
    )
    if unknown:
        raise AssertionError(
            f"{subject.title} cannot be priced: no price is known of {listed(unknown)}. "
            "MAST_TRACE_OWN_PRICES gives one."
        )
    total = sum((call.cost for call in calls if call.cost is not None), Decimal(0))
    if total <= most:
        return []
    dearest = sorted(calls, key=lambda call: call.cost or 0, reverse=True)[:_LONGEST]
    named = ", ".join(
        f"{one_line(call.agent, 40) or 'nobody'} on {one_line(call.model, 60)} ${call.cost:f}"
        for call in dearest
    )
    return [f"${total:f}, more than ${most:f} (dearest calls: {named})"]


def priced_calls(spans: Sequence[SpanRecord], own: Mapping[str, OwnPrice]) -> list[Priced]:
    """Return the model calls of a run that record tokens, with their cost.

    Args:
        spans: of the run.
        own: own prices by model, or by provider and model.
    """
    found = []
    for span in without_copies(spans):
        values = {
            field: vocabulary.integer(vocabulary.read(span.attributes, field)) or 0
            for field in (
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
            )
        }
        if span.operation != semconv.CHAT or not (
            values["input_tokens"] or values["output_tokens"]
        ):
            continue
        model = str(vocabulary.read(span.attributes, "model") or "")
        cost = cost_of(
            bands_of(model, _provider(span.attributes), own),
            datetime.fromtimestamp(span.start / 1e9, timezone.utc),
            input_tokens=values["input_tokens"],
            output_tokens=values["output_tokens"],
            cache_read=values["cache_read_tokens"],
            cache_write=values["cache_write_tokens"],
        )
        agent = vocabulary.agent(span.attributes)
        found.append(Priced(model, agent, values["input_tokens"], values["output_tokens"], cost))
    return found


def _provider(attributes: Mapping[str, object]) -> str:
    names = (semconv.PROVIDER_NAME, "gen_ai.system", "llm.provider")
    return next((str(attributes[name]) for name in names if attributes.get(name)), "")


def _seconds(subject: Subject, most: float) -> list[str]:
    __tracebackhide__ = True
    if subject.replayed:
        raise TypeError(
            "a replayed run asks no model, so that its calls take no time: a budget of model_seconds "
            "needs a live run"
        )
    calls = [call for call in subject.run.invocations if call.kind == "model"]
    if not calls:
        raise AssertionError(
            f"{subject.title} has no model call, so a budget of their time says nothing"
        )
    took = sum(call.end - call.start for call in calls) / 1e9
    if took <= most:
        return []
    slowest = max(calls, key=lambda call: call.end - call.start)
    who = f"{one_line(slowest.agent, 40) or 'nobody'} on {one_line(slowest.model, 60)}"
    longest = f"the slowest: {who}, {(slowest.end - slowest.start) / 1e9:.1f} s"
    return [f"{took:.1f} s of model time in {len(calls)} calls, more than {most:g} s ({longest})"]
