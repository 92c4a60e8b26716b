"""Parts of requests and answers, which are mappings or objects of the client's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_trace.content import content_hash

_HASHED = 1 << 16
"""Characters at each end of encoded data that distinguish one picture from another."""


def field(item: Any, name: str) -> Any:
    """Read a field of a mapping or of one of the client's own objects."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def media_mark(kind: str, data: Any) -> str:
    """Return the placeholder for a picture, a sound or a document in a recorded text.

    Args:
        kind: media type, or the client's name for such a part.
        data: the bytes, their encoded text, or an address. An address is kept as it is; the others
            are represented by length and a hash, so that two pictures remain different.
    """
    if data is None:
        return f"[{kind}]"
    if isinstance(data, str) and "://" in data[:16]:
        return f"[{kind} {data}]"
    if not isinstance(data, str | bytes):
        # Files, paths and the like: the client reads them.
        return f"[{kind} {type(data).__name__}]"
    ends = [data] if len(data) <= 2 * _HASHED else [data[:_HASHED], data[-_HASHED:]]
    text = "".join(end if isinstance(end, str) else end.hex() for end in ends)
    unit = "characters of base64" if isinstance(data, str) else "bytes"
    return f"[{kind}, {len(data)} {unit}, {content_hash(text)[:12]}]"
