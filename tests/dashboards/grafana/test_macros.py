"""Macros expand as the plugin expands them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from grafana_macros import Selection

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
END = datetime(2026, 1, 3, 3, 4, 5, tzinfo=timezone.utc)
S, E = int(START.timestamp()), int(END.timestamp())


def expand(sql: str, **variables: list[str]) -> str:
    options = {"v": ["a", "b'c"]}
    return Selection(START, END, 10, variables=variables, options=options).expand(sql)


@pytest.mark.parametrize(
    ("sql", "expanded"),
    [
        ("$__fromTime", f"toDateTime({S})"),
        ("$__toTime", f"toDateTime({E})"),
        ("$__fromTime_ms", f"fromUnixTimestamp64Milli({S}000)"),
        ("$__toTime_ms", f"fromUnixTimestamp64Milli({E}000)"),
        ("$__timeFilter(t)", f"t >= toDateTime({S}) AND t <= toDateTime({E})"),
        (
            "$__timeFilter_ms(t)",
            f"t >= fromUnixTimestamp64Milli({S}000) AND t <= fromUnixTimestamp64Milli({E}000)",
        ),
        ("$__dateFilter(d)", "d >= toDate('2026-01-02') AND d <= toDate('2026-01-03')"),
        (
            "$__dt(d, t)",
            (
                "(d >= toDate('2026-01-02') AND d <= toDate('2026-01-03')) AND "
                f"(t >= toDateTime({S}) AND t <= toDateTime({E}))"
            ),
        ),
        ("$__timeInterval(t)", "toStartOfInterval(toDateTime(t), INTERVAL 10 second)"),
        (
            "$__timeInterval_ms(t)",
            "toStartOfInterval(toDateTime64(t, 3), INTERVAL 10000 millisecond)",
        ),
        ("GROUP BY $__interval_s", "GROUP BY 10"),
        (
            "$__timeFilter(toDate(t))",
            f"toDate(t) >= toDateTime({S}) AND toDate(t) <= toDateTime({E})",
        ),
        ("$__unknown(t)", "$__unknown(t)"),
        ("SELECT '-- $__fromTime'", f"SELECT '-- toDateTime({S})'"),
        ("SELECT 1 -- $__fromTime", "SELECT 1 " + " " * len("-- $__fromTime")),
    ],
)
def test_a_macro(sql: str, expanded: str) -> None:
    assert expand(sql) == expanded


def test_a_condition_stands_only_while_not_all_are_chosen() -> None:
    sql = "WHERE $__conditionalAll(f(x) IN (${v:singlequote}), $v)"
    assert expand(sql, v=["$__all"]) == "WHERE 1=1"
    assert expand(sql, v=["a"]) == "WHERE f(x) IN ('a')"


def test_an_open_bracket_is_an_error() -> None:
    with pytest.raises(ValueError, match="not closed"):
        expand("$__conditionalAll(a = 1, $v", v=["a"])


def test_values_are_quoted() -> None:
    assert expand("[${v:singlequote}]", v=["$__all"]) == "['a','b\\'c']"
    assert expand("[${v:singlequote}]", v=[]) == "[]"
