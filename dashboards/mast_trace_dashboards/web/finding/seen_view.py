"""The input of a step for the run page: messages that the previous input has are folded, changed ones compared."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_dashboards.web.text_changes import TextChange, changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace_dashboards.step_input import SeenInput, SeenMessage

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
