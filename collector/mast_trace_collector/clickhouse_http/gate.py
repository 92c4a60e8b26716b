"""Decides which statements a reader may run.

The engine's own ``readonly`` settings are not enough: they let ``file()`` read any file, ``INTO
OUTFILE`` and ``INSERT INTO FUNCTION`` write one, ``Python()`` read the interpreter's variables,
and a table of the ``default`` database be any file. So a statement passes only if the engine
classifies it as reading, and if nothing in it names a source outside the database. What it names
is looked up in the engine's own rendering of the parsed statement, where no comment, quoting or
escape can hide a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import denied

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle

_TOKEN = re.compile(
    r"""
    (?P<string>'(?:[^'\\]|\\.|'')*')
  | (?P<parameter>\{[^{}]*\})
  | `(?P<backquoted>(?:[^`\\]|\\.|``)*)`
  | "(?P<quoted>(?:[^"\\]|\\.|"")*)"
  | (?P<word>[A-Za-z_]\w*)
  | (?P<other>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_STATEMENTS = frozenset({"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "("})
_SAFE_TABLE_FUNCTIONS = frozenset(
    {
        "format",
        "generate_series",
        "generateseries",
        "null",
        "numbers",
        "numbers_mt",
        "values",
        "view",
        "zeros",
        "zeros_mt",
    }
)
_OUTSIDE_FUNCTIONS = frozenset(
    {
        "addresstoline",
        "addresstolinewithinlines",
        "addresstosymbol",
        "catboostevaluate",
        "executable",
        "eval",
        "evalmlmethod",
        "file",
        "generateserialid",
        "hascolumnintable",
        "joinget",
        "joingetornull",
        "python",
        "showcertificate",
        "viewexplain",
    }
)
_FORMAT_FAMILIES = (
    "Arrow",
    "BSON",
    "CSV",
    "CustomSeparated",
    "Hash",
    "JSON",
    "LineAsString",
    "Markdown",
    "MsgPack",
    "Native",
    "Npy",
    "Null",
    "ORC",
    "Parquet",
    "Pretty",
    "RawBLOB",
    "RowBinary",
    "SQLInsert",
    "TSKV",
    "TSV",
    "TabSeparated",
    "Values",
    "Vertical",
    "XML",
)
"""Other formats read files that a setting names."""
_FILE_SETTINGS = re.compile(r"format_(template|schema|avro_schema)|schema_inference_file|.*_path$")


class Gate:
    """Checks statements of readers.

    Args:
        handle: a connection to ask the engine for the names that it knows.
    """

    def __init__(self, handle: Handle) -> None:
        sql = (
            "SELECT lower(name) FROM system.table_functions UNION DISTINCT "
            "SELECT lower(name) FROM system.functions WHERE categories = 'AI'"
        )
        names = handle.run(sql, "TabSeparated").body.decode().split()
        self._outside = (frozenset(names) - _SAFE_TABLE_FUNCTIONS) | _OUTSIDE_FUNCTIONS

    def check(self, handle: Handle, sql: str) -> str:
        """Return the statement as the engine renders it.

        Raises:
            QueryError: it does more than read this database.
        """
        kind = handle.classify(sql)
        if kind.statements > 1:
            raise denied("one statement at a time")
        canonical = handle.canonical(sql)
        if not kind.reads:
            raise denied(f"{canonical.split(None, 1)[0]} is not allowed")
        self._scan(canonical)
        return canonical

    def check_setting(self, name: str) -> None:
        """Refuse a setting that names a file.

        Raises:
            QueryError: it does.
        """
        if _FILE_SETTINGS.match(name):
            raise denied(f"the setting {name} is not allowed")

    def check_format(self, name: str) -> None:
        """Refuse an output format that reads files.

        Raises:
            QueryError: it may.
        """
        if not name.startswith(_FORMAT_FAMILIES):
            raise denied(f"the format {name} is not allowed")

    def _scan(self, canonical: str) -> None:
        first = _TOKEN.match(canonical)
        if first is None or first[0] not in _STATEMENTS:
            raise denied(f"{canonical.split(None, 1)[0]} is not allowed")
        before = name = ""
        for token in _TOKEN.finditer(canonical):
            if token["parameter"] and "identifier" in token[0].lower():
                raise denied("a parameter may not name a table or a column")
            if token[0] == "(":
                self._check_function(name)
            before, name = name, _name(token)
            self._check_name(name)
            if before == "APPLY":
                self._check_function(name)
            elif before == "FORMAT" and name:
                self.check_format(name)

    def _check_function(self, name: str) -> None:
        if name.lower() in self._outside:
            raise denied(f"the function {name} is not allowed")

    def _check_name(self, name: str) -> None:
        if name.lower() == "default":
            # A table of this database can be any file of the machine.
            raise denied("the database default is not allowed")
        self.check_setting(name)


def _name(token: re.Match[str]) -> str:
    quoted = token["backquoted"] or token["quoted"]
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted)
    return token["word"] or ""
