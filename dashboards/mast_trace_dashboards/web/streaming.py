"""Streams a page whose first part is sent before the rest is known."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from mast_trace.exceptions import StorageError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates

_LOG = logging.getLogger(__name__)
SO_FAR = "<!-- so far -->"
"""In a template: everything before this mark is sent at once."""
_AT_ONCE = 32 * 1024
_BROKEN = """<p class="empty" role="alert">The rest of this page could not be read: the database does
not answer. Load the page again to try it anew.</p>"""


def streamed(
    templates: Jinja2Templates, request: Request, name: str, values: dict[str, Any]
) -> StreamingResponse:
    """Answer with a template that is rendered in a thread while it is sent."""
    context = {"request": request, **values}
    for more in templates.context_processors:
        context.update(more(request))
    template = templates.get_template(name)
    return StreamingResponse(_pieces(template.generate(context)), media_type="text/html")


def in_blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Yield joined texts, the first one at once: each yield costs a switch of threads."""
    block: list[str] = []
    size = _AT_ONCE
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            yield "".join(block)
            block, size = [], 0
    yield "".join(block)


def _pieces(written: Iterator[str]) -> Iterator[str]:
    pieces: list[str] = []
    size = 0
    try:
        for piece in written:
            pieces.append(piece)
            size += len(piece)
            if size >= _AT_ONCE or SO_FAR in piece:
                yield "".join(pieces)
                pieces, size = [], 0
    except StorageError:
        _LOG.exception("a page broke off")
        pieces.append(_BROKEN)
    yield "".join(pieces)
