"""Rendering of a step's input in a terminal: its messages, and their difference to the previous input."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_dashboards.step_input import SeenInput, SeenMessage

_CLIP: Final = 400
"""Characters of a message that are shown; `--full` shows all."""
_SIGNS: Final = {"kept": " ", "new": "+", "gone": "-"}
_STYLES: Final = {"kept": "", "new": "green", "gone": "red"}


def input_view(seen: SeenInput | None, reason: str, *, full: bool = False) -> Iterator[Text]:
    """Yield the input of a step.

    Args:
        seen: the input; None if the run records none.
        reason: a sentence on why there is none.
        full: show every message, and its text in full.
    """
    yield Text("")
    if seen is None:
        yield plain(reason, "dim")
        return
    yield _head(seen)
    yield Text("")
    for kept, group in groupby(seen.messages, key=lambda each: each.state == "kept"):
        messages = list(group)
        if kept and not full and len(messages) > 1:
            yield plain(f"  ({len(messages):,} messages as before; --full shows them)", "dim")
        else:
            for each in messages:
                yield _message(each, seen, full=full)


def _head(seen: SeenInput) -> Text:
    count = len(seen.shown)
    words = (
        f"{count:,} {'message' if count == 1 else 'messages'} to {seen.agent or 'an unknown agent'}"
    )
    if seen.model:
        words += f", model {seen.model}"
    if seen.parameters:
        words += f" ({', '.join(seen.parameters)})"
    if seen.missing:
        words += f"; the text of {seen.missing:,} was not recorded"
    head = plain(f"{words}. ", "bold")
    if seen.first:
        return head.append_text(plain("It is the first input of this agent in the run."))
    of = "" if seen.previous_step is None else f" (of step {seen.previous_step})"
    new, gone, kept = (seen.count(state) for state in ("new", "gone", "kept"))
    return head.append_text(
        plain(
            f"Against its previous input{of}: {new:,} new, {gone:,} no longer shown, {kept:,} as before."
        )
    )


def _message(each: SeenMessage, seen: SeenInput, *, full: bool) -> Text:
    sign = " " if seen.first else _SIGNS[each.state]
    style = "" if seen.first else _STYLES[each.state]
    said = each.message
    name = f" {said.name}" if said and said.name else ""
    place = f" (step {each.step})" if each.step is not None else ""
    text = plain(f"{sign} {each.role or 'message'}{name}{place}: ", f"bold {style}".strip())
    if said is None:
        return text.append_text(plain("its text was not recorded", "dim"))
    calls = [f"{call.name}({call.text})" for call in said.tool_calls]
    content = "\n".join([said.content, *calls] if said.content else calls)
    return text.append_text(plain(content if full else clip(content, _CLIP), style))
