"""The places of a run's findings: failure mode, agent or edge, tool or text.

Templates of texts: masks ids, numbers and addresses, and finds texts of one form.

The miner is drain3's Drain (He et al., "Drain: An Online Log Parsing Approach with Fixed Depth Tree",
ICWS 2017). Its state is never stored: it is rebuilt from the masked texts of the runs that are kept, so
that nothing of an erased run is left.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from drain3.drain import Drain
    from drain3.masking import LogMasker

PARAMETER: Final = "<*>"
"""Stands for a word that differs between the texts of a template."""
WORDS: Final = 40
"""Number of words of a text that its template is made of."""
_READ: Final = 2000
"""Characters of a text that are masked at all."""
_LONGEST_WORD: Final = 80
_SIMILAR: Final = 0.5
"""Share of equal words from which two texts of one length have one template."""
_TEMPLATES: Final = 200
"""Most templates of one place; the one that was met longest ago makes room."""
_PLACES: Final = 5000
"""Most places whose templates are kept in memory."""
_MASKS: Final = (
    (r"https?://[^\s\"'<>)\]}]+", "url"),
    (r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b", "email"),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "id"),
    (r"\b(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b", "id"),
    (r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z]{1,12}[_-][A-Za-z0-9]{6,}\b", "id"),
    (r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@%+-]+){2,}/?", "path"),
    (r"\"[^\"\n]{1,200}\"|'[^'\n]{3,200}'(?!\w)", "text"),
    (r"(?<!\w)[+-]?\d[\d.,:]*(?:[eE][+-]?\d+)?(?:%|\w{0,3})?(?!\w)", "number"),
)


@cache
def _masker() -> LogMasker:
    from drain3.masking import LogMasker, MaskingInstruction  # a collector lacks the extra `judge`

    return LogMasker([MaskingInstruction(form, name) for form, name in _MASKS], "<", ">")


def _drain() -> Drain:
    from drain3.drain import Drain

    return Drain(depth=4, sim_th=_SIMILAR, max_clusters=_TEMPLATES, param_str=PARAMETER)


def masked(text: str) -> str:
    """Return the first `WORDS` words of a text, with what differs between runs replaced by its kind."""
    shown = _masker().mask(text[:_READ])
    return " ".join(word[:_LONGEST_WORD] for word in shown.split()[:WORDS])


@dataclass
class _Place:
    """The templates of one place, and the number of each cluster."""

    drain: Drain = field(default_factory=_drain)
    numbers: dict[int, int] = field(default_factory=dict)


class TextMiner:
    """Gives texts of one form at one place the same number.

    A place is any tuple of names, such as a failure mode with its agent; texts of different places
    have different numbers. A number is that of the first text of its template, so that processes that
    have read the same texts in the same order agree.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, ...], _Place] = OrderedDict()

    def number(self, place: tuple[str, ...], text: str) -> int:
        """Return the number of a masked text's template, above 0; 0 for an empty text."""
        return self._number(place, text, 0)

    def learn(self, known: Iterable[tuple[tuple[str, ...], int, str]]) -> None:
        """Take over texts with their numbers, oldest first."""
        for place, number, text in known:
            self._number(place, text, number)

    def _number(self, place: tuple[str, ...], text: str, known: int) -> int:
        if not text:
            return 0
        here = self._places.pop(place, None) or _Place()
        self._places[place] = here
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)
        cluster, _ = here.drain.add_log_message(text)
        if cluster.cluster_id not in here.numbers:
            here.numbers[cluster.cluster_id] = known or _hash(place, text)
            if len(here.numbers) > 2 * _TEMPLATES:
                kept = here.drain.id_to_cluster
                here.numbers = {one: number for one, number in here.numbers.items() if one in kept}
        return here.numbers[cluster.cluster_id]


def _hash(place: tuple[str, ...], text: str) -> int:
    digest = hashlib.sha256("\0".join((*place, text)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") or 1


@dataclass(frozen=True)
class PlacedFinding:
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
) -> list[PlacedFinding]:
    """Return the places of a verdict's shown findings, each once.

    Args:
        verdict: a row of ``mast_verdicts``.
        spans: the spans of its findings by id, with Agent, Recipients, ToolName, Failed, Error, Text.
        miner: gives the texts' numbers.
    """
    found: dict[tuple[str, ...], PlacedFinding] = {}
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
) -> PlacedFinding:
    span: Mapping[str, Any] = spans.get(span_id, {})
    agent = span.get("Agent", "") or agent
    tool = span.get("ToolName", "")
    peer = "" if tool else _peer(agent, span.get("Recipients", ()))
    error = span.get("Error", "")
    # A tool names the place; a text is needed where there is none, or where it says how the tool failed.
    text = masked(error or ("" if tool else quote or span.get("Text", "")))
    number = miner.number((project, code, agent, peer, tool), text)
    return PlacedFinding(code, agent, peer, tool, number, text, step, span_id)


def _peer(agent: str, recipients: Sequence[str]) -> str:
    others = [name for name in recipients if name and name != agent]
    return others[0] if len(others) == 1 else ""
