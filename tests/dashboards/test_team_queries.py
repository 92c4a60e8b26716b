"""Queries on teams and the measures of stored runs agree, on runs made at random."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.multi_agent import profile
from mast_trace_judge.multi_agent.profile import read_team_runs
from mast_trace_lab.teams.profile import service_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fixture_types import Patch

    from mast_trace_collector.storage import Store
    from mast_trace_judge.multi_agent.measure import Measure

T0 = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
AGENTS = ("ann", "ben", "cem")
RUNS = 30


def span(
    run: str, number: int, operation: str, begin: int, length: int, **more: Any
) -> dict[str, Any]:
    root = operation == "invoke_workflow"
    return {
        "Timestamp": T0 + timedelta(milliseconds=begin),
        "Duration": length * 1_000_000,
        "TraceId": run,
        "SpanId": f"{number:016x}",
        "ParentSpanId": "" if root else f"{1:016x}",
        "SpanName": operation,
        "ServiceName": "shop",
        "ScopeName": "mast_trace.manual",
        "ResourceAttributes": {"service.version": "2.0"},
        "SpanAttributes": {
            "gen_ai.operation.name": operation,
            "mast.framework": "manual",
            **{name.replace("__", "."): str(value) for name, value in more.items()},
        },
    }


def run_of(draw: random.Random, number: int) -> list[dict[str, Any]]:
    run = f"{number:032x}"
    rows = [span(run, 1, "invoke_workflow", 0, 1000)]
    for place in range(2, 14):
        agent = draw.choice(AGENTS)
        begin, length = draw.randrange(900), draw.randrange(1, 90)
        kind = draw.choice(["chat", "execute_tool", "send_message"])
        if kind == "chat":
            more = {
                "gen_ai.agent.name": agent,
                "gen_ai.usage.input_tokens": draw.randrange(1, 500),
                "gen_ai.usage.output_tokens": draw.randrange(1, 90),
                "gen_ai.response.finish_reasons": draw.choice(['["stop"]', '["tool_calls"]']),
            }
        elif kind == "execute_tool":
            more = {"gen_ai.agent.name": agent, "gen_ai.tool.name": "search"}
        else:
            more = {
                "mast.message.sender": agent,
                "mast.message.recipients": '["ann"]',
                "mast.message.content": f"I found {draw.randrange(10**6)}.",
                "mast.next_speaker.selected_by": draw.choice(["agent", "code", "model", "user"]),
            }
            if draw.random() < 0.3:
                more["mast.message.performative"] = "inform"
        rows.append(span(run, place, kind, begin, length, **more))
    # A turn is no work by itself, and nobody's tool is nobody's.
    rows.append(span(run, 14, "invoke_agent", 0, 1000, gen_ai__agent__name="ann"))
    return rows


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    draw = random.Random(3)
    with new_store(tmp_path_factory.mktemp("store")) as opened:
        runs = [run_of(draw, number) for number in range(1, RUNS + 1)]
        for rows in (*runs, runs[7][:9]):  # some of one run are delivered twice
            opened.insert("otel_traces", rows)
        tiny = [{**row, "ServiceName": "tiny"} for row in run_of(draw, RUNS + 1)]
        opened.insert("otel_traces", tiny)
        running = run_of(draw, RUNS + 2)[1:]
        opened.insert("otel_traces", running)
        yield opened


def test_the_measures_without_texts_are_those_of_the_profile(store: Store) -> None:
    (row,) = QUERIES["teams_by_version"].run(store, services=["shop"])
    found = service_profile(store, "shop")
    assert (row["Version"], row["Runs"]) == ("2.0", RUNS)
    assert (found.profile.runs, found.unread, found.more) == (RUNS, 0, False)
    measures = {each.question.code: each for each in found.profile.measures}

    def value(code: str) -> float:
        measure: Measure = measures[code]
        assert measure.value is not None, measure.silent
        return measure.value

    assert row["Talk"] == pytest.approx(value("talk"))
    assert row["ReadForEach"] == pytest.approx(value("reading"))
    assert row["Concurrency"] == pytest.approx(value("concurrency"))
    assert 0 < row["Concurrency"] < 1
    assert row["ChosenByAgents"] == pytest.approx(value("chosen_by_agents"))
    assert row["Acts"] == pytest.approx(value("protocol"))


def test_few_runs_have_counts_and_no_shares(store: Store) -> None:
    (row,) = QUERIES["teams_by_version"].run(store, services=["tiny"])
    assert row["Runs"] == 1
    assert row["Talk"] is row["Concurrency"] is row["ChosenByAgents"] is None


def test_versions_and_limits_select_runs(store: Store) -> None:
    assert service_profile(store, "shop", version="1.0").profile.runs == 0
    assert service_profile(store, "other").profile.runs == 0
    few = service_profile(store, "shop", most=25)
    assert (few.profile.runs, few.more) == (25, True)


def test_a_version_that_a_gateway_at_the_root_does_not_name(store: Store) -> None:
    """A program behind a gateway names it at its agents; runs are counted by it elsewhere, too."""
    run, begin = "f" * 32, T0 - timedelta(days=2)
    gateway, agents = (
        span(run, 1, "", 0, 9),
        [
            span(run, number, "invoke_agent", 1, 5, gen_ai__agent__name=AGENTS[number - 2])
            for number in (2, 3)
        ],
    )
    gateway |= {"ParentSpanId": "", "ServiceName": "a gateway", "ResourceAttributes": {}}
    rows = [{**row, "Timestamp": begin} for row in (gateway, *agents)]
    rows[1:] = [{**row, "ServiceName": "behind it"} for row in rows[1:]]
    store.insert("otel_traces", rows)
    [row] = QUERIES["teams_by_version"].run(store, services=["behind it"])
    assert (row["Version"], row["Runs"], row["AgentsPerRun"]) == ("2.0", 1, 2)
    [found] = QUERIES["team_runs"].run(store, services=["behind it"], versions=["2.0"])
    assert (found["TraceId"], found["Version"]) == (run, "2.0")
    assert QUERIES["team_runs"].run(store, services=["behind it"], versions=["1.0"]) == []
    named = {**span(run, 2, "invoke_workflow", 1, 5), "ParentSpanId": f"{1:016x}"}
    other = {"TraceId": "e" * 32, "Timestamp": begin, "ServiceName": "with workflows"}
    store.insert("otel_traces", [{**row, **other} for row in (gateway, named)])
    [found] = QUERIES["team_runs"].run(store, services=["with workflows"])
    assert found["Version"] == "2.0"


def test_runs_that_retention_left_out_are_counted_by_version(store: Store) -> None:
    gone = {"ServiceName": "shop", "LeftOutAt": T0, "RunStart": T0, "RunEnd": T0}
    versions = {"a": "2.0", "b": "2.0", "c": "1.0", "d": "2.0"}
    store.insert(
        "mast_left_out",
        [
            {**gone, "TraceId": run, "ServiceVersion": version, "Done": run != "d"}
            for run, version in versions.items()
        ],
    )
    rows = {row["Service"]: row for row in QUERIES["teams_by_version"].run(store)}
    assert (rows["shop"]["Runs"], rows["shop"]["LeftOut"]) == (RUNS, 2)
    assert rows["tiny"]["LeftOut"] == 0


def test_runs_too_large_together_are_read_one_by_one(store: Store, monkeypatch: Patch) -> None:
    """Each with the spans of its own project, though two have the id."""
    named = {"mast.project": "bank", "service.version": "2.0"}
    theirs = run_of(random.Random(9), 3)
    store.insert("otel_traces", [{**row, "ResourceAttributes": named} for row in theirs])
    record_outcome(store, theirs[0]["TraceId"], "failure", project="bank")
    rows = QUERIES["team_runs"].run(store, services=["shop"])
    assert len({row["TraceId"] for row in rows}) < len(rows)
    at_once = [run for run, _ in read_team_runs(store, rows)]
    assert [run.trajectory.outcome for run in at_once if run].count("failure") == 1

    def refuse(*_given: object) -> None:
        raise StorageError("too large")

    monkeypatch.setattr(profile, "spans_of", refuse)
    assert [run for run, _ in read_team_runs(store, rows)] == at_once
