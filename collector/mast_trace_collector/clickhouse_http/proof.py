"""Proof that the tree of a statement shows every name in it, which the gate relies on.

Engines before 26.7 leave out the ORDER BY and PARTITION BY of a window. Others may leave out
something else. So at the start one statement is parsed that calls a function, and passes it by
name, in each place where a SELECT may have one; the tree has to show all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.tree import Node

_PLACES: Final = """
WITH ? AS a, c AS (SELECT ?), (x -> ?) AS f
SELECT ? AS b, arrayMap(hostName, [?]), arrayMap(x -> ?, [1]), [?], (?, 1),
    sum(?) FILTER (WHERE ?), quantile(?)(1), (SELECT ?), EXISTS (SELECT ?),
    sum(1) OVER (PARTITION BY ? ORDER BY ? ROWS BETWEEN ? PRECEDING AND ? FOLLOWING),
    CASE ? WHEN ? THEN ? ELSE ? END, CAST(?, 'String'), ?::String,
    b[?], INTERVAL ? DAY, * REPLACE (? AS r), COLUMNS('r') REPLACE (? AS r)
FROM view(SELECT ?) AS t LEFT JOIN numbers(?) AS j ON ? = ?
    INNER JOIN (SELECT ? AS k) AS s USING (k) ARRAY JOIN [?] AS e
PREWHERE ? WHERE ? IN (?) AND a IN (SELECT ?) GROUP BY ? HAVING ?
WINDOW w AS (PARTITION BY ? ORDER BY ?) QUALIFY ?
ORDER BY ? WITH FILL FROM ? TO ? STEP ? INTERPOLATE (b AS ?)
LIMIT ? OFFSET ? BY ? LIMIT ?, ?
UNION ALL SELECT DISTINCT ON (?) ? FROM numbers(1)
UNION ALL SELECT 1 GROUP BY GROUPING SETS ((?), (?))
EXCEPT SELECT ? ORDER BY ?
"""
"""A question mark marks a place where a call may stand."""
_BEFORE, *_AFTER = _PLACES.split("?")
EVERYWHERE: Final = _BEFORE + "".join(
    f"hostName({number}){text}" for number, text in enumerate(_AFTER)
)
"""A SELECT that is only parsed; its calls are numbered."""


def prove(tree: Node) -> None:
    """Check that the tree of `EVERYWHERE` shows every call in it.

    Raises:
        ConfigurationError: a call is missing, so that names could pass unseen.
    """
    found = [node for node in tree.walk() if node.name == "hostName"]
    called = {node.children[0].children[0].label for node in found if node.kind == "Function"}
    missing = [n for n in range(len(_AFTER)) if f"Literal UInt64_{n}" not in called]
    if missing or not any(node.kind == "Identifier" for node in found):
        raise ConfigurationError(
            "this version of the embedded engine does not show the endpoint all that a statement holds "
            f"(calls {missing} are not seen): install chdb 4.4 or later, or use a ClickHouse server "
            "(MAST_TRACE_DATABASE_URL)"
        )
