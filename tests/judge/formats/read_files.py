"""Files of chats, and the content of a file with the reports of its unreadable parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mast_trace_judge.transfer.reading import Piece, Refused, read_source
from mast_trace_judge.transfer.source import source_of

if TYPE_CHECKING:
    from pathlib import Path

CHAT = [{"role": "user", "content": "Häufig?"}, {"role": "assistant", "content": "Yes."}]
LINE = json.dumps({"messages": CHAT}, ensure_ascii=False)
OTHER = json.dumps({"messages": [CHAT[0]]}, ensure_ascii=False)


def read(path: Path) -> tuple[list[Piece], list[str]]:
    """Return the content of a file, and the reports of its unreadable parts."""
    with source_of(path) as source:
        found = list(read_source(source))
    refused = [str(each).removeprefix(str(path)) for each in found if isinstance(each, Refused)]
    return [each for each in found if isinstance(each, Piece)], refused
