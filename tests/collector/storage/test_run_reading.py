"""A run's row, field by field, and what is asked for where a caller says nothing."""

import re
from dataclasses import astuple

import pytest
from otlp_requests import TRACE, agent_span, request
from stored_spans import spans_of

from mast_trace_collector.storage.runs import (
    find_run,
    finished_runs,
    record_outcome,
    run_summary,
    summary_of,
)
from mast_trace_collector.storage.span_writer import SpanWriter

COLUMNS = re.findall(
    r"\w+",
    """Project TraceId Fingerprint Name ServiceName Framework ConversationId Start End LastSeen RootSeen Spans Errors
    InputTokens OutputTokens Agents Models Outcome OutcomeReason TerminationReason Kind Totals""",
)
"""The column of each field of a run, in the order of the fields."""


def test_every_field_of_a_run():
    several = ("Agents", "Models")
    row = {name: [name] if name in several else name for name in COLUMNS}
    told = {"RootSeen": True, **{name: (name,) for name in several}}
    assert astuple(summary_of(row)) == (*(told.get(name, name) for name in COLUMNS), True)
    assert summary_of({**row, "RootSeen": 0}).has_root is False
    assert summary_of({**row, "Quiet": 0}).is_quiet is False


@pytest.fixture
def write(embedded):
    """Store a span of a trace, in the project `shop` or another; so long ago it came."""
    tokens = iter(range(1000))

    def write(trace=TRACE, *, project="shop", ago=0.0, parent=0, operation="invoke_workflow"):
        span = agent_span(1, operation, trace=trace, parent=parent)
        writer = SpanWriter(embedded)
        writer.write([request(span)], token=f"t{next(tokens)}", project_of=lambda _: project)
        embedded.command(
            "ALTER TABLE mast_run_states UPDATE LastSeen = now64(3) - toIntervalMillisecond("
            "{ms:UInt64}) WHERE TraceId = {trace:String}",
            {"ms": round(ago * 1000), "trace": trace},
            settings={"mutations_sync": 2},
        )

    return write


def due(store, **options):
    return [run.trace_id for run in finished_runs(store, judge_version="j", **options)]


class TestWithoutASay:
    """Defaults where a caller says nothing."""

    def test_a_run_with_a_root_is_quiet_for_five_seconds(self, embedded, write):
        write(ago=0.0)
        assert due(embedded) == []
        write(ago=5.5)
        assert due(embedded) == [TRACE]

    def test_one_inside_an_applications_trace_for_thirty(self, embedded, write):
        write(ago=15.0, parent=9)
        assert due(embedded) == []
        write(ago=31.0, parent=9)
        assert due(embedded) == [TRACE]

    def test_one_without_a_root_for_ten_minutes(self, embedded, write):
        write(ago=500.0, parent=9, operation="chat")
        assert due(embedded) == []
        write(ago=600.1, parent=9, operation="chat")
        assert due(embedded) == [TRACE]

    def test_it_waits_no_less_than_is_asked_for_and_no_longer_than_idle(self, embedded, write):
        write(ago=35.0, parent=9)
        assert due(embedded, quiet=60.0) == []
        write(ago=15.0, parent=9)
        assert due(embedded, idle=10.0) == [TRACE]

    def test_what_came_within_a_week(self, embedded, write):
        write(ago=60.0)
        for trace, days in (("week", 7), ("more", 8)):
            embedded.command(
                "INSERT INTO mast_run_states SELECT * REPLACE ({trace:String} AS TraceId, "
                "Day - {days:UInt8} AS Day) FROM mast_run_states AS s WHERE s.TraceId = {of:String}",
                {"trace": trace, "days": days, "of": TRACE},
            )
        assert sorted(due(embedded)) == [TRACE, "week"]
        assert sorted(due(embedded, lookback_days=8)) == [TRACE, "more", "week"]

    def test_a_hundred_at_most(self, embedded, write):
        spans = [agent_span(1, "invoke_workflow", trace=f"{n:032x}") for n in range(1, 131)]
        SpanWriter(embedded).write([request(*spans)], token="many")
        assert len(due(embedded, quiet=0.0)) == 100
        assert len(due(embedded, quiet=0.0, limit=120)) == 120

    def test_ten_by_the_beginning_of_an_id(self, embedded):
        spans = [agent_span(1, trace=f"ab{n:030x}") for n in range(1, 16)]
        SpanWriter(embedded).write([request(*spans)], token="many")
        assert len(find_run(embedded, " AB ")) == 10
        assert len(find_run(embedded, "ab", limit=12)) == 12


class TestProjects:
    """Everything can be asked of one project alone."""

    def test_a_run_of_another_project_is_not_there(self, embedded, write):
        write(project="one")
        write(project="two")
        for project, there in (("one", 1), ("two", 1), ("three", 0)):
            assert len(spans_of(embedded, TRACE, project=project)) == there
            assert find_run(embedded, TRACE[:4], project=project) == [TRACE] * there
            assert (run_summary(embedded, TRACE, project=project) is not None) == there
            assert record_outcome(embedded, TRACE, "success", project=project) == there
        assert embedded.query("SELECT count() AS n FROM mast_runs") == [{"n": 2}]

    def test_an_outcome_is_that_of_the_project_and_without_one_of_all(self, embedded, write):
        write(project="one")
        write(project="two")
        record_outcome(embedded, TRACE, "failure", "because", project="one")
        assert run_summary(embedded, TRACE, project="one").outcome_reason == "because"
        assert run_summary(embedded, TRACE, project="two").outcome == ""
        record_outcome(embedded, TRACE, "success")
        for project in ("one", "two"):
            run = run_summary(embedded, TRACE, project=project)
            assert (run.outcome, run.outcome_reason) == ("success", "")

    @pytest.mark.parametrize("outcome", ["", "Success", "unknown"])
    def test_only_two_words_are_outcomes(self, embedded, outcome):
        with pytest.raises(ValueError, match=f"an outcome is success or failure, not '{outcome}'"):
            record_outcome(embedded, TRACE, outcome)
