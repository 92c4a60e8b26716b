"""`retain`: by age and by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.storage import Store

if TYPE_CHECKING:
    from conftest import CLI


def test_an_age_becomes_a_property_of_the_tables(own_cli: CLI) -> None:
    assert own_cli.json("retain", "--days", "30", "--size", "1TB") == {"days": 30, "dropped": []}
    with Store.open(own_cli.recorded.url) as store:
        (row,) = store.query("SELECT engine_full FROM system.tables WHERE name = 'otel_traces'")
    assert "toIntervalDay(30)" in row["engine_full"]
    out = own_cli.out("retain", "--days", "0", "--size", "512 MiB")
    assert "kept for ever" in out
    assert "Dropped: nothing" in out


def test_a_dry_run_says_how_much_and_changes_nothing(own_cli: CLI) -> None:
    told = own_cli.json("retain", "--days", "30", "--size", "1KB", "--dry-run")
    assert told["dry_run"] is True
    assert told["by_age"] == {"days": [], "runs": 0, "rows": {}, "bytes": 0, "is_more": False}
    assert set(told["by_size"]) == {"days", "runs", "rows", "bytes", "is_more"}
    assert own_cli.json("retain", "--days", "0", "--dry-run")["by_size"] is None
    out = own_cli.out("retain", "--days", "30", "--dry-run")
    assert "By age: 0 runs" in out
    assert "Nothing was changed." in out
    with Store.open(own_cli.recorded.url) as store:
        (row,) = store.query("SELECT engine_full FROM system.tables WHERE name = 'otel_traces'")
    assert "TTL" not in row["engine_full"]


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(("size", "stays"), [("1KB", True), ("1TB", False)])
def test_a_newest_day_that_is_more_than_the_limit_is_said_to_stay(
    own_cli: CLI, more: tuple[str, ...], size: str, stays: bool
) -> None:
    assert ("newest day stays" in own_cli.out("retain", "--size", size, *more)) is stays
