"""The input of a step for the run page, where messages of the previous input are folded; the spans of a run as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.text_changes import TextChange, changes

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.step_input import SeenInput, SeenMessage
    from mast_trace_dashboards.stored_run import StoredRun


MOST_SPANS: Final = 2000
"""Most spans of a tree."""
_DEEPEST: Final = 40
"""Levels below which spans are no longer moved to the right, and no longer nested."""


@dataclass(frozen=True)
class TreeRow:
    """One span of the tree, in the order of reading.

    Attributes:
        span: a row of the query `run_tree`.
        depth: levels above it, at most `_DEEPEST`.
        inside: number of the spans below it, on all levels.
        step: number of the step that the span holds; None if it holds none.
        left: start of its bar, in per cent of the run.
        width: of its bar, likewise.
        orphan: whether its parent is named, and is not in the run.
    """

    span: Mapping[str, Any]
    depth: int
    inside: int
    step: int | None
    left: float
    width: float
    orphan: bool

    @property
    def milliseconds(self) -> float:
        """Its duration."""
        return float(self.span["DurationNs"]) / 1e6

    @property
    def named(self) -> str:
        """Its agent, its tool or its model, else its name without the operation that stands before it."""
        name = self.span["SpanName"].removeprefix(self.span["Operation"]).strip()
        return str(self.span["Agent"] or self.span["ToolName"] or self.span["Model"] or name)


def tree_of(store: Store, stored: StoredRun) -> list[TreeRow]:
    """Return the first `MOST_SPANS` spans of a run as a tree.

    Raises:
        StorageError: the database does not answer.
    """
    spans = QUERIES["run_tree"].run(
        store, run=stored.trace_id, projects=[stored.project], limit=MOST_SPANS
    )
    steps: dict[str, int] = {}
    for number, span_id in enumerate(stored.outline.span_ids):
        steps.setdefault(span_id, number)
    return tree_rows(spans, steps)


def tree_rows(spans: Sequence[Mapping[str, Any]], steps: Mapping[str, int]) -> list[TreeRow]:
    """Return the spans of a run, each before those below it, siblings by time.

    Spans that are each other's ancestors are placed as if the first of them had no parent.

    Args:
        spans: rows of the query `run_tree`.
        steps: the number of the step that each span holds, by its id.
    """
    known = {span["SpanId"]: span for span in spans}
    below: dict[str, list[str]] = defaultdict(list)
    tops: list[str] = []
    for span in spans:
        parent = span["ParentSpanId"]
        if parent in known and parent != span["SpanId"]:
            below[parent].append(span["SpanId"])
        else:
            tops.append(span["SpanId"])
    order = list(_walk(tops, below))
    seen = {identity for identity, _ in order}
    for identity in known:
        if identity not in seen:
            more = list(_walk([identity], below, seen))
            order += more
            seen.update(each for each, _ in more)
    inside = _counts(order)
    begin = min((span["StartNs"] for span in spans), default=0)
    end = max((span["StartNs"] + span["DurationNs"] for span in spans), default=0)
    whole = max(end - begin, 1)
    rows = []
    for place, (identity, depth) in enumerate(order):
        span = known[identity]
        rows.append(
            TreeRow(
                span=span,
                depth=min(depth, _DEEPEST),
                inside=inside[place],
                step=steps.get(identity),
                left=round(100 * (span["StartNs"] - begin) / whole, 2),
                width=round(max(100 * span["DurationNs"] / whole, 0.4), 2),
                orphan=bool(span["ParentSpanId"]) and span["ParentSpanId"] not in known,
            )
        )
    return rows


def _walk(
    tops: Sequence[str], below: Mapping[str, Sequence[str]], seen: set[str] | None = None
) -> Iterator[tuple[str, int]]:
    """Yield spans with their depth, each before those below it."""
    met = set(seen or ())
    waiting = [(identity, 0) for identity in reversed(tops)]
    while waiting:
        identity, depth = waiting.pop()
        if identity in met:
            continue
        met.add(identity)
        yield identity, depth
        waiting += [(each, depth + 1) for each in reversed(below.get(identity, ()))]


def _counts(order: Sequence[tuple[str, int]]) -> list[int]:
    """Return the number of spans below each."""
    inside = [0] * len(order)
    open_rows: list[int] = []
    for place, (_, depth) in enumerate(order):
        while open_rows and order[open_rows[-1]][1] >= depth:
            open_rows.pop()
        for each in open_rows:
            inside[each] += 1
        open_rows.append(place)
    return inside


LONGEST: Final = 20_000
"""Characters of one message that are shown."""
MOST_CHARACTERS: Final = 400_000
"""Characters of all messages together that are shown; what comes later is named, and not shown."""
MOST_MESSAGES: Final = 500
"""Most messages of an input that are shown."""
_SAME_SHARE: Final = 0.5


@dataclass(frozen=True)
class ShownMessage:
    """One message.

    Attributes:
        role: the role under which it was shown; empty if unknown.
        name: the speaker, where one is named.
        state: ``kept``, ``new``, ``gone``, or ``changed`` where it takes the place of a similar one.
        step: number of the step in which it was said; None if no step holds it.
        text: up to `LONGEST`; empty where none was recorded.
        cut: characters that are not shown.
        recorded: whether the run holds its text.
        calls: the tool calls that it asks for, as ``name(arguments)``.
        changes: from the message whose place it takes.
    """

    role: str
    name: str
    state: Literal["kept", "new", "gone", "changed"]
    step: int | None
    text: str
    cut: int
    recorded: bool
    calls: tuple[str, ...] = ()
    changes: tuple[TextChange, ...] = ()


@dataclass(frozen=True)
class MessageBlock:
    """Consecutive messages; folded where the previous input has all of them."""

    messages: Sequence[ShownMessage]
    folded: bool


@dataclass(frozen=True)
class SeenView:
    """The input of a step.

    Attributes:
        seen: what was read.
        blocks: its messages.
        left_out: number of messages beyond `MOST_MESSAGES`.
    """

    seen: SeenInput
    blocks: Sequence[MessageBlock]
    left_out: int


def seen_view(seen: SeenInput) -> SeenView:
    """Return the input of a step as the page shows it."""
    taken = seen.messages[:MOST_MESSAGES]
    shown = list(_shown(taken))
    blocks = [
        MessageBlock(list(group), folded=kept)
        for kept, group in groupby(shown, key=lambda each: each.state == "kept")
    ]
    return SeenView(seen, blocks, len(seen.messages) - len(taken))


def _shown(messages: Sequence[SeenMessage]) -> Iterator[ShownMessage]:
    left = MOST_CHARACTERS
    for gone, new in _places(messages):
        compared = _compared(gone, new) if gone and new else ()
        if compared and new:
            yield _one(new, left, compared)
        else:
            for each in (gone, new):
                if each is not None:
                    yield _one(each, left)
        said = new.message if new else gone.message if gone else None
        left = max(left - (min(len(said.content), LONGEST) if said else 0), 0)


def _places(
    messages: Sequence[SeenMessage],
) -> Iterator[tuple[SeenMessage | None, SeenMessage | None]]:
    """Yield messages one by one; a removed one together with the new one that stands in its place."""
    waiting: list[SeenMessage] = []
    for each in messages:
        if each.state == "gone":
            waiting.append(each)
        elif each.state == "new" and waiting:
            yield waiting.pop(0), each
        else:
            yield from ((gone, None) for gone in waiting)
            waiting.clear()
            yield None, each
    yield from ((gone, None) for gone in waiting)


def _compared(gone: SeenMessage, new: SeenMessage) -> tuple[TextChange, ...]:
    """Return the changes between two similar messages of one role; nothing where they are not similar."""
    if gone.message is None or new.message is None or gone.role != new.role:
        return ()
    found = changes(gone.message.content[:LONGEST], new.message.content[:LONGEST])
    same = sum(len(each.text) for each in found if each.kind == "same")
    shorter = min(len(gone.message.content[:LONGEST]), len(new.message.content[:LONGEST]))
    return tuple(found) if shorter and same >= _SAME_SHARE * shorter else ()


def _one(seen: SeenMessage, left: int, compared: tuple[TextChange, ...] = ()) -> ShownMessage:
    said = seen.message
    text = said.content if said else ""
    most = min(LONGEST, left)
    return ShownMessage(
        role=seen.role or (said.role if said else ""),
        name=(said.name or "") if said else "",
        state="changed" if compared else seen.state,
        step=seen.step,
        text=text[:most],
        cut=max(len(text) - most, 0),
        recorded=said is not None,
        calls=tuple(f"{each.name}({each.text[:2000]})" for each in said.tool_calls) if said else (),
        changes=compared,
    )
