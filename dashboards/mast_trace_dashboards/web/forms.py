"""Parses the forms of the pages, and numbers in addresses."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from starlette.requests import Request

# Python accepts other digits than these, and refuses to parse thousands of them.
_WHOLE = re.compile(r"[0-9]{1,19}")

_LONGEST = 64 * 1024
_MOST_FIELDS = 100


def whole(text: str) -> int | None:
    """Return a text as a whole number; None if it is none, or longer than any of ours."""
    return int(text) if _WHOLE.fullmatch(text) else None


async def read_form(request: Request) -> dict[str, list[str]]:
    """Return the fields; an empty field has an empty text.

    Raises:
        HTTPException: 413, the form is longer than 64 KiB; 400, it has more than 100 fields.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST:
            raise HTTPException(413, "A form of this length is not taken.")
    try:
        given = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, "A form with so many fields is not taken.") from None
    return defaultdict(lambda: [""], given)
