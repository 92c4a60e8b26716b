"""Every named query runs on the real engine, with all kinds of filters, and counts right."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from stores import SERVER, new_store
from verdict_rows import verdict_row

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_dashboards.plugins import named_queries
from mast_trace_dashboards.queries import by_name
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.queries.runs import RUN, RUN_LIST, run_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

QUERIES = named_queries()

T0 = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
EMPTY = {"since": T0 - timedelta(days=2), "until": T0 - timedelta(days=1)}
# Run number -> service, framework, agents, recorded outcome.
RUNS: dict[int, tuple[str, str, list[str], str]] = {
    1: ("shop", "langgraph", ["supervisor", "analyst"], "failure"),
    2: ("shop", "langgraph", ["supervisor", "analyst"], ""),
    3: ("trips", "ag2", ["planner"], "success"),
    4: ("trips", "ag2", ["planner", "auditor"], ""),
}
# Run number -> judged outcome, modes, decisive agent; run 4 has no verdict.
VERDICTS: dict[int, tuple[str, list[str], str]] = {
    1: ("success", ["1.3", "3.2"], "analyst"),
    2: ("failure", ["1.3"], "supervisor"),
    3: ("success", [], ""),
}
_WRAPPED = re.compile(r"LowCardinality\((\w+)\)|SimpleAggregateFunction\(\w+, (.+)\)")


def trace_id(number: int) -> str:
    return f"{number:032x}"


def span(number: int, index: int, agent: str, **attributes: str) -> dict[str, Any]:
    service, framework, _, _ = RUNS[number]
    return {
        "Timestamp": T0 + timedelta(hours=number, milliseconds=index),
        "TraceId": trace_id(number),
        "SpanId": f"{number:08x}{index:08x}",
        "ParentSpanId": "" if index == 0 else f"{number:08x}{0:08x}",
        "SpanName": "span",
        "ServiceName": service,
        "SpanAttributes": {
            "mast.framework": framework,
            **({"gen_ai.agent.name": agent} if agent else {}),
            **attributes,
        },
        "Duration": 2_000_000,
    }


def spans(number: int) -> list[dict[str, Any]]:
    _, _, agents, outcome = RUNS[number]
    root = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": f"job {number}"}
    if outcome:
        root["mast.run.outcome"] = outcome
    return [
        span(number, 0, "", **root),
        *(
            span(
                number,
                index,
                agent,
                **{
                    "gen_ai.operation.name": "send_message",
                    "mast.message.sender": agent,
                    "mast.message.content": f"hello from {agent}",
                },
            )
            for index, agent in enumerate(agents, 1)
        ),
    ]


def verdict(store: Store, number: int) -> dict[str, Any]:
    outcome, modes, agent = VERDICTS[number]
    service, framework, _, _ = RUNS[number]
    [run] = store.query(
        "SELECT Fingerprint, Start, End FROM mast_runs WHERE TraceId = {id:String}",
        {"id": trace_id(number)},
    )
    return verdict_row(
        number,
        run["Start"],
        modes,
        Fingerprint=run["Fingerprint"],
        JudgedAt=run["End"] + timedelta(seconds=number),
        Method="local",
        ServiceName=service,
        Framework=framework,
        RunEnd=run["End"],
        Steps=2,
        Outcome=outcome,
        FailureProbability=0.5,
        Examined=list(FAILURE_MODES),
        DecisiveStep=1 if agent else None,
        DecisiveAgent=agent,
        DecisiveProbability=0.6 if agent else 0.0,
        Calibrated=True,
    )


def store_runs(store: Store) -> list[dict[str, Any]]:
    """Stores the four runs, and returns verdicts on three of them, which say what the runs were."""
    for number in RUNS:
        store.insert("otel_traces", spans(number))
    runs = {row["TraceId"]: row for row in store.query("SELECT * FROM mast_runs")}
    judged = [verdict(store, number) for number in VERDICTS]
    return [{**row, **facts(runs[row["TraceId"]])} for row in judged]


def facts(run: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a run that the judge stores beside its verdict."""
    return {
        "RunSeen": run["LastSeen"],
        "RunSpans": run["Spans"],
        "RunErrors": run["Errors"],
        "RunAgents": run["Agents"],
        "RunModels": run["Models"],
        "RunOutcome": run["Outcome"],
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("queries")) as opened:
        opened.insert("mast_verdicts", store_runs(opened))
        opened.insert(
            "mast_judge_calls",
            [
                {
                    "CallId": str(number),
                    "Model": "small",
                    "Stage": "read",
                    "StartedAt": T0 + timedelta(hours=number),
                    "DurationMs": 100 * number,
                    "Status": "ok" if number > 1 else "error",
                    "Retries": number,
                    "InputTokens": 10,
                    "OutputTokens": 1,
                    "CostUsd": 0.25,
                }
                for number in (1, 2)
            ],
        )
        yield opened


@pytest.mark.parametrize("name", QUERIES)
def test_columns_are_those_that_the_query_declares(store: Store, name: str) -> None:
    query = QUERIES[name]
    plain = [
        (column, _WRAPPED.sub(lambda m: m[1] or m[2], kind))
        for column, kind in store.describe(query.sql, query.values())
    ]
    assert plain == [(column, declared.type) for column, declared in query.columns.items()]


@pytest.mark.parametrize("values", [[], ["shop"], ["shop", "trips", "o'brien\\"]], ids=len)
@pytest.mark.parametrize("name", QUERIES)
def test_filters_take_all_one_and_many_values(store: Store, name: str, values: list[str]) -> None:
    query = QUERIES[name]
    arrays = [p for p, param in query.params.items() if param.type == "Array(String)"]
    rows = query.run(store, **dict.fromkeys(arrays, values))
    assert all(row.keys() == query.columns.keys() for row in rows)


@pytest.mark.parametrize(
    "name", [name for name, query in QUERIES.items() if query.params.keys() & {*EMPTY, "run"}]
)
def test_an_empty_range_is_no_error(store: Store, name: str) -> None:
    query = QUERIES[name]
    given = {param: value for param, value in EMPTY.items() if param in query.params}
    rows = query.run(store, **given, **({"run": "0" * 32} if "run" in query.params else {}))
    numbers = [v for row in rows for c, v in row.items() if c not in {"Code", "Decile"} and v]
    assert not numbers


def test_a_query_is_found_by_being_defined() -> None:
    assert (QUERIES["run"], QUERIES["runs"]) == (RUN, RUN_LIST)


def test_a_name_stands_for_one_query() -> None:
    assert list(by_name([RUN, RUN_LIST, RUN])) == ["run", "runs"]
    with pytest.raises(ValueError, match="two queries have the name run"):
        by_name([RUN, replace(RUN_LIST, name="run")])


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match="servics"):
        QUERIES["runs"].values(servics=["shop"])


def test_runs_lists_newest_first_with_verdicts(store: Store) -> None:
    rows = QUERIES["runs"].run(store)
    assert [row["TraceId"] for row in rows] == [trace_id(n) for n in (4, 3, 2, 1)]
    assert [row["Outcome"] for row in rows] == ["", "success", "failure", "failure"]
    assert [row["OutcomeSource"] for row in rows] == ["", "recorded", "judged", "recorded"]
    assert [row["State"] for row in rows] == ["waiting", "judged", "judged", "judged"]
    assert rows[3]["Modes"] == ["1.3", "3.2"]
    assert (rows[3]["DecisiveAgent"], rows[3]["DecisiveStep"]) == ("analyst", 1)
    assert rows[0]["DecisiveStep"] is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"services": ["trips"]}, (4, 3)),
        ({"frameworks": ["langgraph"]}, (2, 1)),
        ({"frameworks": ["langgraph", "ag2"], "agents": ["auditor"]}, (4,)),
        ({"outcomes": ["failure"]}, (2, 1)),
        ({"outcomes": [""]}, (4,)),
        ({"modes": ["3.2", "1.1"]}, (1,)),
        ({"decisive_agents": ["supervisor"]}, (2,)),
        ({"states": ["waiting"]}, (4,)),
        ({"bases": ["model"]}, ()),
        ({"since": T0 + timedelta(hours=2), "until": T0 + timedelta(hours=4)}, (3, 2)),
        ({"projects": ["nobody's"]}, ()),
    ],
)
def test_runs_filters(store: Store, given: dict[str, Any], expected: tuple[int, ...]) -> None:
    rows = QUERIES["runs"].run(store, **given)
    assert [row["TraceId"] for row in rows] == [trace_id(n) for n in expected]


def test_pages_of_runs_neither_overlap_nor_leave_out(store: Store) -> None:
    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while page := QUERIES["runs"].run(store, limit=1, **cursor):
        seen += [row["TraceId"] for row in page]
        cursor = {"before": page[-1]["StartNs"], "before_run": run_key(page[-1])}
    assert seen == [trace_id(n) for n in (4, 3, 2, 1)]


def test_one_run(store: Store) -> None:
    row = QUERIES["run"].one(store, run=trace_id(1))
    assert row == QUERIES["runs"].run(store)[3]
    assert QUERIES["run"].one(store, run="f" * 32) is None


def test_spans_of_a_run(store: Store) -> None:
    rows = QUERIES["run_spans"].run(store, run=trace_id(1))
    assert [row["Operation"] for row in rows] == ["invoke_workflow", "send_message", "send_message"]
    assert [row["Agent"] for row in rows] == ["", "supervisor", "analyst"]
    assert rows[1]["Text"] == "hello from supervisor"


def test_filter_values(store: Store) -> None:
    found = {(r["Filter"], r["Value"]): r["Runs"] for r in QUERIES["filter_values"].run(store)}
    assert (found["service", "shop"], found["agent", "planner"]) == (2, 2)
    assert found["agent", "auditor"] == 1
    assert ("project", "") not in found


def test_judge_lag(store: Store) -> None:
    [row] = QUERIES["judge_lag"].run(store)
    assert (row["Waiting"], row["Judged"], row["Unscored"]) == (1, 3, 0)
    assert row["MedianLagSeconds"] == pytest.approx(2.0)
    assert row["OldestWaitSeconds"] > 0


def test_a_late_span_makes_a_verdict_outdated(store: Store) -> None:
    late = span(3, 9, "planner", **{"gen_ai.operation.name": "send_message"})
    store.insert("otel_traces", [late])
    row = QUERIES["run"].one(store, run=trace_id(3))
    assert row is not None
    assert (row["State"], row["Outcome"]) == ("changed", "success")
    (day,) = QUERIES["outcomes_over_time"].run(store, bucket=86_400)
    assert (day["Runs"], day["Judged"]) == (4, 3), "its verdict still counts"


def test_judge_calls(store: Store) -> None:
    [row] = QUERIES["judge_calls"].run(store)
    assert (row["Calls"], row["Failed"], row["AllRetries"]) == (2, 1, 3)
    assert (row["AllInputTokens"], row["Cost"]) == (20, 0.5)
    rows = QUERIES["judge_calls_over_time"].run(store, since=T0 + timedelta(hours=1))
    assert [(r["Time"].hour, r["Calls"], r["FailedShare"], r["Cost"]) for r in rows] == [
        (13, 1, 1.0, 0.25),
        (14, 1, 0.0, 0.25),
    ]
    (day,) = QUERIES["judge_calls_over_time"].run(store, bucket=86_400)
    assert (day["Calls"], day["FailedShare"], day["Cost"]) == (2, 0.5, 0.5)


def test_text_for_other_tools(store: Store) -> None:
    text = QUERIES["mode_counts"].text({"since": "$__fromTime", "until": "$__toTime"})
    assert "$__fromTime" in text
    assert "{since" not in text
    assert "{services:Array(String)}" in text


def test_a_filter_that_finds_nothing_leaves_the_next_one_alone(store: Store) -> None:
    """ClickHouse's query condition cache confused the two; the store switches it off."""
    runs = QUERIES["runs"]
    expected = {row["TraceId"] for row in runs.run(store, modes=["1.3"])}
    assert expected
    for filters in ({"modes": ["1.1"]}, {"frameworks": ["none"]}, {"outcomes": ["none"]}):
        assert runs.run(store, **filters) == []
        assert {row["TraceId"] for row in runs.run(store, modes=["1.3"])} == expected


@pytest.mark.skipif(bool(SERVER), reason="the address is that of an embedded store")
def test_nor_does_it_for_readers_of_the_clickhouse_address(store: Store) -> None:
    """As Grafana reads."""
    app = ClickHouseHTTP(store, password=None)
    client = TestClient(app, client=("127.0.0.1", 1))

    def found(**filters: str) -> list[str]:
        values = {
            name: f"{value:%F %T}" if isinstance(value, datetime) else str(value)
            for name, value in QUERIES["runs"].values(**filters).items()
        }
        fields = {f"param_{name}": value for name, value in values.items()}
        text = f"SELECT TraceId FROM ({QUERIES['runs'].sql})"
        return client.get("/", params={"query": text, **fields}).text.split()

    expected = found(modes="['1.3']")
    assert sorted(expected) == [trace_id(1), trace_id(2)]
    for filters in ({"modes": "['1.1']"}, {"frameworks": "['none']"}, {"outcomes": "['none']"}):
        assert found(**filters) == []
        assert found(modes="['1.3']") == expected
    app.close()


def test_bits_stand_for_the_modes_in_their_order(store: Store) -> None:
    for place, code in enumerate(FAILURE_MODES):
        [row] = store.query(
            "SELECT bitTest(defaulted, {place:UInt8}) AS is_set, bitCount(defaulted) AS bits FROM ("
            "SELECT "
            + _bits(store)
            + " AS defaulted FROM (SELECT [{code:String}] AS `Modes.Code`))",
            {"place": place, "code": code},
        )
        assert row == {"is_set": 1, "bits": 1}


def _bits(store: Store) -> str:
    [row] = store.query(
        "SELECT default_expression AS sql FROM system.columns "
        "WHERE database = currentDatabase() AND table = 'mast_findings' AND name = 'ModeBits'"
    )
    return str(row["sql"])


def test_no_end_is_seen_of_a_run_without_a_root_once_nothing_came_for_long(store: Store) -> None:
    """A verdict says that the idle time has passed; a later span opens the run again, its root ends it."""

    def state(**given: Any) -> Any:
        row = QUERIES["run"].one(store, run=trace_id(5), **given)
        assert row is not None
        (listed,) = QUERIES["runs"].run(store, only=[trace_id(5)], **given)
        assert listed["State"] == row["State"]
        return row["State"]

    def child(index: int) -> dict[str, Any]:
        return {**span(4, index, "planner"), "TraceId": trace_id(5)}

    store.insert("otel_traces", [child(1)])
    assert (state(), state(idle=0.0)) == ("running", "no end seen")
    (run,) = store.query(
        "SELECT Fingerprint FROM mast_runs WHERE TraceId = {run:String}", {"run": trace_id(5)}
    )
    told = {"Fingerprint": run["Fingerprint"], "Outcome": "unknown"}
    store.insert("mast_verdicts", [verdict_row(5, child(1)["Timestamp"], **told)])
    assert state() == "no end seen"
    store.insert("otel_traces", [child(2)])
    assert (state(), state(idle=0.0)) == ("running", "no end seen")
    store.insert("otel_traces", [child(0)])
    assert (state(), state(idle=0.0)) == ("changed", "changed")


def test_questions_of_a_page_are_asked_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)

    def question(answer: int) -> int:
        both.wait()
        return answer

    assert side_by_side(*(partial(question, number) for number in range(4))) == [0, 1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda: 1, lambda: 1 // 0)


def test_a_question_that_lacks_memory_beside_another_is_asked_again_alone() -> None:
    asked: list[int] = []

    def question(number: int, least: int) -> int:
        asked.append(number)
        if number and len(asked) < least:
            raise MemoryError
        return number

    assert side_by_side(*(partial(question, number, 4) for number in range(3))) == [0, 1, 2]
    assert sorted(asked) == [0, 1, 1, 2, 2]
    asked.clear()
    with pytest.raises(MemoryError):
        side_by_side(*(partial(question, number, 9) for number in range(3)))
