"""A run is known from the record of its beginning, and merges with its spans whatever comes when."""

import json
from itertools import permutations

import pytest
from otlp_requests import START, TRACE, agent_span, log_request, request, span

from mast_trace.trajectory import read_trajectory
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.migrations import backfill_runs
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_collector.storage.removal.erasure import erase, of_project, of_runs
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import (
    SESSION,
    finished_runs,
    record_outcome,
    run_summary,
    runs_with,
    spans_of,
)
from mast_trace_collector.storage.span_writer import SpanWriter

TASK = json.dumps(
    [{"role": "user", "id": "m1", "parts": [{"type": "text", "content": "Refund order 7."}]}]
)
SAID = {
    "gen_ai.operation.name": "invoke_workflow",
    "gen_ai.workflow.name": "refund",
    "gen_ai.conversation.id": "c-1",
    "mast.framework": "langgraph",
    "mast.input.message_ids": ["m1"],
    "gen_ai.input.messages": TASK,
}
RESOURCE = {"service.name": "desk"}


def start(number=1, *, trace=TRACE, at=START, resource=None, **fields):
    """A request with the record of a beginning, as the SDK sends it."""
    record = {
        "event_name": "mast.run.start",
        "trace_id": bytes.fromhex(trace),
        "span_id": number.to_bytes(8, "big"),
        "time_unix_nano": at,
        "body": "invoke_workflow refund",
        "attributes": SAID,
        **fields,
    }
    return log_request(record, resource=resource or RESOURCE)


def root(number=1, *, trace=TRACE, **options):
    """A request with the root itself, once it has ended."""
    ended = {**SAID, "mast.run.termination_reason": "completed"}
    return request(
        span(number, name="invoke_workflow refund", trace=trace, attributes=ended, **options),
        resource=RESOURCE,
        scope="mast_trace.langgraph",
    )


def child(number=2, *, parent=1, **options):
    """A request with a call of a model inside of the run."""
    return request(
        agent_span(number, parent=parent, start=START + 5, **options),
        resource=RESOURCE,
        scope="mast_trace.langgraph",
    )


def write(store, *requests, token="t"):
    """Store requests of log records (as bytes that name their event) and of spans, one by one."""
    for number, each in enumerate(requests):
        writer = LogWriter if b"mast.run.start" in each else SpanWriter
        writer(store).write([each], token=f"{token} {number}")


def merged(store, trace=TRACE):
    """Return a run without the time of its last row."""
    (row,) = store.query(
        "SELECT * EXCEPT (LastSeen) FROM mast_runs WHERE TraceId = {trace:String}", {"trace": trace}
    )
    return row


def test_a_run_is_known_before_any_span_came(store):
    write(store, start())
    run = run_summary(store, TRACE)
    assert (run.name, run.service, run.framework) == ("refund", "desk", "langgraph")
    assert (run.conversation_id, run.spans, run.has_root) == ("c-1", 0, False)
    assert run.start == run.end
    assert merged(store)["Totals"] == "exact"


def test_its_name_counts_more_than_those_of_its_spans(store):
    write(store, child(), start())
    run = run_summary(store, TRACE)
    assert (run.name, run.spans, run.has_root) == ("refund", 1, False)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_whatever_comes_first_the_run_is_the_same(embedded, order):
    requests = [start(), child(), root(lasted=100)]
    write(embedded, *(requests[place] for place in order))
    after = merged(embedded)
    write(embedded, start(), start(), token="again")
    assert merged(embedded) == after
    assert (after["Name"], after["RootSeen"], after["Spans"]) == ("refund", 1, 2)
    assert after["TerminationReason"] == "completed"


def test_it_is_what_it_would_be_without_the_record_once_its_root_has_come(store):
    """Verdicts stay what they were: the fingerprint is of spans and outcome."""
    other = "e" * 32
    write(store, start(), child(), root(lasted=100))
    write(store, child(trace=other), root(lasted=100, trace=other), token="other")
    with_record, without = merged(store), merged(store, other)
    for one in (with_record, without):
        del one["TraceId"], one["RunKey"]
    assert with_record == without


def test_a_record_of_an_older_protocol_names_its_event_in_an_attribute(store):
    known = {**SAID, "event.name": "mast.run.start"}
    write(store, start(event_name="", attributes=known))
    assert run_summary(store, TRACE).name == "refund"
    assert RunSpans(store, TRACE).open_root is not None


@pytest.mark.parametrize(
    "other",
    [
        {"event_name": "session.start"},
        {"event_name": "session.start", "attributes": {**SAID, "event.name": "mast.run.start"}},
        {"trace_id": b""},
        {"span_id": b""},
    ],
    ids=["another event", "contradiction", "no trace", "no span"],
)
def test_other_records_are_no_runs(store, other):
    LogWriter(store).write([start(**other)], token="t")
    assert store.query("SELECT TraceId FROM mast_runs") == []
    assert RunSpans(store, TRACE).open_root is None


def test_a_record_that_a_stock_collector_wrote_makes_the_run_known(store):
    store.command(
        "INSERT INTO otel_logs (Timestamp, TraceId, SpanId, ServiceName, Body, EventName, LogAttributes) "
        "VALUES ('2027-01-15 08:00:00.123456789', 'abc', '01', 'desk', 'invoke_workflow refund', "
        "'mast.run.start', map('mast.framework', 'crewai'))"
    )
    run = run_summary(store, "abc")
    assert (run.name, run.service, run.framework) == ("invoke_workflow refund", "desk", "crewai")


def test_the_name_may_stand_under_the_agents_attribute(store):
    """Conventions move; a record says its name under one of them, or as its body."""
    write(store, start(attributes={"gen_ai.agent.name": "refund"}))
    assert run_summary(store, TRACE).name == "refund"


def test_a_record_belongs_to_the_project_of_its_key(store):
    write(store, start(resource={**RESOURCE, "mast.project": "ours"}), child())
    assert run_summary(store, TRACE, project="ours").name == "refund"
    assert run_summary(store, TRACE, project="").name == "chat 2"
    assert RunSpans(store, TRACE, project="ours").open_root is not None
    assert RunSpans(store, TRACE, project="").open_root is None
    assert spans_of(store, [TRACE])["ours", TRACE][0].is_open
    assert not any(each.is_open for each in spans_of(store, [TRACE])["", TRACE])


def test_a_reader_of_one_project_reads_the_beginnings_of_that_one_alone(store):
    """The engine leaves out the others', in both tables that are asked."""
    other = "e" * 32
    write(
        store,
        start(resource={**RESOURCE, "mast.project": "ours"}),
        start(trace=other, resource={**RESOURCE, "mast.project": "theirs"}),
    )
    with store_of_project(store, "ours") as ours:
        assert RunSpans(ours, TRACE).open_root is not None
        assert RunSpans(ours, other).open_root is None
        assert spans_of(ours, [TRACE, other]).keys() == {("ours", TRACE)}


def test_it_is_finished_after_the_idle_time_and_opened_again_by_a_late_span(store):
    def finished(**given):
        return finished_runs(store, judge_version="1", **given)

    write(store, start())
    assert finished(quiet=0, idle=3600) == []
    (killed,) = finished(idle=0)
    assert (killed.name, killed.has_root) == ("refund", False)
    store.insert(
        "mast_verdicts",
        [{"TraceId": TRACE, "Fingerprint": killed.fingerprint, "JudgeVersion": "1"}],
    )
    assert finished(idle=0) == []
    write(store, child(), token="late")
    (again,) = finished(idle=0)
    assert (again.name, again.spans, again.has_root) == ("refund", 1, False)
    assert finished(idle=3600) == []
    write(store, root(lasted=100), token="root")
    (ended,) = finished(quiet=0, idle=3600)
    assert (ended.name, ended.spans, ended.has_root) == ("refund", 2, True)


def test_an_outcome_can_be_said_of_it(store):
    write(store, start())
    assert record_outcome(store, TRACE, "failure", "the machine went down")
    assert run_summary(store, TRACE).outcome == "failure"


class TestReading:
    """The beginning stands for the root until the root comes."""

    def test_a_killed_run_has_its_name_and_task_and_what_was_shown(self, store):
        shown = {"mast.input.message_ids": ["m1"], "mast.input.message_roles": ["user"]}
        write(store, start(), child(attributes=shown))
        pages = RunSpans(store, TRACE)
        for spans in (
            spans_of(store, [TRACE])["", TRACE],
            [each for page in pages.read() for each in page],
        ):
            run = read_trajectory(spans)
            assert (run.name, run.task, run.service) == ("refund", "Refund order 7.", "desk")
            assert (run.finished, run.framework, run.conversation_id) == (False, "langgraph", "c-1")
            (call,) = run.invocations
            assert [message.content for message in run.seen_by(call)] == ["Refund order 7."]
        assert pages.spans == 1
        assert not pages.foreign
        assert [each.span_id for each in pages.of(["0" * 15 + "1", "0" * 15 + "2"])] == [
            "0" * 15 + "1",
            "0" * 15 + "2",
        ]

    def test_the_beginning_comes_with_the_first_page_alone(self, store):
        write(store, start(), child(2), child(3))
        run = RunSpans(store, TRACE, page_bytes=1)
        first, last = run.pages
        for wanted, found in ((None, [1, 2, 3]), ((first,), [1, 2]), ((last,), [3])):
            read = [int(each.span_id, 16) for page in run.read(wanted) for each in page]
            assert read == found

    def test_a_run_of_which_nothing_else_came_can_be_read(self, store):
        write(store, start())
        pages = RunSpans(store, TRACE)
        ((only,),) = pages.read()
        run = read_trajectory([only])
        assert (run.name, run.task) == ("refund", "Refund order 7.")
        assert (run.steps, run.finished) == ((), False)
        assert (pages.spans, pages.pages) == (0, ())

    def test_the_root_itself_counts_once_it_has_come(self, store):
        write(store, start(), child(), root(lasted=100))
        pages = RunSpans(store, TRACE)
        assert pages.open_root is None
        spans = [each for page in pages.read() for each in page]
        assert (len(spans), read_trajectory(spans).finished) == (2, True)
        assert len(spans_of(store, [TRACE])["", TRACE]) == 2

    def test_a_part_of_it_that_has_ended_does_not_end_the_run(self, store):
        part = {"gen_ai.workflow.name": "part"}
        write(store, start(), child(attributes=part, operation="invoke_workflow", lasted=10**9))
        run = read_trajectory(spans_of(store, [TRACE])["", TRACE])
        assert (run.name, run.finished) == ("refund", False)


def test_erasing_takes_the_record_along(store):
    other = "e" * 32
    write(store, start(), start(trace=other, resource={**RESOURCE, "mast.project": "ours"}))
    assert runs_with(store, SESSION, "c-1") == [("", TRACE), ("ours", other)]
    (erasure,) = of_runs(store, [TRACE])
    assert erasure.count(store) == 1
    erase(store, erasure)
    erase(store, of_project(store, "ours"))
    for table in ("otel_logs", "mast_run_states"):
        assert store.query(f"SELECT TraceId FROM {table}") == []


def test_records_that_were_stored_before_make_runs_afterwards(store):
    write(store, start(), child())
    store.command("TRUNCATE TABLE mast_run_states")
    backfill_runs(store)
    run = run_summary(store, TRACE)
    assert (run.name, run.spans) == ("refund", 1)


def test_a_killed_run_of_an_experiment_is_known(store):
    """Its arm comes with the record of its beginning; the span that ends it adds no second row."""
    arm = {"name": "e", "arm": "placebo", "task": "t1", "repetition": 2, "design": "pairs"}
    told = {f"mast.experiment.{name}": value for name, value in arm.items()}
    told["mast.feedback.id"] = "f1"
    write(store, start(attributes={**SAID, **told}), start(trace="f" * 32))
    rows = store.query("SELECT * FROM mast_experiment_runs")
    (row,) = rows
    assert row["TraceId"] == TRACE
    assert (row["Experiment"], row["Arm"], row["Task"]) == ("e", "placebo", "t1")
    assert (row["Repetition"], row["Design"], row["FeedbackId"]) == (2, "pairs", "f1")
    ended = span(1, name="invoke_workflow refund", trace=TRACE, attributes={**SAID, **told})
    write(store, request(ended, resource=RESOURCE, scope="mast_trace.langgraph"), token="end")
    assert store.query("SELECT * FROM mast_experiment_runs FINAL") == rows
