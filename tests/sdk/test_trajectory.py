"""`read_trajectory`: what the SDK records and a store keeps is read back as a run."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from any_spans import FUZZ, SPANS
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from mast_trace import semconv
from mast_trace.delivery.provider import make_provider
from mast_trace.messages import Message, ToolCall
from mast_trace.spans import Telemetry
from mast_trace.trajectory import (
    SpanRecord,
    StepKind,
    Trajectory,
    read_trajectory,
    to_dict,
    trajectory_from_dict,
)
from mast_trace.trajectory.from_sdk import span_record
from mast_trace.trajectory.span_messages import aliases_of
from mast_trace.trajectory.steps import _only_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

TASK = Message("What do they owe?", role="user", id="task")


class Recording:
    """A telemetry whose spans are read back."""

    def __init__(self, framework: str = "test") -> None:
        self._exporter = InMemorySpanExporter()
        provider = make_provider("desk", SimpleSpanProcessor(self._exporter))
        self.telemetry = Telemetry(provider, framework=framework, version="1.0")

    @property
    def records(self) -> list[SpanRecord]:
        return [span_record(span) for span in self._exporter.get_finished_spans()]

    @property
    def trajectory(self) -> Trajectory:
        return read_trajectory(self.records)


def team(recording: Recording) -> None:
    """Two agents, a tool call that a model asks for, an answer that becomes a message."""
    telemetry = recording.telemetry
    run = telemetry.run("team", input=[TASK], conversation_id="c-1")
    turn = telemetry.agent("analyst", parent=run.context, input=[TASK])
    asked = telemetry.chat("gpt", parent=turn.context, input=[TASK])
    calls = (ToolCall("lookup", '{"page": 1}', "call-1"),)
    asked.response(Message("", tool_calls=calls), input_tokens=10, output_tokens=2)
    asked.end()
    tool = telemetry.tool("lookup", parent=turn.context, arguments='{"page": 1}', call_id="call-1")
    tool.result("3,410.50")
    tool.end()
    history = [
        TASK,
        Message("", tool_calls=calls),
        Message("3,410.50", role="tool", tool_call_id="call-1"),
    ]
    told = telemetry.chat("gpt", parent=turn.context, input=history)
    answer = Message("They owe 3,410.50.")
    told.response(answer, input_tokens=30, output_tokens=5, finish_reason="stop")
    told.end()
    telemetry.message("analyst", ["reviewer"], answer, parent=turn.context)
    turn.reply(answer)
    turn.end()
    review = telemetry.agent("reviewer", parent=run.context, input=[TASK, answer])
    telemetry.message("reviewer", ["user"], Message("Approved."), parent=review.context)
    review.end("the framework lost its patience")
    run.finish(semconv.Termination.COMPLETED)


@pytest.fixture
def recorded() -> Recording:
    recording = Recording()
    team(recording)
    return recording


def as_stored(record: SpanRecord) -> SpanRecord:
    """As ClickHouse keeps it: every attribute a text, arrays as JSON."""

    def stored(value: Any) -> str:
        if isinstance(value, str):
            return value
        return json.dumps(list(value) if isinstance(value, tuple) else value)

    return dataclasses.replace(
        record, attributes={name: stored(value) for name, value in record.attributes.items()}
    )


class TestSteps:
    """The spans that are steps."""

    def test_are_numbered_by_time_and_merged(self, recorded: Recording) -> None:
        """A model's answer that became a message, or tool calls, is that step and no other."""
        steps = recorded.trajectory.steps
        assert [(step.index, step.kind, step.agent) for step in steps] == [
            (0, StepKind.TOOL, "analyst"),
            (1, StepKind.MESSAGE, "analyst"),
            (2, StepKind.MESSAGE, "reviewer"),
        ]
        tool, told, approved = steps
        assert (tool.tool, tool.arguments, tool.text) == ("lookup", '{"page": 1}', "3,410.50")
        assert (told.text, told.recipients) == ("They owe 3,410.50.", ("reviewer",))
        assert approved.text == recorded.trajectory.final_answer == "Approved."

    def test_a_model_action_of_its_own_is_one(self) -> None:
        """An answer that nobody sent, or a call of a tool that never ran."""
        recording = Recording()
        run = recording.telemetry.run("r")
        recording.telemetry.message("a", ["b"], Message("hello"), parent=run.context)
        for answer in (
            Message("a thought"),
            Message("", tool_calls=(ToolCall("never", {"x": 1}, "call-9"),)),
        ):
            chat = recording.telemetry.chat("gpt", parent=run.context, agent="a")
            chat.response(answer)
            chat.end()
        run.end()
        _, thought, wish = recording.trajectory.steps
        assert (thought.kind, thought.text) == (StepKind.MODEL, "a thought")
        assert json.loads(wish.arguments) == [{"name": "never", "arguments": {"x": 1}}]

    def test_of_equal_time_keep_the_order_of_the_spans(self) -> None:
        """Clocks are coarse; numbering is the same each time."""
        spans = [
            record(str(index), start=5, operation="send_message", **{"mast.message.content": "x"})
            for index in range(9)
        ]
        found = read_trajectory(spans)
        assert [step.span_id for step in found.steps] == [str(index) for index in range(9)]


class TestRun:
    """The fields of the run as a whole."""

    def test_is_read_from_the_root(self, recorded: Recording) -> None:
        """Name, task, why it stopped, tokens."""
        found = recorded.trajectory
        assert (found.name, found.framework, found.service) == ("team", "test", "desk")
        assert (found.task, found.conversation_id) == (TASK.content, "c-1")
        assert (found.termination_reason, found.outcome, found.finished) == ("completed", "", True)
        assert (found.input_tokens, found.output_tokens) == (40, 7)
        assert found.agents == ("analyst", "reviewer")

    def test_inside_an_applications_trace_is_still_its_own(self, recorded: Recording) -> None:
        """The request around it is not the run, even if its span is there."""
        around = record("request", start=0, end=10**19, name="GET /debts")
        inside = [
            dataclasses.replace(span, parent_span_id=span.parent_span_id or "request")
            for span in recorded.records
        ]
        found = read_trajectory([around, *inside])
        assert (found.name, found.task, found.finished) == ("team", TASK.content, True)

    def test_without_a_root_is_not_finished(self, recorded: Recording) -> None:
        """The steps of an unfinished run are there all the same."""
        spans = [span for span in recorded.records if span.parent_span_id]
        found = read_trajectory(spans)
        assert not found.finished
        assert len(found.steps) == 3

    def test_of_no_spans_is_empty(self) -> None:
        """A trajectory of no spans is empty."""
        found = read_trajectory([])
        assert (found.steps, found.agents, found.final_answer) == ((), (), "")
        assert not found.finished


class TestInputs:
    """The inputs of each agent and model."""

    def test_are_rebuilt_exactly(self, recorded: Recording) -> None:
        """From ids alone: each text is written once in the trace."""
        found = recorded.trajectory
        seen = [
            (each.kind, each.agent, [message.content for message in found.seen_by(each)])
            for each in found.invocations
        ]
        assert seen == [
            ("agent", "analyst", [TASK.content]),
            ("model", "analyst", [TASK.content]),
            ("model", "analyst", [TASK.content, "", "3,410.50"]),
            ("agent", "reviewer", [TASK.content, "They owe 3,410.50."]),
        ]
        (request,) = found.seen_by(found.invocations[2])[1].tool_calls
        assert (request.name, request.arguments) == ("lookup", {"page": 1})
        everything = json.dumps([dict(span.attributes) for span in recorded.records])
        assert everything.count(TASK.content) == 1

    def test_keep_the_role_under_which_a_message_was_shown(self) -> None:
        """An agent's answer is another one's question."""
        recording = Recording()
        run = recording.telemetry.run("r")
        recording.telemetry.message("a", ["b"], Message("mine"), parent=run.context)
        shown = Message("mine", role="user")
        recording.telemetry.agent("b", parent=run.context, input=[shown]).end()
        run.end()
        found = recording.trajectory
        assert [message.role for message in found.seen_by(found.invocations[0])] == ["user"]

    def test_under_an_id_that_is_used_twice_stay_apart(self) -> None:
        """Frameworks overwrite messages in place; both texts are kept."""
        recording = Recording()
        run = recording.telemetry.run("r")
        context = run.context
        recording.telemetry.message("a", ["b"], Message("draft", id="m1"), parent=context)
        recording.telemetry.message("a", ["b"], Message("final", id="m1"), parent=context)
        seen = [Message("draft", id="m1"), Message("final", id="m1")]
        recording.telemetry.agent("b", parent=context, input=seen).end()
        run.end()
        found = recording.trajectory
        (turn,) = found.invocations
        assert [message.content for message in found.seen_by(turn)] == ["draft", "final"]

    @pytest.mark.parametrize("call_ids", [("call-1", "call-2"), (None, None)])
    def test_hold_a_call_that_is_made_again_with_its_own_id(
        self, call_ids: tuple[str | None, str | None]
    ) -> None:
        """A repeated call with equal arguments and result is another call; also without ids on its span."""
        recording = Recording()
        run = recording.telemetry.run("r", input=[TASK])
        history = [TASK]
        for number, call_id in enumerate(call_ids, 1):
            calls = (ToolCall("lookup", {"page": 1}, f"call-{number}"),)
            chat = recording.telemetry.chat("gpt", parent=run.context, input=history)
            chat.response(Message("", tool_calls=calls))
            chat.end()
            tool = recording.telemetry.tool("lookup", parent=run.context, call_id=call_id)
            tool.result("3,410.50")
            tool.end()
            history.append(Message("", tool_calls=calls))
            history.append(Message("3,410.50", role="tool", tool_call_id=f"call-{number}"))
        recording.telemetry.chat("gpt", parent=run.context, input=history).end()
        run.end()
        found = recording.trajectory
        seen = found.seen_by(found.invocations[-1])
        assert [message.content for message in seen] == [message.content for message in history]
        assert [c.id for message in seen for c in message.tool_calls] == ["call-1", "call-2"]
        if call_ids[0]:
            answered = [message.tool_call_id for message in seen]
            assert answered == [message.tool_call_id for message in history]

    def test_that_a_tool_returns_in_an_agents_words_answer_its_call(self) -> None:
        """A coworker's answer is a message of the coworker and the result of the tool that asked."""
        recording = Recording()
        run = recording.telemetry.run("r")
        tool = recording.telemetry.tool("delegate", parent=run.context, call_id="call-1")
        recording.telemetry.message("b", ["a"], Message("42"), parent=tool.context)
        tool.result("42")
        tool.end()
        answer = Message("42", role="tool", tool_call_id="call-1")
        recording.telemetry.chat("gpt", parent=run.context, input=[answer]).end()
        run.end()
        found = recording.trajectory
        (call,) = found.invocations
        (seen,) = found.seen_by(call)
        assert (seen.content, seen.tool_call_id) == ("42", "call-1")

    def test_of_a_call_outside_of_runs_stay_apart(self) -> None:
        """Two calls of a tool with the same result are two messages without a run, too."""
        recording = Recording()
        asked = [
            Message("", tool_calls=(ToolCall("add", {"a": 2}, f"call-{number}"),))
            for number in range(2)
        ]
        told = [Message("5", role="tool", tool_call_id=f"call-{number}") for number in range(2)]
        recording.telemetry.chat("gpt", input=[*asked, *told]).end()
        found = recording.trajectory
        seen = found.seen_by(found.invocations[0])
        assert [c.id for message in seen for c in message.tool_calls] == ["call-0", "call-1"]
        assert [message.tool_call_id for message in seen[2:]] == ["call-0", "call-1"]

    def test_of_a_tools_words_said_by_an_agent_answer_no_call(self) -> None:
        """A tool's text that an agent sends counts as an answer only under the role of a tool."""
        recording = Recording()
        run = recording.telemetry.run("r")
        tool = recording.telemetry.tool("lookup", parent=run.context, call_id="call-1")
        tool.result("42")
        tool.end()
        seen = [Message("42", role="tool", tool_call_id="call-1"), Message("42")]
        recording.telemetry.chat("gpt", parent=run.context, input=seen).end()
        run.end()
        found = recording.trajectory
        rebuilt = found.seen_by(found.invocations[0])
        assert [(m.role, m.tool_call_id) for m in rebuilt] == [
            ("tool", "call-1"),
            ("assistant", None),
        ]


class TestErrors:
    """Errors."""

    def test_are_kept_with_their_text(self) -> None:
        """Errors of tools, and of the run."""
        recording = Recording()
        run = recording.telemetry.run("r")
        recording.telemetry.tool("t", parent=run.context, agent="a").end(KeyError("page"))
        run.end(RuntimeError())
        found = recording.trajectory
        assert found.steps[0].error == "'page'"
        assert found.error == "RuntimeError"


class TestStores:
    """Forms of spans after a store."""

    @pytest.mark.parametrize(
        "kept",
        [lambda spans: map(as_stored, spans), reversed, lambda spans: [*spans, *spans]],
        ids=["as texts", "as they end", "twice"],
    )
    def test_are_read_as_the_same_run(self, recorded: Recording, kept: Any) -> None:
        """ClickHouse keeps a map of texts; spans arrive as they end, and at least once."""
        assert read_trajectory(kept(recorded.records)) == recorded.trajectory

    def test_spans_without_an_id_are_not_taken_for_one(self) -> None:
        """Importers may have none."""
        spans = [
            record("", start=index, operation="send_message", **{"mast.message.content": "x"})
            for index in range(3)
        ]
        assert len(read_trajectory(spans).steps) == 3

    def test_negative_durations_and_cycles_of_parents_do_no_harm(self) -> None:
        """Clocks go wrong and so do ids."""
        spans = [
            record("a", start=9, end=1, parent="b", operation="invoke_agent"),
            record("b", start=8, end=2, parent="a", operation="execute_tool"),
            record("c", start=7, end=3, parent="c", operation="send_message"),
        ]
        found = read_trajectory(spans)
        assert len(found.steps) == 2
        assert not found.finished

    def test_cut_json_loses_its_own_text_only(self, recorded: Recording) -> None:
        """An attribute that something on the way cut short."""
        spans = [
            dataclasses.replace(
                span,
                attributes={
                    name: value[:-9] if name == semconv.OUTPUT_MESSAGES else value
                    for name, value in span.attributes.items()
                },
            )
            for span in recorded.records
        ]
        found = read_trajectory(spans)
        assert found.texts["task"].content == TASK.content
        assert found.final_answer == "Approved."

    def test_a_deep_chain_of_spans_is_read(self) -> None:
        """Recursion in a graph is no recursion in the reader."""
        spans = [
            record(
                str(index),
                start=index,
                parent=str(index - 1) if index else "",
                operation="execute_tool",
                **({"gen_ai.agent.name": "a"} if not index else {}),
            )
            for index in range(5000)
        ]
        assert read_trajectory(spans).agents == ("a",)


def record(
    span_id: str,
    *,
    start: int = 0,
    end: int | None = None,
    parent: str = "",
    name: str = "span",
    operation: str = "",
    **attributes: Any,
) -> SpanRecord:
    more = {semconv.OPERATION_NAME: operation} if operation else {}
    return SpanRecord(
        trace_id="t",
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        start=start,
        end=start if end is None else end,
        attributes={**more, **attributes},
        scope="mast_trace.test",
    )


def test_an_ended_span_has_the_record_that_a_store_would_return() -> None:
    exporter = InMemorySpanExporter()
    tracer = make_provider("desk", SimpleSpanProcessor(exporter)).get_tracer("tool")
    with tracer.start_as_current_span("out") as open_one:
        tracer.start_span("in", attributes={"a": 1}, start_time=2).end(3)
        open_one.set_status(StatusCode.ERROR, "broken")
    inner, outer = map(span_record, exporter.get_finished_spans())
    of = (outer.trace_id, inner.span_id, outer.span_id)
    assert inner == SpanRecord(*of, "in", 2, 3, {"a": 1}, service="desk", scope="tool")
    assert (outer.parent_span_id, outer.status, outer.status_message) == ("", "Error", "broken")


class TestAnySpans:
    """Everything that a collector accepts can be read."""

    def test_json_that_is_nested_too_deeply_is_text(self) -> None:
        """Python's reader gives up on it with a RecursionError, which is no ValueError."""
        deep = "[" * 100_000
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": deep}
        span = SpanRecord("t", "a", "", "x", 0, 1, attributes, "Unset", "", "")
        (step,) = read_trajectory([span]).steps
        assert step.arguments == deep

    @pytest.mark.parametrize("parent", ["a", ""])
    def test_a_copy_without_an_id_is_left_out(self, parent: str) -> None:
        """Another tool's span of one of our turns, around or at the same time, may lack an id."""
        turn = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ann"}
        ours = SpanRecord("t", "a", "", "x", 0, 9, turn, "Unset", "", scope="mast_trace.x")
        copy = SpanRecord("t", "", parent, "x", 1, 8, turn, "Unset", "", scope="other")
        other = SpanRecord("t", "", parent, "x", 20, 30, {}, "Unset", "", scope="other")
        assert len(read_trajectory([ours, copy, other]).invocations) == 1

    @FUZZ
    @given(st.lists(SPANS, max_size=8))
    def test_never_raise_and_steps_are_numbered(self, spans: Iterable[SpanRecord]) -> None:
        """Any attribute with any value under any operation."""
        found = read_trajectory(spans)
        assert [step.index for step in found.steps] == list(range(len(found.steps)))
        assert [step.start for step in found.steps] == sorted(step.start for step in found.steps)
        for invocation in found.invocations:
            found.seen_by(invocation)
        assert isinstance(found.final_answer, str)

    @FUZZ
    @given(st.lists(SPANS, max_size=6))
    def test_survive_a_round_trip_through_json(self, spans: Iterable[SpanRecord]) -> None:
        """Every trajectory that can be read can be written and read again."""
        found = read_trajectory(spans)
        text = json.dumps(to_dict(found))
        again = trajectory_from_dict(json.loads(text))
        assert json.dumps(to_dict(again)) == text
        assert again.steps == found.steps


class TestJson:
    """`to_dict` and `from_dict`."""

    def test_give_the_same_trajectory(self, recorded: Recording) -> None:
        """Equal in every field."""
        shape = json.loads(json.dumps(to_dict(recorded.trajectory)))
        assert trajectory_from_dict(shape) == recorded.trajectory

    def test_leave_out_what_is_the_default(self) -> None:
        """A small run is a small file."""
        assert to_dict(Trajectory("t", steps=())) == {"trace_id": "t", "steps": [], "texts": {}}

    def test_ignore_fields_of_a_later_version(self, recorded: Recording) -> None:
        """Unknown fields do not keep a file from being read."""
        shape = to_dict(recorded.trajectory)
        shape["new"] = 1
        shape["steps"][0]["new"] = 1
        assert trajectory_from_dict(shape) == recorded.trajectory

    @pytest.mark.parametrize(
        ("shape", "says"),
        [
            ([], "Trajectory"),
            ({"steps": []}, "trace_id"),
            ({"trace_id": "t", "steps": {}}, "array"),
            ({"trace_id": "t", "steps": [{"kind": "dance"}]}, "dance"),
            ({"trace_id": "t", "steps": [{"kind": "tool"}]}, "index"),
            (
                {
                    "trace_id": "t",
                    "steps": [{"index": 0, "kind": "tool", "agent": "a", "text": None}],
                },
                "text of a Step",
            ),
            ({"trace_id": "t", "steps": [], "texts": []}, "texts"),
        ],
    )
    def test_say_what_is_wrong(self, shape: Any, says: str) -> None:
        """A file that is no trajectory is refused with a reason."""
        with pytest.raises(ValueError, match=says):
            trajectory_from_dict(shape)


@pytest.mark.parametrize(
    ("answer", "text", "became"), [("m2", "h", {}), ("r1", "h", {"r1": "m1"}), ("r1", "", {})]
)
def test_an_answer_becomes_a_message_with_its_text_that_is_no_answer_itself(
    answer: str, text: str, became: dict[str, str]
) -> None:
    """It may be said after another message with its text; spans without a hash of theirs tell of no text."""
    said = [("chat", answer), ("send_message", "m1"), ("send_message", "m2")]
    spans = [
        SpanRecord(
            "t",
            *(str(at), "", operation, at, at),
            {
                semconv.OPERATION_NAME: operation,
                semconv.MESSAGE_ID: identity,
                semconv.MESSAGE_CONTENT_HASH: text,
            },
        )
        for at, (operation, identity) in enumerate(said)
    ]
    assert aliases_of(spans) == became


@pytest.mark.parametrize(
    ("content", "called", "only"),
    [("", {"a", "b"}, True), ("", {"a"}, False), ("I look.", {"a", "b"}, False)],
)
def test_an_answer_with_words_or_an_unknown_call_is_a_step(
    content: str, called: set[str], only: bool
) -> None:
    calls = tuple(ToolCall("look", id=each) for each in ("a", "b"))
    assert _only_calls(Message(content, tool_calls=calls), called) is only
