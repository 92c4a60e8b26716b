"""Filters of the run list: each reaches the query, and each link carries them all."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.filters import ORDERS, Filters

if TYPE_CHECKING:
    from collections.abc import Callable

SINCE, UNTIL = "2026-03-01T12:00Z", "2026-03-02T12:00Z"
NARROWING = {
    **{name: f"a {name} & ?" for name in ("project", "framework", "service", "agent", "user")},
    **{
        name: f"a {name} & ?"
        for name in ("session", "version", "decided_by", "basis", "text", "run")
    },
    **dict(outcome="failure", mode="2.6", since=SINCE, until=UNTIL, sort="took"),  # noqa: C408
}
PLACE = {"page": "3", "before": "7", "before_run": "a" * 32}
ALL = {**NARROWING, **PLACE}
FILTERS = Filters.of(ALL)
EMPTY: dict[str, Any] = {
    each: []
    for each in (
        "frameworks",
        "services",
        "agents",
        "outcomes",
        "modes",
        "decisive_agents",
        "bases",
    )
}


def day(number: int) -> datetime:
    return datetime(2026, 3, number, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {}),
        ({"sort": "took", "page": "3", "text": "x", "user": "u", "before_run": "a"}, {}),
        ({"since": "nonsense", "before": "-1"}, {}),
        *(({f"{name}": f" {name} "}, {f"{name}s": [name]}) for name in ("framework", "service")),
        *(({f"{name}": name}, {f"{name}s": [name]}) for name in ("agent", "outcome", "mode")),
        ({"decided_by": "a"}, {"decisive_agents": ["a"]}),
        ({"basis": "rule"}, {"bases": ["rule"]}),
        ({"since": SINCE}, {"since": day(1)}),
        ({"until": UNTIL}, {"until": day(2)}),
        ({"before": "9" * 19, "before_run": "a"}, {"before": 2**63 - 1, "before_run": "a"}),
        (PLACE, {"before": 7, "before_run": "a" * 32}),
    ],
)
def test_what_is_chosen_is_asked_for(given: dict[str, str], more: dict[str, Any]) -> None:
    told = Filters.of(given).parameters()
    assert told == {**EMPTY, **more}
    assert told.keys() <= QUERIES["runs"].params.keys()


@pytest.mark.parametrize(
    ("link", "told"),
    [
        (Filters.query, ALL),
        (Filters.later, {**ALL, "page": "4"}),
        (lambda each: each.with_value("agent", "b"), {**NARROWING, "agent": "b"}),
        (
            lambda each: each.with_value("agent", ""),
            {k: v for k, v in NARROWING.items() if k != "agent"},
        ),
        (
            lambda each: each.after({"StartNs": 12, "TraceId": "b" * 32, "Project": "p"}),
            {**ALL, "before": "12", "before_run": f"{'b' * 32} p"},
        ),
    ],
)
def test_a_link_carries_every_filter(link: Callable[[Filters], str], told: dict[str, str]) -> None:
    assert dict(parse_qsl(link(FILTERS)[1:], strict_parsing=True)) == told
    assert Filters.of(told).query() == link(FILTERS)


def test_a_group_and_a_place_are_told_apart_from_filters() -> None:
    assert FILTERS.group == {name: NARROWING[name] for name in ("user", "session", "version")}
    assert Filters().group == {}
    numbers = {"": 0, "0": 0, "1": 0, "3": 2, "x": 0, "9" * 19: 100_000}
    assert {page: Filters(page=page).number for page in numbers} == numbers
    assert FILTERS.names == [name for name in Filters.__dataclass_fields__ if name not in PLACE]
    chosen = {name: Filters.of({name: value}).chosen for name, value in ALL.items()}
    assert [name for name in chosen if not chosen[name]] == ["sort", *PLACE]
    orders = {sort: Filters(sort=sort).sorting for sort in (*ORDERS, "started", "nonsense")}
    sorted_by = {name: {"sort": name} for name in ("took", "tokens", "steps", "errors")}
    others = dict.fromkeys(("", "cost", "started", "nonsense"))
    assert orders == {**others, "oldest": {"sort": "started", "ascending": 1}, **sorted_by}
    assert Filters.unknown_in([*ALL, "part", "token", "b", "a"]) == ["a", "b"]
