"""Parts of tables that the engine has set aside, because their files were damaged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

logger = logging.getLogger(__name__)

_SET_ASIDE = """
SELECT database, table, name, any(path) AS path FROM system.detached_parts
WHERE database = {database:String} AND startsWith(reason, 'broken')
GROUP BY database, table, name ORDER BY table, name"""


def warn_of_damaged_parts(store: Store) -> int:
    """Log the parts that a database of ours is missing; return their number.

    The engine starts without an unreadable part and does not report it: its rows are just missing.
    """
    found = store.query(_SET_ASIDE, {"database": store.database})
    for row in found:
        logger.error(
            "rows of %s.%s are missing: a part of it was damaged on disk, and the engine has set it "
            "aside as %s. Look for the cause (the system's log, the disk), and restore a backup; "
            "delete that folder when it is of no more use, and this message ends",
            *(row["database"], row["table"], row["path"] or row["name"]),
        )
    return len(found)
