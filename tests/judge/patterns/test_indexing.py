"""Each judged run has one row, whatever is killed, judged again or erased."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from judge.worker.test_worker_database import refusal
from pattern_runs import NOW, Run, add_run, add_runs, judge

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.moments import nanoseconds
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.runs import record_outcome, run_summary
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.patterns import indexing
from mast_trace_judge.patterns.indexing import PatternIndexer, TextMiner, hits_of
from mast_trace_judge.patterns.naming import pattern_steps
from mast_trace_judge.side_jobs import IndexPace
from mast_trace_judge.store.verdicts import load_latest, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fixture_types import Logs, Patch

    from mast_trace_collector.storage import Store

ROWS = """SELECT TraceId, toString(Project) AS P, Hits.Code AS Codes, Hits.Agent AS Agents, Hits.Peer AS Peers,
    Hits.Tool AS Tools, Hits.Text AS Texts, Hits.Template AS Templates, toString(Version) AS V,
    toString(Outcome) AS O, arrayZip(Actions.Agent, Actions.Name) AS Actions
    FROM mast_pattern_runs FINAL ORDER BY TraceId, P"""


def rows(store: Store) -> list[dict[str, Any]]:
    return store.query(ROWS)


def index(store: Store) -> int:
    indexer, done = PatternIndexer(store), 0
    while written := indexer.index():
        done += written
    return done


def test_a_row_has_place_text_version_outcome_and_actions(store: Store) -> None:
    add_run(
        store,
        1,
        code="2.6",
        tool="search",
        text="timed out after 30 s",
        version="1.2",
        outcome="failure",
    )
    add_run(store, 2, code="1.1", agent="planner", text="I skip the review of order 7.")
    add_run(store, 3)
    assert index(store) == 3
    tool, message, healthy = rows(store)
    assert (tool["Codes"], tool["Agents"], tool["Tools"]) == (["2.6"], ["writer"], ["search"])
    assert (tool["Texts"], tool["V"], tool["O"]) == (
        ["timed out after <number> s"],
        "1.2",
        "failure",
    )
    assert ("writer", "failing tool search") in [tuple(pair) for pair in tool["Actions"]]
    assert (message["Agents"], message["Peers"], message["Tools"]) == (
        ["planner"],
        ["critic"],
        [""],
    )
    assert message["Texts"] == ["I skip the review of order <number>"]
    assert message["Templates"][0] != 0
    assert ("planner", "message to critic") in [tuple(pair) for pair in message["Actions"]]
    assert healthy["Codes"] == []


@pytest.mark.parametrize(
    ("given", "quote", "text"),
    [
        ({"text": "I skip it. I rest."}, "I skip it.", "I skip it."),
        ({"text": "I skip it."}, "", "I skip it."),
        ({"tool": "search"}, "I skip it.", ""),
        ({"tool": "search", "text": "timed out"}, "I skip it.", "timed out"),
    ],
)
def test_the_text_of_a_place(store: Store, given: dict[str, Any], quote: str, text: str) -> None:
    """A tool's error; of a message the passage that is quoted, else all of it."""
    judge(store, add_run(store, 1, judged=False, **given), code="2.6", quote=quote)
    assert index(store) == 1
    assert rows(store)[0]["Texts"] == [text]


def test_a_second_pass_finds_nothing(store: Store) -> None:
    add_runs(store, (Run(number, code="2.6", tool="search") for number in range(1, 8)))
    assert index(store) == 7
    assert index(store) == 0
    assert PatternIndexer(store).index(at_all=True) == 0


def test_only_a_pass_through_all_finds_a_verdict_that_comes_late(store: Store) -> None:
    """Such as one of a worker whose clock is behind by more than a quarter of an hour."""
    indexer = PatternIndexer(store)
    add_run(store, 1)
    assert indexer.index() == 1
    late = add_run(store, 2, judged=False)
    verdict = load_latest(store, add_run(store, 3))
    assert verdict
    summary = run_summary(store, late)
    assert summary
    hour = timedelta(hours=1)
    changed = {"trace_id": late, "fingerprint": summary.fingerprint}
    changed |= {"judged_at": verdict.judged_at - hour}
    save(store, [verdict.model_copy(update=changed)])
    assert [indexer.index() for _ in range(2)] == [1, 0]
    assert [indexer.index(at_all=True) for _ in range(2)] == [1, 0]


def test_a_pass_that_is_killed_anywhere_doubles_nothing(store: Store, monkeypatch: Patch) -> None:
    """Also where the rows were written, and the process was killed before it knew."""
    texts = enumerate((f"timed out after {number} s" for number in range(1, 8)), 1)
    add_runs(store, (Run(number, "2.6", tool="search", text=text) for number, text in texts))

    class Killed(BaseException):
        pass

    original = type(store).insert

    def insert_and_die(self: Store, *args: Any, **more: Any) -> int:
        original(self, *args, **more)
        raise Killed

    indexer = PatternIndexer(store)
    indexer.index(limit=2)
    with monkeypatch.context() as patched:
        patched.setattr(type(store), "insert", insert_and_die)
        with pytest.raises(Killed):
            indexer.index(limit=3)
    assert index(store) == 2
    found = rows(store)
    assert [row["TraceId"] for row in found] == [f"{number:032x}" for number in range(1, 8)]
    assert len({row["Templates"][0] for row in found}) == 1


def test_two_processes_that_index_the_same_runs_double_nothing(store: Store) -> None:
    add_runs(store, (Run(number, code="2.6", tool="search") for number in range(1, 6)))
    one, other = PatternIndexer(store), PatternIndexer(store)
    one.index()
    other._write(
        [
            {
                "Project": "",
                "TraceId": f"{number:032x}",
                "Begin": nanoseconds(NOW - timedelta(hours=2)),
                "End": nanoseconds(NOW),
            }
            for number in range(1, 6)
        ]
    )
    assert len(rows(store)) == 5


def test_a_run_that_is_judged_again_has_the_newest_verdicts_places(store: Store) -> None:
    trace = add_run(store, 1, code="2.6", tool="search")
    index(store)
    record_outcome(store, trace, "success")
    judge(store, trace, code="1.3")
    assert index(store) == 1
    (row,) = store.query(
        "SELECT Hits.Code AS Codes, toString(Outcome) AS O FROM mast_pattern_runs ORDER BY JudgedAt DESC LIMIT 1"
    )
    assert (row["Codes"], row["O"]) == (["1.3"], "success")


def test_an_unscored_run_is_in_no_share(store: Store) -> None:
    trace = add_run(store, 1, code="2.6", tool="search")
    store.command(
        "INSERT INTO mast_verdicts (Project, TraceId, Fingerprint, JudgeVersion, JudgedAt, Status, RunStart, RunEnd, "
        "Examined) SELECT Project, TraceId, Fingerprint, 'v2', now64(3) + 1, 'unscored', RunStart, RunEnd, Examined "
        "FROM mast_verdicts"
    )
    index(store)
    (row,) = store.query("SELECT TraceId, ExaminedBits, Hits.Code AS Codes FROM mast_pattern_runs")
    assert (row["TraceId"], row["ExaminedBits"], row["Codes"]) == (trace, 0, [])


def test_the_same_trace_id_in_two_projects_is_two_runs(store: Store) -> None:
    add_run(store, 1, code="2.6", tool="search", project="one")
    add_run(store, 1, code="1.1", agent="planner", text="I skip it.", project="two")
    index(store)
    assert [(row["P"], row["Codes"], row["Agents"]) for row in rows(store)] == [
        ("one", ["2.6"], ["writer"]),
        ("two", ["1.1"], ["planner"]),
    ]


def test_an_erased_run_is_gone_and_so_is_a_sentence_that_quotes_it(store: Store) -> None:
    for number in (1, 2):
        add_run(store, number, code="2.6", tool="search", at=NOW - timedelta(days=number))
    index(store)
    for pattern, traces in (("a", [1]), ("b", [1, 2]), ("c", [2])):
        named = [f"{number:032x}" for number in traces]
        row = {"Project": "", "PatternId": pattern, "TraceIds": named, "RunEnd": NOW}
        store.insert("mast_pattern_names", [row])
    erasure.erase(store, *erasure.of_runs(store, [f"{1:032x}"]))
    assert [row["TraceId"] for row in rows(store)] == [f"{2:032x}"]
    left = store.query("SELECT PatternId FROM mast_pattern_names")
    assert [row["PatternId"] for row in left] == ["c"]
    erasure.erase(store, erasure.before(NOW - timedelta(days=1)))
    assert rows(store) == []
    assert store.query("SELECT PatternId FROM mast_pattern_names") == []
    assert index(store) == 0


class Poison:
    """Lets each statement fail that concerns one run, or the making of its row."""

    def __init__(self, store: Store, monkeypatch: Patch, error: Exception) -> None:
        self.trace = f"{3:032x}"
        query, insert, row = store.query, store.insert, indexing._row

        def queried(sql: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
            if where == "reading" and self.trace in (params or {}).get("traces", ()):
                raise error
            return query(sql, params, **more)

        def inserted(table: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> int:
            bad = [each for each in rows if each["TraceId"] == self.trace and "Steps" in each]
            if where == "storing" and bad:
                raise error
            return insert(table, rows, **more)

        def made(verdict: Mapping[str, Any], *more: Any) -> dict[str, Any]:
            if where == "making" and verdict["TraceId"] == self.trace:
                raise error
            return row(verdict, *more)

        where = ""

        def at(place: str) -> None:
            nonlocal where
            where = place

        self.at = at
        monkeypatch.setattr(store, "query", queried)
        monkeypatch.setattr(store, "insert", inserted)
        monkeypatch.setattr(indexing, "_row", made)


@pytest.mark.parametrize("place", ["reading", "making", "storing"])
@pytest.mark.parametrize("error", [refusal(407), ValueError("a row that nobody thought of")])
def test_a_run_that_breaks_patterns_is_left_out_alone_with_its_reason(
    store: Store, monkeypatch: Patch, caplog: Logs, place: str, error: Exception
) -> None:
    add_runs(store, (Run(number, code="2.6", tool="search") for number in range(1, 8)))
    poison = Poison(store, monkeypatch, error)
    verdict = load_latest(store, poison.trace)
    poison.at(place)
    assert PatternIndexer(store).index() == 7
    poison.at("")
    (left_out,) = [row for row in rows(store) if not row["Codes"]]
    assert left_out["TraceId"] == poison.trace
    assert {row["TraceId"] for row in rows(store)} == {f"{number:032x}" for number in range(1, 8)}
    assert PatternIndexer(store).index(at_all=True) == 0
    (said,) = [each for each in caplog.records if each.action == "run_left_out_of_patterns"]  # type: ignore[attr-defined]
    assert poison.trace in said.getMessage()
    assert str(error) in said.getMessage()
    assert load_latest(store, poison.trace) == verdict
    judge(store, poison.trace, code="1.3")
    assert index(store) == 1, "a new verdict is tried again"


def test_a_run_too_large_now_stays_due_and_stops_no_other(store: Store, monkeypatch: Patch) -> None:
    add_runs(store, (Run(number, code="2.6", tool="search") for number in range(1, 8)))
    poison = Poison(store, monkeypatch, refusal(241))
    poison.at("reading")
    with pytest.raises(StorageError):
        PatternIndexer(store).index()
    assert len(rows(store)) == 6
    poison.at("")
    assert index(store) == 1
    assert all(row["Codes"] for row in rows(store))


@pytest.mark.parametrize("error", [refusal(159), refusal(60), OSError("too many open files")])
def test_the_database_costs_no_run(store: Store, monkeypatch: Patch, error: Exception) -> None:
    """A time-out, and an error about all runs such as a missing table."""
    add_runs(store, (Run(number, code="2.6", tool="search") for number in range(1, 8)))
    query = store.query

    def failing(sql: str, *args: Any, **more: Any) -> Any:
        if "otel_traces" in sql:
            raise error
        return query(sql, *args, **more)

    monkeypatch.setattr(store, "query", failing)
    with pytest.raises(type(error)):
        PatternIndexer(store).index()
    monkeypatch.undo()
    assert rows(store) == []
    assert index(store) == 7


def test_a_worker_looks_at_once_after_judging_and_else_every_ten_seconds(store: Store) -> None:
    now = [1000.0]
    pace = IndexPace(PatternIndexer(store).index, clock=lambda: now[0])
    add_run(store, 1, code="2.6", tool="search")
    assert pace.keep(judged=False) == 1
    assert pace.keep(judged=False) == 0
    add_run(store, 2, code="2.6", tool="search")
    now[0] += 1
    assert pace.keep(judged=False) == 0
    assert pace.keep(judged=True) == 1
    add_run(store, 3, code="2.6", tool="search")
    now[0] += 11
    assert pace.keep(judged=False) == 1


async def test_a_worker_looks_for_patterns_of_what_it_has_judged(store: Store) -> None:
    stored = [0]
    step = pattern_steps(store, Judge(JudgeConfig()), WorkerConfig(), lambda: stored[0])["patterns"]
    assert not await step()
    for stored[0] in (1, 2):
        add_run(store, stored[0], code="2.6", tool="search")
        assert await step()


def test_a_count_of_an_action_separates_runs_that_all_have_the_action(store: Store) -> None:
    runs = []
    for number in range(1, 41):
        outcome = "failure" if number <= 16 else "success"
        repeated = 4 if number <= 14 else number % 3 + 1
        runs.append(Run(number, tool="search", outcome=outcome, times=repeated))
    add_runs(store, runs)
    index(store)
    rows = QUERIES["separating_actions"].run(store)
    assert (rows[0]["Agent"], rows[0]["Action"]) == ("writer", "tool search, 4 times or more")
    assert (rows[0]["FailedRuns"], rows[0]["PassedRuns"]) == (14, 0)
    assert all(row["Corrected"] < 0.05 for row in rows)


def test_the_places_of_a_run_stand_in_the_order_of_their_steps() -> None:
    """A verdict may name them in another order; of places alike, queries count the first."""
    lists = {
        "Modes.Code": ["2.6", "1.1", "3.2"],
        "Modes.Probability": [0.9, 0.8, 0.7],
        "Modes.Steps": [[7, 9], [2], [4]],
        "Modes.SpanIds": [[], [], []],
        "Modes.Quotes": [[], [], []],
    }
    verdict = {"Project": "", "DecisiveStep": None, "DecisiveAgent": "", **lists}
    assert [hit.step for hit in hits_of(verdict, {}, TextMiner())] == [2, 4, 7]
