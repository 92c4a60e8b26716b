"""Each judged run has one row, whatever is killed, judged again or erased."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pattern_runs import NOW, add_run, judge

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import erasure
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_judge.patterns import keeping
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.patterns.keeping import PatternKeeper

if TYPE_CHECKING:
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


def test_a_second_pass_finds_nothing(store: Store) -> None:
    for number in range(1, 8):
        add_run(store, number, code="2.6", tool="search")
    assert index(store) == 7
    assert index(store) == 0
    assert PatternIndexer(store).index(at_all=True) == 0


def test_a_pass_that_is_killed_anywhere_doubles_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the rows were written, and the process was killed before it knew."""
    for number in range(1, 8):
        add_run(store, number, code="2.6", tool="search", text=f"timed out after {number} s")

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
    for number in range(1, 6):
        add_run(store, number, code="2.6", tool="search")
    one, other = PatternIndexer(store), PatternIndexer(store)
    one.index()
    other._write(
        [
            {
                "Project": "",
                "TraceId": f"{number:032x}",
                "Begin": NOW - timedelta(hours=2),
                "End": NOW,
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


def test_a_worker_goes_on_judging_where_patterns_fail(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once a minute; a database that is away is the worker's own matter."""
    now = [1000.0]
    keeper = PatternKeeper(store, clock=lambda: now[0])
    calls = []

    def fails(*_: Any, **__: Any) -> int:
        calls.append(now[0])
        raise ValueError("a run that cannot be read")

    monkeypatch.setattr(keeping.PatternIndexer, "index", fails)
    assert keeper.keep(judged=True) == 0
    assert "patterns are not up to date" in caplog.text
    now[0] += 30
    assert keeper.keep(judged=True) == 0
    assert len(calls) == 1
    now[0] += 31
    keeper.keep(judged=True)
    assert len(calls) == 2

    def away(*_: Any, **__: Any) -> int:
        raise StorageError("away")

    monkeypatch.setattr(keeping.PatternIndexer, "index", away)
    now[0] += 100
    with pytest.raises(StorageError):
        keeper.keep(judged=False)


def test_a_worker_looks_at_once_after_judging_and_else_every_ten_seconds(store: Store) -> None:
    now = [1000.0]
    keeper = PatternKeeper(store, clock=lambda: now[0])
    add_run(store, 1, code="2.6", tool="search")
    assert keeper.keep(judged=False) == 1
    assert keeper.keep(judged=False) == 0
    add_run(store, 2, code="2.6", tool="search")
    now[0] += 1
    assert keeper.keep(judged=False) == 0
    assert keeper.keep(judged=True) == 1
    add_run(store, 3, code="2.6", tool="search")
    now[0] += 11
    assert keeper.keep(judged=False) == 1
