"""The judge's agreement with people on a dashboard is Cohen's kappa, table by table."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store
from verdict_rows import verdict_row

from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

T0 = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
DICE = random.Random(20260302)
# By judge version: how many runs both call failed, only people, only the judge, neither.
TABLES: dict[str, tuple[int, int, int, int]] = {
    "agrees": (4, 0, 0, 6),
    "always no": (0, 0, 0, 5),
    "always yes": (5, 0, 0, 0),
    "never agrees": (0, 3, 4, 0),
    "by chance": (4, 4, 4, 4),
    **{f"drawn {number}": (*(DICE.randrange(0, 25) for _ in range(3)), 1) for number in range(12)},
}


def kappa(both: int, people: int, judge: int, neither: int) -> float | None:
    total = both + people + judge + neither
    yes, no = (both + people) * (both + judge), (people + neither) * (judge + neither)
    chance = Fraction(yes + no, total * total)
    seen = Fraction(both + neither, total)
    return None if chance == 1 else float((seen - chance) / (1 - chance))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    verdicts: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for version, table in TABLES.items():
        kinds = [("failure", "failure"), ("failure", "success"), ("success", "failure")]
        for count, (labelled, judged) in zip(table, [*kinds, ("success", "success")], strict=True):
            for _ in range(count):
                row = verdict_row(len(labels), T0, JudgeVersion=version, Outcome=judged)
                verdicts.append(row)
                label = {"Annotator": "a", "LabelledAt": T0, "Outcome": labelled}
                labels.append({"TraceId": row["TraceId"], **label})
    with new_store(tmp_path_factory.mktemp("agreement")) as opened:
        opened.insert("mast_verdicts", verdicts)
        opened.insert("mast_human_labels", labels)
        yield opened


def test_kappa_and_the_shares_it_is_made_of(store: Store) -> None:
    rows = {row["JudgeVersion"]: row for row in QUERIES["judge_agreement"].run(store)}
    assert rows.keys() == TABLES.keys()
    for version, (both, people, judge, neither) in TABLES.items():
        total = both + people + judge + neither
        found = rows[version]
        assert found["Labels"] == total
        assert found["Agreement"] == pytest.approx((both + neither) / total)
        assert found["HumanFailures"] == pytest.approx((both + people) / total)
        assert found["JudgeFailures"] == pytest.approx((both + judge) / total)
        wanted = kappa(both, people, judge, neither)
        assert found["Kappa"] == (None if wanted is None else pytest.approx(wanted)), version
