"""The index of the words in texts: finds a rare text without reading all of them. It is optional.

ClickHouse keeps, for each word, the spans that have it. A search asks it for the words that hold the longest
run of letters and digits of the sought text, and looks for the text itself only in their spans: what is found is
the same as without the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.storage.project_store import ProjectStore
from mast_trace_collector.storage.removal.retention import stored_table
from mast_trace_collector.storage.store import Store, error_code

INDEX: Final = "idx_texts"
OLDEST: Final = (26, 2)
"""The oldest ClickHouse whose text indexes are declared ready for use; earlier formats are others."""
TEXTS: Final = """concat(SpanAttributes['mast.message.content'], '\\n',
      SpanAttributes['gen_ai.tool.call.arguments'], '\\n', SpanAttributes['gen_ai.tool.call.result'], '\\n',
      SpanAttributes['gen_ai.output.messages'])"""
"""The texts of a span that are searched, as one."""
# The Kelvin sign is the only letter beyond ASCII that the engine's search takes for one of ASCII, at times.
_INDEXED = f"lower(replaceAll({TEXTS}, '\\xE2\\x84\\xAA', 'k'))"
NARROWED: Final = f"""({{word:String}} = '' OR {_INDEXED} LIKE {{word:String}})
    AND ({{phrase:String}} = '' OR {_INDEXED} LIKE {{phrase:String}})"""
"""A condition that the index answers, with the parameters that `narrowing` returns; empty ones ask nothing."""
SETTINGS: Final = {"optimize_functions_to_subcolumns": 0}
"""With it newer engines read an attribute by another expression than the one that is indexed."""

_TABLE = "otel_traces"
_REFUSED = 497
"""ClickHouse's error of a user who lacks a right."""
_SHORTEST = 4
"""Characters from which on the engine looks for a part of a word in the index."""
_RUN = re.compile(r"[A-Za-z0-9]+")
_SPECIAL = re.compile(r"([%_\\])")


def add_search_index(store: Store) -> None:
    """Index the texts of spans that are stored from now on, and of older ones when ClickHouse merges them.

    Raises:
        ConfigurationError: this ClickHouse is too old.
        StorageError: the database refused.
    """
    (row,) = store.query("SELECT version() AS version")
    if tuple(int(part) for part in row["version"].split(".")[:2]) < OLDEST:
        raise ConfigurationError(
            f"this is ClickHouse {row['version']}: an index for the search takes "
            f"{'.'.join(map(str, OLDEST))} or newer; the search works without it, more slowly"
        )
    name, on_cluster = stored_table(store, _TABLE)
    store.command(
        f"ALTER TABLE {name} {on_cluster} ADD INDEX IF NOT EXISTS {INDEX} {_INDEXED} "
        "TYPE text(tokenizer = splitByNonAlpha)"
    )


def drop_search_index(store: Store) -> None:
    """Remove the index, and its files.

    Raises:
        StorageError: the database refused.
    """
    name, on_cluster = stored_table(store, _TABLE)
    store.command(f"ALTER TABLE {name} {on_cluster} DROP INDEX IF EXISTS {INDEX}")


def has_search_index(store: Store) -> bool:
    """Return whether an index on texts is known, also where the store is that of a project.

    None is known to a user who may not read the list of indexes, as readers of our own ClickHouse address: their
    searches read all texts.

    Raises:
        StorageError: the database does not answer.
    """
    whole = store.whole if isinstance(store, ProjectStore) else store
    try:
        rows = whole.query(
            "SELECT name FROM system.data_skipping_indices "
            "WHERE database = currentDatabase() AND table = {table:String} AND name = {index:String}",
            {"table": stored_table(whole, _TABLE)[0], "index": INDEX},
        )
    except StorageError as error:
        if error_code(error) == _REFUSED:
            return False
        raise
    return bool(rows)


def narrowing(text: str) -> Mapping[str, str]:
    """Return the parameters of `NARROWED` for a text: patterns that every text with it matches.

    There is none where the text has no run of four letters or digits of ASCII, or a letter of which the other case
    takes more bytes or fewer, such as the Kelvin sign: with these, engines differ.
    """
    if any(len({_size(form) for form in (c, c.lower(), c.upper())}) > 1 for c in text):
        return {}
    longest = max(_RUN.findall(text), key=len, default="")
    if len(longest) < _SHORTEST:
        return {}
    escaped = _SPECIAL.sub(r"\\\1", text.lower())
    return {"word": f"%{longest.lower()}%", "phrase": f"%{escaped}%" if text.isascii() else ""}


def narrowed(store: Store, text: str) -> Mapping[str, str]:
    """Return the parameters of `NARROWED` for a text if an index answers them; none otherwise.

    Raises:
        StorageError: the database does not answer.
    """
    asked = narrowing(text)
    return asked if asked and has_search_index(store) else {}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
