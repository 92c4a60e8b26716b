"""Patterns, separating actions and regressions: exact numbers on runs with known findings."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from math import comb, log
from typing import TYPE_CHECKING, Any

import pytest
from pattern_runs import NOW, Run, add_runs, index, patterns
from scipy.stats import binom, hypergeom
from stores import new_store

from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.found_pattern import find_pattern, set_state
from mast_trace_dashboards.printable import UNSAFE
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.exact_tests import at_least, evidence, wilson, with_holm
from mast_trace_dashboards.run_names import NotFound
from mast_trace_dashboards.web.app import from_step, whole_run
from mast_trace_judge import intervals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store

SEARCH: dict[str, Any] = {"code": "2.6", "tool": "search"}
SKIP: dict[str, Any] = {"code": "1.1", "agent": "planner"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Forty runs of a project with two patterns and three single texts, five of another project.

    7 of 8 runs with the failing search failed, 2 of 5 with a skipped review, and 4 of the others.
    """
    with new_store(tmp_path_factory.mktemp("patterns")) as opened:
        runs = [
            Run(100 + n, **SEARCH, text=f"timed out after {n} s", project="two") for n in range(5)
        ]
        for n in range(40):
            at = NOW - timedelta(days=12 - n // 4, minutes=n)
            common: dict[str, Any] = {"project": "one", "at": at, "version": f"1.{n // 20}"}
            outcome = "failure" if n in {0, 5, 10, 15} else "success"
            if n in range(20, 28):
                failed = "success" if n == 27 else "failure"
                text = f"timed out after {n} s"
                runs.append(Run(n + 1, **SEARCH, text=text, outcome=failed, **common))
            elif n in range(30, 35):
                failed = "failure" if n < 32 else "success"
                text = f"I skip the review of order {n}."
                runs.append(Run(n + 1, **SKIP, text=text, outcome=failed, **common))
            elif n in {36, 37, 38}:
                text = ("The moon is green.", "Nobody told me of it at all!", "17 is prime")[n - 36]
                runs.append(Run(n + 1, **SKIP, text=text, outcome=outcome, **common))
            else:
                runs.append(Run(n + 1, outcome=outcome, **common))
        add_runs(opened, runs)
        index(opened)
        yield opened


def test_patterns_are_places_with_recurring_texts(store: Store) -> None:
    """Texts that do not recur are one pattern of their place together."""
    found = [
        (row["Code"], row["Agent"], row["Peer"], row["Tool"], row["Text"], row["Runs"])
        for row in patterns(store, projects=["one"])
    ]
    assert found == [
        ("2.6", "writer", "", "search", "timed out after <number> s", 8),
        ("1.1", "planner", "critic", "", "I skip the review of order <number>", 5),
        ("1.1", "planner", "critic", "", "", 3),
    ]


def test_shares_tests_and_places_are_exact(store: Store) -> None:
    search, skip, other = patterns(store, projects=["one"])
    assert (search["Examined"], search["Share"]) == (40, 0.2)
    assert search["Low"] == pytest.approx(0.1050, abs=1e-4)
    assert search["High"] == pytest.approx(0.3476, abs=1e-4)
    assert (search["Failed"], search["Succeeded"]) == (7, 1)
    assert (search["KnownFailed"], search["KnownSucceeded"]) == (13, 27)
    raw = [hypergeom.sf(k - 1, 40, 13, n) for k, n in ((7, 8), (2, 5), (0, 3))]
    assert [row["PValue"] for row in (search, skip, other)] == pytest.approx(raw)
    assert search["Corrected"] == pytest.approx(3 * raw[0])
    assert skip["Corrected"] == pytest.approx(min(1.0, 2 * raw[1]))
    assert (search["TypicalStep"], search["Decided"], search["DecidedHere"]) == (0, 7, 7)
    assert search["Versions"] == ["1.1"]
    assert "7 of 8 failed, 6 of 32 others: more often than by chance" in found_pattern.contrast(
        search
    )
    assert "no difference shown" in found_pattern.contrast(skip)


@pytest.mark.parametrize(
    ("days", "of_days", "trends"),
    [
        (8, 99, ["rising", "steady"]),  # 0.0016 and 0.024
        (6, 99, ["steady", "rising"]),  # 0.040 for a fall, and 0.0012
        (5, 7.5, ["falling", "steady"]),  # 0.0039
        (99, 99, ["unknown"] * 2),
        (0, 99, ["unknown"] * 2),
    ],
)
def test_a_trend_is_told_from_chance_at_one_percent(
    store: Store, days: int, of_days: float, trends: list[str]
) -> None:
    """Both ways, against the days before in the range; without runs on one side there is none."""
    since = NOW - timedelta(days=of_days)
    search, skip, _ = patterns(store, projects=["one"], recent_days=days, since=since)
    assert [search["Trend"], skip["Trend"]] == trends


def test_a_project_has_its_own_patterns(store: Store) -> None:
    confined = store_of_project(store, "two")
    (row,) = patterns(confined)
    assert (row["Project"], row["Runs"], row["Examined"]) == ("two", 5, 5)
    assert row["PatternId"] not in {each["PatternId"] for each in patterns(store, projects=["one"])}
    theirs = patterns(store, projects=["one"])[0]["PatternId"]
    assert QUERIES["pattern_runs"].run(confined, pattern=theirs) == []
    with pytest.raises(NotFound):
        find_pattern(confined, theirs)
    with pytest.raises(NotFound):
        set_state(confined, theirs, "acknowledged", "eve")
    assert row["PValue"] is None
    assert found_pattern.contrast(row).startswith("unknown")


def test_the_range_and_the_filters_leave_the_ids_as_they_are(store: Store) -> None:
    """A text that recurs in all recurs in each part."""
    (all_of_it,) = patterns(store, projects=["one"], modes=["2.6"])
    since = NOW - timedelta(days=6, hours=6)
    (late,) = patterns(store, projects=["one"], modes=["2.6"], since=since, min_runs=1)
    assert late["PatternId"] == all_of_it["PatternId"]
    assert late["Runs"] < all_of_it["Runs"]
    assert late["FirstSeen"] == all_of_it["FirstSeen"]
    assert patterns(store, services=["nobody's"]) == []


def test_a_pattern_shows_commands_for_its_own_runs(store: Store) -> None:
    found = find_pattern(store, patterns(store, projects=["one"])[0]["PatternId"][:10])
    confirm, inject = (line for _, line in found.commands)
    assert confirm == f"mast-trace confirm {25:032x} --project=one -- COMMAND"
    assert found.runs[0]["TraceId"] == f"{25:032x}"
    assert "--operator 2.6 --project=one" in inject
    assert found.successful in inject
    assert found.runs[0]["RunStart"] >= found.runs[-1]["RunStart"]


@pytest.mark.parametrize(
    ("recorded", "named"),
    [
        ("`touch a`$(touch b)\n\x1b[2J\x03\x15';touch c;'\"\\!! \u202e\ud55c", None),
        ("-rf 'x'", "RUN"),
        ("--set=command=touch", "RUN"),
    ],
)
def test_a_copied_command_orders_nothing_else(
    tmp_path: Path, recorded: str, named: str | None
) -> None:
    """A shell reads id and project as one word each, a command neither as an option, a terminal no key in them."""
    offered = [*whole_run(recorded, recorded), *from_step(recorded, recorded, 3)]
    for command in (each.text for each in offered):
        assert not UNSAFE.search(command.replace("\n", "\x00"))
        script = f"mast-trace() {{ printf '%s\\0' \"$@\"; }}\n{command}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, stdout=-1)
        words = done.stdout.decode().split("\0")
        assert (words[1], words[-4]) == (named or recorded, f"--project={recorded}")
    assert not [*tmp_path.iterdir()]


def test_actions_that_separate_runs_have_ochiai_and_an_exact_test(store: Store) -> None:
    rows = QUERIES["separating_actions"].run(store, projects=["one"], below=1.1)
    first = next(
        row for row in rows if row["Action"] == "failing tool search" and not row["Absent"]
    )
    assert (first["FailedRuns"], first["AllFailed"], first["PassedRuns"]) == (7, 13, 1)
    assert first["Ochiai"] == pytest.approx(7 / (13 * 8) ** 0.5)
    assert first["PValue"] == pytest.approx(hypergeom.sf(6, 40, 13, 8))
    assert first["Corrected"] >= first["PValue"]
    without = next(row for row in rows if row["Action"] == "failing tool search" and row["Absent"])
    assert (without["FailedRuns"], without["PassedRuns"]) == (6, 26)
    assert rows[0]["Action"] in {"failing tool search", "message to critic"}


def test_an_exact_test_is_the_sum_of_its_ways(store: Store) -> None:
    """Every table of few runs is tried, and large ones as scipy computes them."""
    few = [
        (k, m, n, a)
        for a in (0, 1, 5, 9)
        for m in range(a + 1)
        for n in range(a + 1)
        for k in range(min(m, n) + 2)
    ]
    many = [
        (200, 300, 20_000, 250_000),
        (120, 5000, 9000, 250_000),
        (1, 1, 1, 250_000),
        (90, 5000, 9000, 250_000),
    ]
    columns = [str([case[place] for case in few + many]) for place in range(4)]
    got = store.query(f"SELECT {at_least(*columns)} AS p")[0]["p"]
    wanted = [
        sum(comb(m, x) * comb(a - m, n - x) for x in range(k, min(m, n) + 1)) / comb(a, n)
        for k, m, n, a in few
    ]
    assert got[: len(few)] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert got[len(few) :] == pytest.approx(
        [hypergeom.sf(k - 1, a, m, n) for k, m, n, a in many], rel=1e-7
    )


@pytest.mark.parametrize(
    ("seen", "tried", "rate"),
    [(5, 300, 0.001), (40, 300, 0.05), (3000, 30_000, 0.09), (1, 1, 0.25), (9, 9, 0.5), (3, 6, 0.5), (0, 0, 0.5)],
)  # fmt: skip
def test_evidence_is_a_binomial_tail(store: Store, seen: int, tried: int, rate: float) -> None:
    (row,) = store.query(f"SELECT {evidence(str(seen), str(tried), str(rate))} AS e")
    wanted = -binom.logsf(seen - 1, tried, rate) / log(10) if seen > tried * rate else 0
    assert row["e"] == pytest.approx(wanted, rel=1e-6)


def test_the_interval_of_a_share_is_that_of_python(store: Store) -> None:
    """Nothing tried has none; of all or of no runs it ends at 1 or at 0."""
    counts = [(k, n) for n in (0, 1, 2, 20, 4000) for k in sorted({0, n // 3, n})]
    low, high = wilson("k", "n")
    rows = store.query(
        f"SELECT {low} AS low, {high} AS high FROM (SELECT arrayJoin({counts}) AS c, c.1 AS k, c.2 AS n)"
    )
    for (k, n), row in zip(counts, rows, strict=True):
        wanted = intervals.wilson(k, n) if n else (None, None)
        assert (row["low"], row["high"]) == (pytest.approx(wanted, abs=1e-6) if n else wanted)
        assert n == 0 or 0 <= row["low"] < row["high"] <= 1


def test_each_family_of_tests_is_corrected_by_itself(store: Store) -> None:
    """Holm's: no probability below a smaller one's, none above 1, and one that is unknown is no test."""
    families = {"a": [0.01, 0.04, 0.03, 0.5, None], "b": [0.6, 0.6], "c": [0.02]}
    given = ", ".join(f"('{name}', {p or 'NULL'})" for name, of in families.items() for p in of)
    rows = f"SELECT t.1 AS f, t.2 AS p FROM (SELECT arrayJoin([{given}]) AS t)"

    def told(of: str) -> list[tuple[Any, ...]]:
        return sorted(
            (r["f"], r["p"] or 9, r["h"]) for r in store.query(with_holm(rows, "p", "h", of))
        )

    def holm(values: list[float]) -> list[float]:
        steps = [min(1.0, p * (len(values) - place)) for place, p in enumerate(values)]
        return [max(steps[: place + 1]) for place in range(len(steps))]

    wanted = []
    for name, of in families.items():
        known = sorted(p for p in of if p)
        wanted += [(name, p, pytest.approx(h)) for p, h in zip(known, holm(known), strict=True)]
        wanted += [(name, 9, None)] * of.count(None)
    assert told("f") == wanted
    together = holm(sorted(p for of in families.values() for p in of if p))
    assert sorted(h for _, _, h in told("") if h) == pytest.approx(together)


def test_words_say_nothing_empty(store: Store) -> None:
    for row in patterns(store):
        for told in (
            found_pattern.title,
            found_pattern.share,
            found_pattern.trend,
            found_pattern.state,
            found_pattern.decisive,
            found_pattern.confirmed,
        ):
            assert told(row)
            assert "None" not in told(row)
