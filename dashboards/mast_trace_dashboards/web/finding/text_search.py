"""Search in texts: the first hits at once, their number as far as a few seconds reach."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from mast_trace_collector.storage.search_index import narrowed
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.search import PASSAGE
from mast_trace_dashboards.web.rows import QuotedPiece

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.filters import Filters

MOST_HITS: Final = 50
"""Most hits that are shown."""
READ_WHOLE: Final = 100_000
"""Most spans of a time of which all hits are looked at, so that the newest are shown, and pages of older ones."""
COUNTED_SECONDS: Final = 8.0
"""Seconds after which counting ends before all runs are counted."""
_DIGITS: Final = "0123456789abcdef"
_SMALL_SHARE: Final = "008"
"""The ids of one in 512 runs are less than this."""
_DAY: Final = timedelta(days=1)
_ALIKE: Final = 40
"""Characters from an occurrence on that a model's answer and the message or the call that came of it have in common."""
_ANSWERS: Final = ("chat", "invoke_agent")
"""Operations whose texts other spans may have once more."""


@dataclass(frozen=True)
class TextHit:
    """A span in which the text occurs.

    Attributes:
        run: id of its run.
        owner: the project of its run.
        span: its id.
        project: the query string that names the run's project; empty where the visitor sees only one.
        agent: who acted.
        tool: the tool; empty for other spans.
        service: of the span.
        moment: its time.
        cut: whether the passage begins within the text.
        cut_after: whether it may end within the text.
        pieces: the passage; occurrences are marked.
    """

    run: str
    owner: str
    span: str
    project: str
    agent: str
    tool: str
    service: str
    moment: datetime
    cut: bool
    cut_after: bool
    pieces: tuple[QuotedPiece, ...]


@dataclass(frozen=True)
class SearchHits:
    """Hits of a search.

    Attributes:
        hits: newest first.
        more: whether there are further ones.
        newest: whether no other hit is newer, but for those of the pages before. Otherwise they are the first that
            were found.
    """

    hits: list[TextHit]
    more: bool
    newest: bool


@dataclass(frozen=True)
class HitCount:
    """The number of spans and runs with the text; at least these, if it is not ``done``."""

    spans: int
    runs: int
    done: bool


class TextSearch:
    """One search.

    Args:
        store: the database, of the visitor's project.
        filters: with the text, and the time: the last day if neither it nor a run is given.
        of_project: whether the visitor sees one project alone.
    """

    def __init__(self, store: Store, filters: Filters, *, of_project: bool) -> None:
        self._store = store
        self._text = filters.text
        self._of_project = of_project
        self._page = filters.number
        given = filters.parameters()
        self._given: dict[str, Any] = {"text": filters.text, "services": given["services"]}
        if not filters.run:
            self._given["since"] = datetime.now(timezone.utc) - _DAY
        self._given |= {name: given[name] for name in ("since", "until") if name in given}
        # No other id lies between this one and itself with one more sign.
        self._of_run = {"first": filters.run, "last": f"{filters.run}0"} if filters.run else {}

    @cached_property
    def _narrowing(self) -> Mapping[str, str]:
        """The patterns that the index is asked for; none without an index, or where it cannot help."""
        return narrowed(self._store, self._text)

    def hits(self) -> SearchHits:
        """Return the newest hits of a page in a time of few spans; of more spans those that were found first.

        Raises:
            StorageError: the database does not answer.
        """
        asked = QUERIES["search_hits"]
        times = {name: self._given[name] for name in ("since", "until") if name in self._given}
        size = None if self._of_run else QUERIES["searched"].one(self._store, **times)
        if self._of_run or (size is not None and size["Spans"] <= READ_WHOLE):
            place = {"limit": MOST_HITS + 1, "offset": self._page * MOST_HITS}
            given = {**self._given, **self._narrowing, **self._of_run, **place}
            return self._found(asked.run(self._store, **given, found=READ_WHOLE), newest=True)
        rows: list[dict[str, Any]] = []
        if self._narrowing:
            # Words of a frequent text are in too many places for an index, but a small share has enough of them.
            rows = asked.run(self._store, **self._given, last=_SMALL_SHARE, limit=MOST_HITS + 1)
        if len(rows) <= MOST_HITS:
            given = {**self._given, **self._narrowing}
            rows = asked.run(self._store, **given, limit=MOST_HITS + 1)
        return self._found(rows, newest=len(rows) <= MOST_HITS)

    def _found(self, rows: Sequence[Mapping[str, Any]], *, newest: bool) -> SearchHits:
        shown = [self._hit(row) for row in without_repeats(rows[:MOST_HITS], self._text)]
        return SearchHits(shown, more=len(rows) > MOST_HITS, newest=newest)

    def count(self) -> HitCount:
        """Return the number of hits, counted run by run until `COUNTED_SECONDS` have passed.

        Raises:
            StorageError: the database does not answer.
        """
        begun, spans, runs = time.monotonic(), 0, 0
        for place, digit in enumerate(_DIGITS):
            if time.monotonic() - begun > COUNTED_SECONDS:
                return HitCount(spans, runs, done=False)
            # Spans are stored in the order of runs, so each part reads its own share of the table.
            within = {
                "first": digit if place else "",
                "last": _DIGITS[place + 1] if place + 1 < len(_DIGITS) else "",
            }
            row = QUERIES["search_count"].one(
                self._store, **self._given, **self._narrowing, **(self._of_run or within)
            )
            if row is not None:
                spans, runs = spans + row["Spans"], runs + row["Runs"]
            if self._of_run:
                break
        return HitCount(spans, runs, done=True)

    def _hit(self, row: Mapping[str, Any]) -> TextHit:
        named = row["Project"] and not self._of_project
        return TextHit(
            run=row["TraceId"],
            owner=row["Project"],
            span=row["SpanId"],
            project=f"?{urlencode({'project': row['Project']})}" if named else "",
            agent=row["Agent"],
            tool=row["ToolName"],
            service=row["ServiceName"],
            moment=row["Timestamp"],
            cut=bool(row["CutBefore"]),
            cut_after=len(row["Passage"]) >= PASSAGE + len(self._text),
            pieces=tuple(pieces_with(row["Passage"].strip("\n"), self._text)),
        )


def without_repeats(rows: Sequence[Mapping[str, Any]], text: str) -> Iterator[Mapping[str, Any]]:
    """Yield rows of the query `search_hits`, but for answers of models that a message or a call of the run repeats."""

    def alike(row: Mapping[str, Any]) -> tuple[str, str, str]:
        passage = row["Passage"]
        # Within an answer, a text ends at a quotation mark or goes on with an escaped character.
        words = re.split(
            r'["\\\n]', passage[max(passage.lower().find(text.lower()), 0) :][:_ALIKE]
        )[0]
        return row["Project"], row["TraceId"], words.strip()

    said = {alike(row) for row in rows if row["Operation"] not in _ANSWERS}
    return (row for row in rows if row["Operation"] not in _ANSWERS or alike(row) not in said)


def pieces_with(passage: str, text: str) -> Iterator[QuotedPiece]:
    """Cut a passage at the occurrences of a text, whose case does not matter."""
    done = 0
    for match in re.finditer(re.escape(text), passage, re.IGNORECASE):
        yield QuotedPiece(passage[done : match.start()], quoted=False)
        yield QuotedPiece(match[0], quoted=True)
        done = match.end()
    yield QuotedPiece(passage[done:], quoted=False)
