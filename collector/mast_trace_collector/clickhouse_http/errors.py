"""Errors as a ClickHouse server answers them."""

from __future__ import annotations

import re

from mast_trace_collector.storage.readers import PLAIN

_CODE = re.compile(r"Code:\s*(\d+)")
_NAME = re.compile(r"(\([A-Z][A-Z0-9_]+\))(?: \(version [^)]*\))?\s*$")
_AROUND = re.compile(
    r"\(?(?:: )?[Ww]hile (?:executing|reading|processing|pushing)|\(in (?:file|part|query)"
    r"|Maybe you meant|Stack trace|There is no supported"
)
"""The beginning of context that reveals internals: parts, marks, the structure of columns."""
_VIEW = re.compile(r"mast_readers\.q_[0-9a-f]{32}(?:\(on = 1\))?")
_PATH = re.compile(r"(?<![\w/.])/[\w.-]+/")
_SAME_NAME = 44

AUTHENTICATION_FAILED = 516
ACCESS_DENIED = 497
BAD_ARGUMENTS = 36
TOO_LARGE = 307
UNSUPPORTED = 48

_STATUSES = {
    AUTHENTICATION_FAILED: 403,
    ACCESS_DENIED: 403,
    164: 403,  # READONLY
    60: 404,  # UNKNOWN_TABLE
    81: 404,  # UNKNOWN_DATABASE
    46: 404,  # UNKNOWN_FUNCTION
    47: 404,  # UNKNOWN_IDENTIFIER
    115: 404,  # UNKNOWN_SETTING
    62: 400,  # SYNTAX_ERROR
    BAD_ARGUMENTS: 400,
    6: 400,  # CANNOT_PARSE_TEXT
    27: 400,
    456: 400,  # UNKNOWN_QUERY_PARAMETER
    457: 400,  # BAD_QUERY_PARAMETER
    40: 400,  # CHECKSUM_DOESNT_MATCH
    89: 400,  # UNKNOWN_COMPRESSION_METHOD
    271: 400,  # CANNOT_DECOMPRESS
    TOO_LARGE: 413,
    UNSUPPORTED: 501,
    159: 408,  # TIMEOUT_EXCEEDED
}


_WHY = {241: " for want of memory", 497: ": it needs what a reader may not read"}
_TELLING = frozenset({*_WHY, 74, 76, 107, 117, 173, 210, 243, 252})
"""Errors whose texts hold sizes, paths and hosts."""


class QueryError(Exception):
    """A statement failed or was refused.

    Attributes:
        code: ClickHouse's number of the error.
        text: the server's message.
    """

    def __init__(self, code: int, message: str, name: str) -> None:
        self.code = code
        self.text = f"Code: {code}. DB::Exception: {message} ({name})"
        super().__init__(self.text)

    @property
    def status(self) -> int:
        """The HTTP status of a server for it."""
        return _STATUSES.get(self.code, 500)


class EngineError(QueryError):
    """The engine's own message."""

    def __init__(self, text: str) -> None:
        found = _CODE.search(text)
        super().__init__(int(found[1]) if found else 1, "", "")
        self.text = text[found.start() :] if found else text
        self.args = (self.text,)

    def for_reader(self) -> EngineError:
        """Return the error as shown to a reader: without parts, sizes, paths and others' names."""
        name = _NAME.search(self.text)
        text = _NAME.sub("", _AROUND.split(self.text)[0]).rstrip(" .:")
        text = _VIEW.sub("the statement", text).replace(f"{PLAIN}.", "")
        if self.code in _TELLING or _PATH.search(text):
            text = (
                f"Code: {self.code}. DB::Exception: the statement failed{_WHY.get(self.code, '')}"
            )
        if name:
            text += f". {name[1]}"
        if self.code == _SAME_NAME:
            text += ": name the columns apart with AS"
        return EngineError(text)


def denied(why: str) -> QueryError:
    """Refuse a statement that a reader must not run."""
    return QueryError(ACCESS_DENIED, f"this endpoint only reads: {why}", "ACCESS_DENIED")
