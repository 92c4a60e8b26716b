"""Reads a statement from an HTTP request, as a ClickHouse server does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP

from mast_trace_collector.clickhouse_http.errors import BAD_ARGUMENTS, UNSUPPORTED, QueryError

_NOT_SETTINGS = frozenset(
    {
        "add_http_cors_header",
        "buffer_size",
        "client_protocol_version",
        "close_session",
        "compress",
        "database",
        "decompress",
        "default_format",
        "enable_http_compression",
        "http_headers_progress_interval_ms",
        "http_zlib_compression_level",
        "password",
        "query",
        "query_id",
        "quota_key",
        "readonly",
        "role",
        "send_progress_in_http_headers",
        "session_check",
        "session_id",
        "session_timeout",
        "stacktrace",
        "user",
        "wait_end_of_query",
    }
)
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*(?:SETTINGS\b[^']*)?;?\s*$", re.IGNORECASE)
_INSERT = re.compile(
    rb"\s*INSERT\s+INTO\s.*?\sFORMAT\s+\w+[ \t]*(?:\r?\n|$)", re.IGNORECASE | re.DOTALL
)
_RESULTLESS = re.compile(
    r"\s*(INSERT|CREATE|ALTER|DROP|TRUNCATE|OPTIMIZE|RENAME|SET|USE|SYSTEM|DELETE|ATTACH|DETACH|KILL)\b",
    re.IGNORECASE,
)
_SELECT = re.compile(
    r"(?:[\s(]|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class Statement:
    """One request's statement.

    Attributes:
        sql: the text.
        data: rows of an INSERT; None where there are none.
        params: values of ``{name:Type}`` in the text, escaped as ClickHouse reads them.
        settings: ClickHouse settings for this statement only.
        database: resolves unqualified names; empty for the store's.
        default_format: of the result, where the text names none.
        protocol: revision of the Native format that the client reads; 0 if it gives none.
        query_id: the client's name for the request.
    """

    sql: str
    data: bytes | None = None
    params: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    database: str = ""
    default_format: str = "TabSeparated"
    protocol: int = 0
    query_id: str = ""

    @property
    def format(self) -> str:
        """The output format: the text's own, else the default."""
        found = _FORMAT.search(self.sql)
        return found[1] if found else self.default_format

    @property
    def without_format(self) -> str:
        """The text without its FORMAT clause."""
        return _FORMAT.sub("", self.sql)

    @property
    def has_result(self) -> bool:
        """True if the statement returns rows."""
        return not _RESULTLESS.match(self.sql)

    @property
    def is_select(self) -> bool:
        """Return whether the statement is a SELECT, also in parentheses or behind comments."""
        return bool(_SELECT.match(self.sql))


def read_statement(fields: dict[str, str], content_type: str, body: bytes) -> Statement:
    """Build the statement from the URL's ``fields`` and the body.

    Raises:
        QueryError: they are no statement.
    """
    if content_type.startswith("multipart/form-data"):
        fields, body = {**fields, **_form(content_type, body)}, b""
    _refuse_external_data(fields)
    sql, data = _sql_and_data(fields.get("query", ""), body)
    if not sql.strip():
        raise QueryError(62, "Syntax error: the query is empty", "SYNTAX_ERROR")
    return Statement(
        sql=sql.strip().rstrip(";"),
        data=data,
        params={k.removeprefix("param_"): v for k, v in fields.items() if k.startswith("param_")},
        settings={
            k: v for k, v in fields.items() if k not in _NOT_SETTINGS and not k.startswith("param_")
        },
        database=fields.get("database", ""),
        default_format=fields.get("default_format") or "TabSeparated",
        protocol=_number(fields.get("client_protocol_version", "0")),
        query_id=fields.get("query_id", ""),
    )


def _refuse_external_data(fields: dict[str, str]) -> None:
    for name in fields:
        table, _, what = name.rpartition("_")
        if table and what in {"structure", "types"} and not name.startswith("param_"):
            raise QueryError(
                UNSUPPORTED,
                f"tables cannot be sent along ({table}): name the values in the query, such as "
                "WITH [1, 2, 3] AS ids SELECT ... WHERE has(ids, id)",
                "SUPPORT_IS_DISABLED",
            )


def asks_for(fields: Mapping[str, str], what: str) -> bool:
    """Return whether the URL asks for ``compress`` or ``decompress``."""
    return fields.get(what) in {"1", "true"}


def _sql_and_data(query: str, body: bytes) -> tuple[str, bytes | None]:
    """Split text from an INSERT's rows, which are bytes and are left unchanged."""
    if query and re.match(r"\s*INSERT\b", query, re.IGNORECASE):
        return query, body or None
    if not query and (found := _INSERT.match(body)):
        return _decode(found[0]), body[found.end() :]
    text = _decode(body)
    return (f"{query}\n{text}" if query and text else query or text), None


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise QueryError(
            BAD_ARGUMENTS, f"the query is not UTF-8: {error}", "BAD_ARGUMENTS"
        ) from error


def _form(content_type: str, body: bytes) -> dict[str, str]:
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body
    )
    fields = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(payload, bytes):
            raise QueryError(BAD_ARGUMENTS, "the form cannot be read", "BAD_ARGUMENTS")
        fields[name] = _decode(payload)
    return fields


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
