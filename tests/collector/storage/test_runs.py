"""Runs: one row each, finished or not, judged or not, opened again."""

import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from otlp_requests import START, TRACE, agent_span, request, span
from stored_spans import spans_of

from mast_trace_collector.storage.runs import (
    find_run,
    finished_runs,
    record_outcome,
    run_summary,
    unread_runs,
)
from mast_trace_collector.storage.span_writer import SpanWriter

RUN = request(
    agent_span(
        1,
        "invoke_workflow",
        lasted=10_000,
        attributes={
            "gen_ai.workflow.name": "buy a book",
            "mast.framework": "langgraph",
            "mast.run.termination_reason": "completed",
            "gen_ai.conversation.id": "c-1",
        },
    ),
    agent_span(2, "invoke_agent", parent=1, attributes={"gen_ai.agent.name": "planner"}),
    agent_span(
        3,
        "chat",
        parent=2,
        attributes={
            "gen_ai.agent.name": "planner",
            "gen_ai.response.model": "small-1",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 7,
        },
    ),
    agent_span(
        4,
        "execute_tool",
        parent=2,
        status=2,
        attributes={"gen_ai.agent.name": "shopper", "gen_ai.usage.input_tokens": 100},
    ),
)
ROOTLESS = request(agent_span(2, "invoke_agent", parent=1, attributes={"gen_ai.agent.name": "a"}))


@pytest.fixture
def write(store):
    """Store requests, each call as a batch of its own."""
    writer = SpanWriter(store)
    tokens = iter(range(1000))
    return lambda *requests: writer.write(requests, token=f"batch-{next(tokens)}")


@pytest.fixture
def summed(store, write):
    """Store requests and sum up the run."""

    def summed(*requests):
        write(*requests)
        return run_summary(store, TRACE)

    return summed


def finished(store, **options):
    defaults = {"judge_version": "j1", "quiet": 0.0, "idle": 3600.0}
    return finished_runs(store, **{**defaults, **options})


def judge(store, run, version="j1", seen=None, **more):
    row = {
        "Project": run.project,
        "TraceId": run.trace_id,
        "Fingerprint": run.fingerprint,
        "JudgeVersion": version,
        "JudgedAt": datetime.now(timezone.utc),
        "Status": "ok",
        "RunStart": run.start,
        "RunEnd": run.end,
        "RunSeen": seen or datetime.fromtimestamp(0, timezone.utc),
    }
    store.insert("mast_verdicts", [row | more])


class TestSummary:
    """The row of a run."""

    def test_it_sums_up_the_spans(self, summed):
        run = summed(RUN)
        assert (run.name, run.service, run.framework) == ("buy a book", "shop", "langgraph")
        assert (run.spans, run.errors, run.has_root) == (4, 1, True)
        assert (run.agents, run.models) == (("planner", "shopper"), ("small-1",))
        assert (run.termination_reason, run.conversation_id) == ("completed", "c-1")
        assert run.start == datetime.fromtimestamp(START // 1000 / 1e6, timezone.utc)

    def test_tokens_are_those_of_model_calls_only(self, summed):
        """Agents and tools may repeat the totals of the calls inside them."""
        run = summed(RUN)
        assert (run.input_tokens, run.output_tokens) == (100, 7)

    def test_tokens_of_a_call_that_another_tool_recorded_too_count_once(self, summed):
        """Theirs may come before ours, and both more than once; alone they count."""
        usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7}
        theirs = request(agent_span(8, "chat", parent=2, attributes=usage))
        both = {**usage, "mast.framework": "crewai"}
        ours = request(agent_span(9, "chat", parent=2, attributes=both))
        for sent in (theirs, ours, theirs, ours):
            run = summed(sent)
            assert (run.input_tokens, run.output_tokens) == (100, 7)

    def test_the_end_is_the_latest_end_not_the_latest_start(self, store, write):
        write(RUN)
        (row,) = store.query("SELECT toUnixTimestamp64Nano(End) AS at FROM mast_runs")
        assert row == {"at": START + 10_000}

    def test_spans_that_come_twice_change_nothing_but_the_time_of_arrival(self, store, write):
        write(RUN)
        before = store.query("SELECT * EXCEPT LastSeen FROM mast_runs")
        write(RUN)
        write(RUN, RUN)
        assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": 16}]
        assert store.query("SELECT * EXCEPT LastSeen FROM mast_runs") == before

    def test_nothing_changes_when_the_engine_merges_its_parts(self, store, write):
        write(RUN)
        write(ROOTLESS)
        before = store.query("SELECT * FROM mast_runs")
        store.command("OPTIMIZE TABLE mast_run_states FINAL")
        assert store.query("SELECT count() AS n FROM mast_run_states") == [{"n": 1}]
        assert store.query("SELECT * FROM mast_runs") == before

    def test_the_order_of_arrival_and_of_attributes_leaves_the_fingerprint(self, store, write):
        one = agent_span(1, attributes={"a": "1", "b": "2"})
        two = agent_span(2, parent=1)
        write(request(one, two))
        other = "f" * 32
        write(request(agent_span(2, parent=1, trace=other)))
        turned = {"b": "2", "a": "1", "gen_ai.operation.name": "chat"}
        write(request(span(1, trace=other, name="chat 1", attributes=turned)))
        assert run_summary(store, TRACE).fingerprint == run_summary(store, other).fingerprint

    @pytest.mark.parametrize(
        "changed",
        [
            {"lasted": 2000},
            {"status": 2},
            {"attributes": {"mast.message.content": "other"}},
            {"start": START + 1},
        ],
        ids=["end", "status", "attributes", "start"],
    )
    def test_other_content_changes_the_fingerprint_not_the_count(self, summed, changed):
        before = summed(request(agent_span(1)))
        after = summed(request(agent_span(1, **changed)))
        assert after.fingerprint != before.fingerprint
        assert after.spans == before.spans == 1

    def test_a_run_without_root_has_the_name_of_its_first_span(self, summed):
        run = summed(request(agent_span(3, parent=1, start=START + 5), agent_span(2, parent=1)))
        assert (run.name, run.has_root) == ("chat 2", False)

    def test_a_run_inside_an_applications_trace_has_a_root(self, summed):
        assert summed(request(agent_span(5, "invoke_workflow", parent=9))).has_root

    @pytest.mark.parametrize("name", ["gen_ai.agent.name", "gen_ai.workflow.name"])
    def test_a_run_is_named_by_its_workflow_which_is_no_agent(self, summed, name):
        """Conventions v0.1.0, and the ones before."""
        root = agent_span(1, "invoke_workflow", lasted=100, attributes={name: "buy a book"})
        call = agent_span(2, parent=1, attributes={"gen_ai.agent.name": "planner"})
        run = summed(request(root, call))
        assert (run.name, run.agents) == ("buy a book", ("planner",))

    def test_one_trace_id_in_two_projects_is_two_runs(self, store):
        writer = SpanWriter(store)
        writer.write([RUN, ROOTLESS], token="t", project_of=["one", "two"].__getitem__)
        assert run_summary(store, TRACE, project="one").spans == 4
        assert run_summary(store, TRACE, project="two").spans == 1
        assert len(spans_of(store, TRACE, project="two")) == 1
        for project, outcomes in (("two", ["", "failure"]), (None, ["failure", "failure"])):
            assert record_outcome(store, TRACE, "failure", project=project)
            found = [run_summary(store, TRACE, project=each).outcome for each in ("one", "two")]
            assert found == outcomes


class TestFinished:
    """The runs that wait for the judge."""

    def test_a_judged_run_comes_again_for_another_judge_and_when_it_has_changed(self, store, write):
        """By a span or by an outcome that was said later, and not by spans that are repeated."""
        write(RUN)
        for spans, outcome in ((4, ""), (5, ""), (5, "failure")):
            (run,) = finished(store)
            assert (run.trace_id, run.spans, run.outcome) == (TRACE, spans, outcome)
            judge(store, run)
            write(RUN)
            assert finished(store) == []
            assert len(finished(store, judge_version="j2")) == 1
            if spans == 4:
                write(request(agent_span(9, parent=1)))
            else:
                assert record_outcome(store, TRACE, "failure", "wrong book")

    def test_a_span_that_came_while_the_judge_was_thinking_opens_it_again(self, store, write):
        write(RUN)
        (read,) = finished(store)
        write(request(agent_span(9, parent=1)))
        time.sleep(0.01)
        judge(store, read)
        assert len(finished(store)) == 1

    def test_the_oldest_come_first_and_judged_ones_crowd_out_none(self, store, write):
        for number in range(1, 6):
            write(request(agent_span(1, trace=f"{number:032x}")))
        assert [int(run.trace_id, 16) for run in finished(store, limit=3)] == [1, 2, 3]
        for run in finished(store, limit=4):
            judge(store, run)
        assert [int(run.trace_id, 16) for run in finished(store, limit=1)] == [5]

    def test_what_waits_for_a_model_is_read_once(self, store, write):
        """Neither what it has read since or reads elsewhere, nor what has changed, is left out, erased, or of another judge."""
        now = datetime.now(timezone.utc).replace(microsecond=0)
        mine, read, at_once, elsewhere, changed, gone, erased, other = (
            f"{number:032x}" for number in range(1, 9)
        )
        for trace in (mine, read, at_once, elsewhere, changed, gone, erased, other):
            write(request(agent_span(1, trace=trace)))
            version = "j2" if trace == other else "j1"
            told = {"version": version, "JudgedAt": now, "RunEnd": now}
            run = run_summary(store, trace)
            judge(store, run, **told, Method="reading")
            if trace in {read, at_once}:
                later = now + timedelta(seconds=trace == read)
                judge(store, run, **told | {"JudgedAt": later}, Method="fused")
        write(request(agent_span(2, trace=changed)))
        for table, trace in (("mast_left_out", gone), ("mast_tombstones", erased)):
            store.insert(table, [{"TraceId": trace}])
        workers = (("me", mine), ("other", elsewhere))
        rows = [{"WorkerId": w, "Seen": now, "Reading": [trace]} for w, trace in workers]
        store.insert("mast_workers", rows)
        given = {"workers": ["me"], "limit": 9, "lookback_days": 7}
        found = unread_runs(store, judge_version="j1", **given)
        assert [run.trace_id for run in found] == [mine]

    def test_workers_divide_the_runs_without_overlap(self, store, write):
        ids = {f"{number:032x}" for number in range(1, 41)}
        write(*(request(agent_span(1, trace=trace)) for trace in ids))
        orders = ["abc", "bca", "cab"]
        parts = [{r.trace_id for r in finished(store, workers=[*order])} for order in orders]
        assert sum(len(part) for part in parts) == 40
        assert set.union(*parts) == ids
        assert all(parts)

    def test_a_look_at_the_runs_of_late_finds_what_came_of_late(self, store, write):
        """The scan of recent runs also finds judged runs, and runs most of whose spans came before."""
        write(RUN)
        store.command(
            "INSERT INTO mast_run_states SELECT * REPLACE ('e' AS TraceId, LastSeen - 7200 AS LastSeen)"
            " FROM mast_run_states"
        )
        assert [run.trace_id for run in finished(store, recent=3600)] == [TRACE]
        assert {run.trace_id for run in finished(store)} == {TRACE, "e"}
        for run in finished(store):
            judge(store, run)
        assert finished(store, recent=3600) == []
        record_outcome(store, "e", "failure")
        (again,) = finished(store, recent=3600)
        assert (again.trace_id, again.spans, again.has_root) == ("e", 4, True)

    def test_what_a_verdict_says_to_have_seen_needs_no_fingerprint(self, store, write):
        """A run that grew while the judge worked is not lost, however long ago."""
        write(RUN)
        (run,) = finished(store)
        store.command(
            "ALTER TABLE mast_run_states UPDATE LastSeen = LastSeen - 7200 WHERE 1",
            settings={"mutations_sync": 2},
        )
        for seen, left in ((run.last_seen - timedelta(hours=3), 1), (run.last_seen, 0)):
            judge(store, replace(run, fingerprint="before"), seen=seen)
            assert len(finished(store)) == left

    @pytest.mark.parametrize(
        ("ago", "recent", "due"), [(800, None, 1), (1000, None, 0), (20, 3600, 1), (100, 3600, 0)]
    )
    def test_clocks_may_differ_by_minutes(self, store, write, ago, recent, due):
        """By so much a verdict may seem to have seen what came after it."""
        write(RUN)
        (run,) = finished(store)
        store.command(
            "ALTER TABLE mast_run_states UPDATE LastSeen = now64(3) - {ago:UInt32} WHERE 1",
            {"ago": ago},
            settings={"mutations_sync": 2},
        )
        judge(store, replace(run, fingerprint="before"), seen=run.last_seen)
        assert len(finished(store, recent=recent)) == due

    def test_spans_without_a_trace_id_are_no_run(self, store, write):
        write(request(span(1, trace="0" * 32)))
        assert finished(store, idle=0) == []


class TestOutcome:
    """The outcome of a run."""

    def outcome_span(self, outcome, **options):
        attributes = {"mast.run.outcome": outcome, "mast.run.outcome_reason": f"said {outcome}"}
        return request(agent_span(1, "invoke_workflow", attributes=attributes, **options))

    def test_the_root_says_it(self, summed):
        run = summed(self.outcome_span("success"))
        assert (run.outcome, run.outcome_reason) == ("success", "said success")

    def test_a_person_counts_more_than_the_run_in_any_order(self, store, write):
        write(ROOTLESS)
        record_outcome(store, TRACE, "failure")
        write(self.outcome_span("success", start=START + 10**15))
        assert run_summary(store, TRACE).outcome == "failure"

    def test_the_last_word_counts(self, store, write):
        write(RUN)
        for outcome in ("success", "failure", "success"):
            record_outcome(store, TRACE, outcome, f"now {outcome}")
        assert run_summary(store, TRACE).outcome_reason == "now success"

    def test_it_leaves_everything_else(self, store, write):
        write(RUN)
        before = run_summary(store, TRACE)
        record_outcome(store, TRACE, "failure")
        after = run_summary(store, TRACE)
        assert (after.start, after.end, after.name) == (before.start, before.end, before.name)
        assert (after.spans, after.has_root) == (before.spans, before.has_root)


class TestSpans:
    """A run's spans."""

    def test_they_come_by_start_time_with_nanoseconds(self, store, write):
        write(request(agent_span(2, parent=1, start=START + 1, lasted=3), agent_span(1)))
        first, second = spans_of(store, TRACE)
        assert [first.span_id[-1], second.span_id[-1]] == ["1", "2"]
        assert (second.start, second.end) == (START + 1, START + 4)
        assert second.parent_span_id == "0000000000000001"
        assert second.attributes == {"gen_ai.operation.name": "chat"}
        assert (second.service, second.scope, second.status) == ("shop", "tests", "Unset")

    def test_of_a_span_that_came_twice_the_latest_is_read(self, store, write):
        write(request(agent_span(1, message="first")))
        time.sleep(0.01)
        write(request(agent_span(1, message="second")))
        assert [record.status_message for record in spans_of(store, TRACE)] == ["second"]


class TestFind:
    """A run by the beginning of its id."""

    def test_by_prefix_newest_first(self, store, write):
        write(request(agent_span(1, trace="ab1" + "0" * 29)))
        time.sleep(0.01)
        write(request(agent_span(1, trace="ab2" + "0" * 29)))
        assert [found[:3] for found in find_run(store, "AB")] == ["ab2", "ab1"]
        assert [found[:3] for found in find_run(store, "ab1")] == ["ab1"]
        assert find_run(store, "c") == []

    def test_characters_with_a_meaning_in_patterns_have_none(self, store, write):
        write(RUN)
        assert find_run(store, "%") == []
        assert find_run(store, "'") == []
