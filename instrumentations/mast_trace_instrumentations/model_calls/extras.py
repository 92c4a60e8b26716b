"""Parts of a model's answer beside its text and its tool calls, in a form that JSON can hold.

They are recorded as `mast_trace.semconv.RESPONSE_EXTRA`, because a program may read them or send them back:
reasoning, citations, a refusal, calls of the provider's own tools. Texts and calls are recorded
elsewhere: the number of characters stands for a text, and its type for a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mast_trace.content import shown

CHARS: Final = "chars"
"""Key of a part's number of characters, which stands for the text."""

_DEEPEST: Final = 20


def plain(value: Any, depth: int = 0) -> Any:
    """Return a mapping, or an object of a client, as JSON can hold it.

    Fields that the server did not send are left out; those that it sent empty stay, because a client that does
    not know a field shows it as it came.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > _DEEPEST:
        return shown(value)
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_unset=True, warnings=False)
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return shown(value)


def left(value: Any, known: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a value that are not empty, without the known ones."""
    # Fields are looked at before anything is copied: streams have many pieces and seldom such a field.
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", None) or {}
    more = getattr(value, "model_extra", None) or {}
    items = [
        (str(key), item)
        for each in (fields, more)
        for key, item in each.items()
        if key not in known and not str(key).startswith("_") and not _is_empty(item)
    ]
    copied = {key: plain(item) for key, item in items}
    return {key: item for key, item in copied.items() if not _is_empty(item)}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)
