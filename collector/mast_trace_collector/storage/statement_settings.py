"""ClickHouse settings under which every statement runs, where the engine knows them."""

from __future__ import annotations

from typing import Final

SERVER: Final = {
    # The cache confuses conditions with IN (SELECT ...) that differ in a parameter alone: after a
    # filter without matches, other filters had no matches either (seen with ClickHouse 26.9).
    "use_query_condition_cache": "0",
    # Blocks of 1 MB, the default, are so small that sorting merges many of them row by row.
    "preferred_block_size_bytes": str(4 * 1024 * 1024),
}
"""Settings for any ClickHouse."""

EMBEDDED: Final = {
    **SERVER,
    # One more thread for each so many bytes that are free under the engine's limit. The default of
    # 1 GiB leaves one thread to an engine that may use no more than that.
    "max_threads_min_free_memory_per_thread": str(64 * 1024 * 1024),
    # Code that is compiled at its third use has then cost 100 ms, and gains nothing on so little
    # data.
    "compile_expressions": "0",
    "compile_aggregate_expressions": "0",
    "compile_sort_description": "0",
}
"""Settings for the engine in this process."""
