"""The places of a run's findings: failure mode, agent or edge, tool or text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_judge.patterns.texts import masked
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.patterns.texts import TextMiner


@dataclass(frozen=True)
class Hit:
    """One finding of a run, by its place.

    Attributes:
        code: of the failure mode; empty for a decisive error that shows none.
        agent: agent of the first step that shows it.
        peer: recipient, where that step is a message to one agent.
        tool: where it is a tool call.
        template: number of the text's template; 0 without a text.
        text: the masked error of the step, or the masked passage that the verdict quotes.
        step: index of the step.
        span_id: its span.
    """

    code: str
    agent: str
    peer: str
    tool: str
    template: int
    text: str
    step: int
    span_id: str


def hits_of(
    verdict: Mapping[str, Any], spans: Mapping[str, Mapping[str, Any]], miner: TextMiner
) -> list[Hit]:
    """Return the places of a verdict's shown findings, each once.

    Args:
        verdict: a row of ``mast_verdicts``.
        spans: the spans of its findings by id, with Agent, Recipients, ToolName, Failed, Error, Text.
        miner: gives the texts' numbers.
    """
    found: dict[tuple[str, ...], Hit] = {}
    for code, agent, step, span_id, quote in _findings(verdict):
        hit = _hit(verdict["Project"], code, agent, step, span_id, quote, spans, miner)
        place = (hit.code, hit.agent, hit.peer, hit.tool, str(hit.template))
        found.setdefault(place, hit)
    return list(found.values())


def _findings(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str, int, str, str]]:
    """Yield code, agent, step, span and quote of each shown finding, and of the decisive error alone."""
    decisive = verdict["DecisiveStep"]
    covered = False
    lists = ("Modes.Code", "Modes.Probability", "Modes.Steps", "Modes.SpanIds", "Modes.Quotes")
    for code, probability, steps, span_ids, quotes in zip(
        *(verdict[name] for name in lists), strict=True
    ):
        if probability < SHOWN_FROM:
            continue
        covered = covered or decisive in steps
        if steps:
            span_id = span_ids[0] if span_ids else ""
            agent = verdict["DecisiveAgent"] if steps[0] == decisive else ""
            yield code, agent, steps[0], span_id, quotes[0] if quotes else ""
        else:
            yield code, "", 0, "", ""
    if decisive is not None and not covered:
        yield "", verdict["DecisiveAgent"], decisive, verdict["DecisiveSpanId"], ""


def _hit(
    project: str,
    code: str,
    agent: str,
    step: int,
    span_id: str,
    quote: str,
    spans: Mapping[str, Mapping[str, Any]],
    miner: TextMiner,
) -> Hit:
    span: Mapping[str, Any] = spans.get(span_id, {})
    agent = span.get("Agent", "") or agent
    tool = span.get("ToolName", "")
    peer = "" if tool else _peer(agent, span.get("Recipients", ()))
    error = span.get("Error", "")
    # A tool names the place; a text is needed where there is none, or where it says how the tool failed.
    text = masked(error or ("" if tool else quote or span.get("Text", "")))
    number = miner.number((project, code, agent, peer, tool), text)
    return Hit(code, agent, peer, tool, number, text, step, span_id)


def _peer(agent: str, recipients: Sequence[str]) -> str:
    others = [name for name in recipients if name and name != agent]
    return others[0] if len(others) == 1 else ""
