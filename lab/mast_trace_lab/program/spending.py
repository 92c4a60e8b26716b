"""Tokens and cost of a replay's live model calls."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace import semconv
from mast_trace.trajectory import read_trajectory, vocabulary
from mast_trace_judge.llm.budget import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.trajectory import SpanRecord
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.program.process import Played

_FIRST_ERROR: Final = 400
"""The lowest HTTP status that is an error."""


@dataclass(frozen=True)
class Spending:
    """Tokens and cost of live calls.

    Attributes:
        input_tokens: of all live calls.
        output_tokens: likewise.
        cost_usd: in US dollars; None if a model's price or a call's tokens are unknown.
        models: names of the models that answered, as they call themselves.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    models: tuple[str, ...]


def spending_of(played: Played, prices: Mapping[str, Price]) -> Spending:
    """Return the tokens and cost of a program's live calls.

    Answers from the record have no token usage, so each token belongs to a live call.

    Args:
        played: the program's traces.
        prices: by name of the model, as it calls itself or as the request names it.
    """
    runs = [read_trajectory(spans) for spans in played.spans.values()]
    total = Tokens(sum(run.input_tokens for run in runs), 0, sum(run.output_tokens for run in runs))
    by_model: dict[str, Tokens] = defaultdict(Tokens)
    counted = 0
    for spans in played.spans.values():
        for span in spans:
            if span.operation == semconv.CHAT and not span.attributes.get(semconv.REPLAY_SERVED):
                model = str(vocabulary.read(span.attributes, "model") or "")
                known, used = by_model[model], _tokens(span)
                counted += bool(used.total)
                by_model[model] = Tokens(known.input + used.input, 0, known.output + used.output)
    asked = tuple(dict.fromkeys(call.model for call in played.live if call.model))
    models = tuple(name for name, used in by_model.items() if name and used.total) or asked
    answered = sum(0 < call.status < _FIRST_ERROR for call in played.live)
    # Calls outside of a run and requests for embeddings have no span that tells their tokens.
    cost = None if counted < answered else _cost(played, total, by_model, prices)
    return Spending(total.input, total.output, cost, models)


def _cost(
    played: Played, total: Tokens, by_model: Mapping[str, Tokens], prices: Mapping[str, Price]
) -> float | None:
    if not played.live:
        return 0.0
    used = {model: tokens for model, tokens in by_model.items() if tokens.total}
    # Spans of other tools count a call twice; a stream may report no usage.
    counted = Tokens(sum(t.input for t in used.values()), 0, sum(t.output for t in used.values()))
    if counted != total or not total.total or any(model not in prices for model in used):
        return None
    return sum(prices[model].of(tokens) for model, tokens in used.items())


def _tokens(span: SpanRecord) -> Tokens:
    def read(name: str) -> int:
        return vocabulary.integer(vocabulary.read(span.attributes, name)) or 0

    return Tokens(read("input_tokens"), 0, read("output_tokens"))
