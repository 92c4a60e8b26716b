"""Opens the embedded engine: its limits, and the message for a folder that is in use."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from mast_trace_collector.storage.readers import users_file

MIB = 1024 * 1024
DEFAULT_MEMORY_LIMIT = 1024 * MIB
_ZONE = threading.Lock()
"""Held while the process's zone is another one."""
_NO_FOLDER = re.compile(
    r'filesystem error: in \w+: (.+?) \["([^"]+?)(?:/clickhouse-embedded-[^"]*)?"'
)

_CONFIG = """<clickhouse>
    <users_config>{users}</users_config>
    <max_server_memory_usage>{memory}</max_server_memory_usage>
    <mark_cache_size>{mark_cache}</mark_cache_size>
    <uncompressed_cache_size>0</uncompressed_cache_size>
    <query_condition_cache_size>{small_cache}</query_condition_cache_size>
    <primary_index_cache_size>{small_cache}</primary_index_cache_size>
    <mmap_cache_size>64</mmap_cache_size>
    <background_pool_size>2</background_pool_size>
    <background_merges_mutations_concurrency_ratio>1</background_merges_mutations_concurrency_ratio>
    <background_schedule_pool_size>4</background_schedule_pool_size>
    <background_move_pool_size>1</background_move_pool_size>
    <background_fetches_pool_size>1</background_fetches_pool_size>
    <background_common_pool_size>2</background_common_pool_size>
    <background_processing_pool_thread_sleep_seconds_if_nothing_to_do>0.02</background_processing_pool_thread_sleep_seconds_if_nothing_to_do>
    <background_processing_pool_task_sleep_seconds_when_no_work_random_part>0.02</background_processing_pool_task_sleep_seconds_when_no_work_random_part>
    <merge_tree>
        <max_bytes_to_merge_at_max_space_in_pool>{largest_merge}</max_bytes_to_merge_at_max_space_in_pool>
        <number_of_free_entries_in_pool_to_lower_max_size_of_merge>1</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
        <number_of_free_entries_in_pool_to_execute_mutation>1</number_of_free_entries_in_pool_to_execute_mutation>
        <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>1</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
        <merge_max_block_size_bytes>{merge_block}</merge_max_block_size_bytes>
        <vertical_merge_algorithm_min_rows_to_activate>8192</vertical_merge_algorithm_min_rows_to_activate>
        <max_parts_to_merge_at_once>12</max_parts_to_merge_at_once>
    </merge_tree>
    <backups><allowed_path>{backups}</allowed_path></backups>
</clickhouse>
"""


def backups_folder(engine: Path) -> Path:
    """Return the only folder to which the engine of another folder writes backups."""
    return engine.parent / "backups"


@contextmanager
def engine_config(memory_limit: int, engine: Path, database: str) -> Iterator[Path]:
    """Write the engine's start-up configuration while it starts: its own defaults are a server's.

    The files are not in its folder, whose name may contain text that chdb takes for the end of the
    file's name; and they exist only until they are read, so that a killed process leaves nothing
    behind.

    A table that finds both threads of the pool busy asks again after 20 ms, and then ever later. By default it waits
    for up to 1.1 s, so that an erasure, which changes one part after another, took 20 s with nearly no work.

    The engine takes the zone of ``TZ`` and overlooks the one of its configuration. Partitions are days of that zone, so that
    rows would be hidden from a process in another one: while the engine starts, ``TZ`` is UTC.

    Merges go column by column from 8,192 rows on, not from 131,072, and take in 12 parts, not 100:
    whole rows of ten small parts with long texts need 250 MiB, their columns one by one 115.
    """
    with tempfile.TemporaryDirectory(prefix="mast-trace-") as folder:
        users = Path(folder, "users.xml")
        users.write_text(users_file(database), encoding="utf-8")
        config = Path(folder, "config.xml")
        text = _CONFIG.format(
            users=users,
            memory=memory_limit,
            mark_cache=max(memory_limit // 16, 8 * MIB),
            small_cache=max(memory_limit // 64, 4 * MIB),
            merge_block=4 * MIB,
            largest_merge=10 * 1024 * MIB,
            backups=escape(f"{backups_folder(engine)}/"),
        )
        config.write_text(text, encoding="utf-8")
        with _ZONE:
            zone = os.environ.get("TZ")
            os.environ["TZ"] = "UTC"
            try:
                yield config
            finally:
                del os.environ["TZ"]
                if zone is not None:
                    os.environ["TZ"] = zone


def why_not_loaded(error: Exception) -> str | None:
    """Return why the folder for temporary files does not serve the engine as it is loaded; None for other errors.

    The engine's own text names the folder amid the places of its code.
    """
    if isinstance(error, OSError):
        why, folder = error.strerror, tempfile.gettempdir()
    elif found := _NO_FOLDER.search(str(error)):
        why, folder = found.groups()
    else:
        return None
    return f"{why}: {folder}, the folder for temporary files; name another one by TMPDIR"


def tune_allocator() -> None:
    """Configure the engine's allocator, before the engine is loaded, to keep the memory of inserts.

    By default it returns blocks of 64 MiB at once, and for the next insert the kernel has to clear
    as many new pages, 4 KiB at a time; smaller blocks are kept for five seconds, in several arenas,
    at the peak size of inserts and merges. Settings of the user's take precedence.
    """
    os.environ.setdefault(
        "JE_MALLOC_CONF",
        f"oversize_threshold:0,narenas:{os.cpu_count() or 2},dirty_decay_ms:500,muzzy_decay_ms:0",
    )


def holder(path: str) -> str | None:
    """Return the process that holds the engine's folder; None if none does."""
    status = Path(path, "status")
    try:
        with status.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        found = re.search(r"PID: (\d+)", status.read_text(errors="replace"))
        return f"process {found[1]}" if found else "another process"
    except OSError:
        return None
    return None
