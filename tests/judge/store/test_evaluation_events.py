"""Verdicts as OpenTelemetry events."""

from judge.store.verdicts import verdict
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from mast_trace_judge.evaluation_events import EVENT_NAME, emit, evaluation_events


def by_name(events):
    return {event.attributes["gen_ai.evaluation.name"]: event for event in events}


def test_outcome_modes_and_decisive_error_are_events():
    """One event each, tied to the span that it is about."""
    stored = verdict(modes=verdict().modes[:1])
    events = by_name(evaluation_events(stored))
    assert set(events) == {"mast.outcome", "mast.failure_mode.2.6", "mast.decisive_error"}
    decisive = events["mast.decisive_error"]
    assert decisive.span_id == "s3"
    assert decisive.attributes["gen_ai.evaluation.score.label"] == "researcher"
    assert decisive.attributes["gen_ai.evaluation.score.value"] == 0.7
    assert decisive.attributes["gen_ai.evaluation.explanation"] == "the sum rests on it"
    assert events["mast.outcome"].span_id == ""


def test_an_unscored_run_has_no_score():
    """Its only event carries the reason and no value."""
    (event,) = evaluation_events(verdict(status="unscored", status_reason="no steps"))
    assert event.attributes["gen_ai.evaluation.score.label"] == "unscored"
    assert "gen_ai.evaluation.score.value" not in event.attributes
    assert event.attributes["error.type"] == "unscored"


def test_events_reach_the_exporter_in_the_runs_trace():
    """Emitted records have the convention's event name and the ids of run and span."""
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    stored = verdict(7)
    one_mode = stored.modes[0].model_copy(update={"span_ids": ("00000000000000ab",)})
    assert emit(stored.model_copy(update={"modes": (one_mode,)}), provider) == 3
    records = [found.log_record for found in exporter.get_finished_logs()]
    assert {record.event_name for record in records} == {EVENT_NAME}
    assert {record.trace_id for record in records} == {7}
    assert 0xAB in {record.span_id for record in records}
