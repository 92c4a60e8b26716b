"""The five spans as instrumentations write them: all arguments of a factory arrive."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, get_current_span

from mast_trace.content import Capture, ContentPolicy, Redacted, content_hash, truncate
from mast_trace.delivery.provider import make_provider
from mast_trace.messages import Message, ToolCall
from mast_trace.spans import Telemetry, chat_is_open, current_agent, current_run
from mast_trace.spans.message_attributes import _shares

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from mast_trace.spans import OpenSpan

TASK = Message("Refund order 17", role="user", id="m1")
SHOWN = {
    "mast.input.message_ids": ("m1",),
    "mast.input.message_roles": ("user",),
    "mast.input.length": 15,
}
TOP = Context()


class Recorder:
    """A `Telemetry`, and the spans that have ended."""

    def __init__(self, content: ContentPolicy | None = None, **names: str) -> None:
        self.exporter = InMemorySpanExporter()
        provider = make_provider("service", SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(provider, content, **names)

    def last(self) -> ReadableSpan:
        return self.exporter.get_finished_spans()[-1]

    def attributes(self) -> dict[str, Any]:
        """The last span's, but for its operation."""
        found = dict(self.last().attributes or {})
        del found["gen_ai.operation.name"]
        return found


@pytest.fixture
def made() -> Recorder:
    return Recorder()


def is_below(child: ReadableSpan, parent: OpenSpan) -> bool:
    return child.parent is not None and child.parent == parent.span.get_span_context()


@pytest.mark.parametrize(
    ("names", "scope", "common"),
    [
        ({}, "mast_trace", {}),
        ({"framework": "agentX"}, "mast_trace.agentX", {"mast.framework": "agentX"}),
        (
            {"framework": "ag2", "version": "1.1"},
            "mast_trace.ag2",
            {"mast.framework": "ag2", "mast.framework.version": "1.1"},
        ),
    ],
)
def test_each_span_names_its_framework(
    names: dict[str, str], scope: str, common: dict[str, str]
) -> None:
    recorder = Recorder(**names)
    recorder.telemetry.agent("planner", parent=TOP).end()
    span = recorder.last()
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == scope
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        **common,
    }


def test_a_run(made: Recorder) -> None:
    earlier = made.telemetry.run("earlier", parent=TOP)
    earlier.end()
    run = made.telemetry.run(
        "refunds",
        parent=TOP,
        input=[TASK],
        conversation_id="c1",
        links=[Link(earlier.span.get_span_context())],
        attributes={"mast.run.kind": "trial"},
        start_time=5,
    )
    run.end(end_time=9)
    span = made.last()
    assert (span.name, span.kind) == ("invoke_workflow refunds", SpanKind.INTERNAL)
    assert (span.start_time, span.end_time, span.parent) == (5, 9, None)
    assert [link.context for link in span.links] == [earlier.span.get_span_context()]
    found = made.attributes()
    [written] = json.loads(found.pop("gen_ai.input.messages"))
    assert written == {
        "role": "user",
        "parts": [{"type": "text", "content": TASK.content}],
        "id": "m1",
    }
    assert found == {
        "gen_ai.agent.name": "refunds",
        "gen_ai.conversation.id": "c1",
        "mast.run.kind": "trial",
        **SHOWN,
    }


def test_a_run_in_its_context(made: Recorder) -> None:
    """Without one it goes below the current span; inside of another run it is a part of that."""
    run = made.telemetry.run("outer", parent=TOP)
    assert current_run(run.context) is run.run
    assert run.run.root is run.span
    assert not run.nested
    with run.attached():
        inner = made.telemetry.run("inner")
        apart = made.telemetry.run("apart", parent=TOP)
    assert (inner.nested, apart.nested) == (True, False)
    inner.end()
    assert made.attributes() == {"gen_ai.agent.name": "inner"}
    assert is_below(made.last(), run)
    apart.end()
    assert made.last().parent is None


def test_an_agent(made: Recorder) -> None:
    run = made.telemetry.run("refunds", parent=TOP, input=[TASK])
    turn = made.telemetry.agent(
        "planner",
        parent=run.context,
        agent_id="a1",
        description="Plans.",
        input=[TASK, Message("Hurry.", role="user", id="m2")],
        conversation_id="c1",
        links=[Link(run.span.get_span_context())],
        attributes={"more": 1},
    )
    turn.end()
    span = made.last()
    assert (span.name, span.kind) == ("invoke_agent planner", SpanKind.INTERNAL)
    assert is_below(span, run)
    assert [link.context for link in span.links] == [run.span.get_span_context()]
    found = made.attributes()
    assert [each["id"] for each in json.loads(found.pop("gen_ai.input.messages"))] == ["m2"]
    assert found == {
        "gen_ai.agent.name": "planner",
        "mast.agent.id": "a1",
        "gen_ai.agent.description": "Plans.",
        "gen_ai.conversation.id": "c1",
        "more": 1,
        "mast.input.message_ids": ("m1", "m2"),
        "mast.input.message_roles": ("user", "user"),
        "mast.input.length": 21,
    }


def test_an_agent_of_which_more_becomes_known(made: Recorder) -> None:
    """It is written when the turn ends, whatever else is done meanwhile; what comes later is not."""
    turn = made.telemetry.agent("planner", parent=TOP, attributes={"asked": "first"})
    turn.set({"asked": "again", "nothing": None})
    turn.span.set_attribute("by_the_program", value=True)
    turn.set({"seen": [1, 2], "broken": "\ud800"})
    turn.end("it failed")
    turn.set({"late": 1})
    turn.end()
    assert made.attributes() == {
        "gen_ai.agent.name": "planner",
        "asked": "again",
        "by_the_program": True,
        "seen": (1, 2),
        "broken": "?",
        "error.type": "_OTHER",
    }


def test_a_message(made: Recorder) -> None:
    run = made.telemetry.run("refunds", parent=TOP)
    identities = [
        made.telemetry.message(
            "planner",
            ["clerk", "user"],
            Message("Refund it.", id=identity),
            parent=run.context,
            in_reply_to="m0",
            performative="request",
            attributes={"more": 1},
            timestamp=7,
        )
        for identity in ("m1", "m2")
    ]
    assert identities == ["m1", "m2"]
    span = made.last()
    assert (span.name, span.start_time, span.end_time) == ("send_message planner", 7, 7)
    assert is_below(span, run)
    assert made.attributes() == {
        "gen_ai.agent.name": "planner",
        "mast.message.sender": "planner",
        "mast.message.recipients": ("clerk", "user"),
        "mast.message.in_reply_to": "m0",
        "mast.message.performative": "request",
        "mast.turn": 1,
        "mast.message.id": "m2",
        "mast.message.role": "assistant",
        "mast.message.content_hash": content_hash("Refund it."),
        "mast.message.content": "Refund it.",
        "more": 1,
    }


def test_a_message_that_its_run_knows(made: Recorder) -> None:
    """A known message keeps its id, whatever is current; an agent that repeats it sends a new one."""
    run = made.telemetry.run("refunds", parent=TOP, input=[TASK])
    assert made.telemetry.message("user", ["planner"], TASK, parent=run.context) == "m1"
    sent = Message(TASK.content)
    assert made.telemetry.message("planner", [], sent, parent=run.context) == content_hash(
        TASK.content
    )


def test_a_message_that_answers_itself(made: Recorder) -> None:
    """A message that names itself as the answered one answers nothing: frameworks may reuse an id."""
    run = made.telemetry.run("refunds", parent=TOP)
    sent = Message("Refund it.", id="m2")
    made.telemetry.message("planner", [], sent, parent=run.context, in_reply_to="m2")
    assert "mast.message.in_reply_to" not in made.attributes()


def test_a_message_that_is_told_of_before_it_is_recorded(made: Recorder) -> None:
    """The message is shown under the id that its span has later, beside others of equal text."""
    run = made.telemetry.run("refunds", parent=TOP, input=[Message("Yes.", role="user")])
    turn = made.telemetry.agent("clerk", parent=run.context)
    told = made.telemetry.identify("clerk", Message("Yes."), parent=turn.context)
    shown = made.telemetry.inputs([told], run.context)
    assert shown == {
        "mast.input.message_ids": [told.id],
        "mast.input.message_roles": ["assistant"],
        "mast.input.length": 4,
    }
    assert told.id == made.telemetry.message("clerk", [], told, parent=turn.context)
    assert told.id != content_hash("Yes.")
    turn.reply(Message("Yes."))
    turn.end()
    assert made.attributes()["mast.message.id"] == told.id


def test_a_message_without_a_run_takes_no_time(made: Recorder) -> None:
    before = time.time_ns()
    identity = made.telemetry.message("planner", [], Message("Refund it."), parent=TOP)
    span = made.last()
    assert identity == content_hash("Refund it.")
    assert span.start_time == span.end_time
    assert before <= (span.start_time or 0) <= time.time_ns()
    assert "mast.turn" not in made.attributes()


def test_a_tool(made: Recorder) -> None:
    turn = made.telemetry.agent("clerk", parent=TOP)
    call = made.telemetry.tool(
        "refund",
        parent=turn.context,
        arguments={"order": 17},
        call_id="call-1",
        requested_by="planner",
        description="Pays back.",
        handoff=("clerk", "bank"),
        attributes={"more": 1},
    )
    assert call.call_id == "call-1"
    call.end()
    assert (made.last().name, made.last().kind) == ("execute_tool refund", SpanKind.INTERNAL)
    assert is_below(made.last(), turn)
    assert made.attributes() == {
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Pays back.",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.call.arguments": '{"order": 17}',
        "gen_ai.agent.name": "clerk",
        "mast.tool.requested_by": "planner",
        "mast.handoff.source.name": "clerk",
        "mast.handoff.target.name": "bank",
        "more": 1,
    }
    made.telemetry.tool("refund", parent=turn.context, agent="other").end()
    assert made.attributes() == {
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "other",
    }


def test_a_model_call(made: Recorder) -> None:
    turn = made.telemetry.agent("clerk", parent=TOP)
    call = made.telemetry.chat(
        "gpt", parent=turn.context, provider="openai", input=[TASK], attributes={"more": 1}
    )
    assert chat_is_open(call.context)
    assert get_current_span(call.context) is call.span
    assert not chat_is_open(turn.context)
    call.end()
    assert (made.last().name, made.last().kind) == ("chat gpt", SpanKind.CLIENT)
    assert is_below(made.last(), turn)
    found = made.attributes()
    assert len(json.loads(found.pop("gen_ai.input.messages"))) == 1
    assert found == {
        "gen_ai.request.model": "gpt",
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "clerk",
        "more": 1,
        **SHOWN,
    }
    made.telemetry.chat("gpt", parent=turn.context, agent="other").end()
    assert made.attributes() == {"gen_ai.request.model": "gpt", "gen_ai.agent.name": "other"}


def test_a_span_without_a_parent_goes_below_the_current_one(made: Recorder) -> None:
    """With what is known there: who acts, and which texts the run holds."""
    run = made.telemetry.run("refunds", parent=TOP, input=[TASK])
    with run.attached():
        turn = made.telemetry.agent("clerk", input=[TASK])
    assert current_agent(turn.context) == "clerk"
    with turn.attached():
        call = made.telemetry.tool("refund")
        chat = made.telemetry.chat("gpt", input=[TASK])
        made.telemetry.message("clerk", [], Message("Done."))
    assert is_below(made.last(), turn)
    assert made.attributes()["mast.turn"] == 0
    for opened in (call, chat):
        opened.end()
        assert is_below(made.last(), turn)
        assert made.attributes()["gen_ai.agent.name"] == "clerk"
    assert "gen_ai.input.messages" not in made.attributes()
    turn.end()
    assert is_below(made.last(), run)
    assert "gen_ai.input.messages" not in made.attributes()


@pytest.mark.parametrize(
    ("content", "described"),
    [
        (None, "Plans."),
        (ContentPolicy(capture=False), None),
        (ContentPolicy(redact=str.upper), "PLANS."),
    ],
)
def test_a_description_leaves_the_process_as_other_texts_do(
    content: ContentPolicy | None, described: str | None
) -> None:
    telemetry = (recorder := Recorder(content)).telemetry
    telemetry.agent("planner", parent=TOP, description="Plans.").end()
    assert recorder.attributes().get("gen_ai.agent.description") == described
    telemetry.tool("plan", parent=TOP, description="Plans.").end()
    assert recorder.attributes().get("gen_ai.tool.description") == described


def test_a_long_description_is_cut(made: Recorder) -> None:
    made.telemetry.agent("planner", parent=TOP, description="x" * 5000).end()
    assert made.attributes()["gen_ai.agent.description"] == truncate("x" * 5000, 4096)


def test_a_name_as_long_as_a_task_is_cut(made: Recorder) -> None:
    """On the span; its attribute keeps all of it, and what cannot be encoded is replaced."""
    made.telemetry.agent("\ud800" + "x" * 300, parent=TOP).end()
    assert made.last().name == "invoke_agent ?" + "x" * 186
    assert made.attributes() == {"gen_ai.agent.name": "?" + "x" * 300}


def test_an_outcome_goes_to_the_root_while_it_is_open() -> None:
    recorder = Recorder(ContentPolicy(redact=lambda text: text.replace("17", "?")))
    run = recorder.telemetry.run("refunds", parent=TOP)
    recorder.telemetry.outcome(run.span, "failure", "order 17 was not paid")
    run.end()
    assert recorder.attributes() == {
        "gen_ai.agent.name": "refunds",
        "mast.run.outcome": "failure",
        "mast.run.outcome_reason": "order ? was not paid",
    }


@pytest.mark.parametrize("as_span", [True, False])
@pytest.mark.parametrize("reason", [(), ("",), ("all paid",)])
def test_an_outcome_after_the_end_has_a_span_of_its_own(
    made: Recorder, as_span: bool, reason: tuple[str, ...]
) -> None:
    """In the trace of the run that it is about, whatever is current."""
    run = made.telemetry.run("refunds", parent=TOP)
    run.end()
    other = made.telemetry.run("other", parent=TOP)
    root = run.span if as_span else run.span.get_span_context()
    with other.attached():
        made.telemetry.outcome(root, "success", *reason)
    assert made.last().name == "record_outcome success"
    assert is_below(made.last(), run)
    sent = {"mast.run.outcome_reason": reason[0]} if any(reason) else {}
    assert made.attributes() == {"mast.run.outcome": "success", **sent}


def test_every_altered_part_of_an_answer_is_named() -> None:
    """An input, an answer and the parts beside it, written one after the other."""
    recorder = Recorder(ContentPolicy(redact=lambda text: text.replace("17", "?")))
    chat = recorder.telemetry.chat("gpt", parent=TOP, input=[TASK])
    chat.response(Message("Order 17 is refunded"), extra={"thought": "17 it is"})
    chat.end()
    assert recorder.attributes()["mast.content.redacted"] == (
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "mast.response.extra",
    )
    chat = recorder.telemetry.chat("gpt", parent=TOP)
    chat.response(Message("Order 17 is refunded"), extra={"thought": "done"})
    chat.end()
    assert recorder.attributes()["mast.content.redacted"] == ("gen_ai.output.messages",)


@pytest.mark.parametrize("text", ["short", "x" * 2000])
def test_cut_calls_of_a_message_are_named(text: str) -> None:
    """Apart from the text of the message, which may be whole."""
    recorder = Recorder(ContentPolicy(limit=1000))
    calls = (ToolCall("write", {"file": "y" * 2000}, "c1"),)
    recorder.telemetry.message("a", ["b"], Message(text, tool_calls=calls), parent=TOP)
    names = ["mast.message.content", "mast.message.tool_calls"][text == "short" :]
    assert recorder.attributes()["mast.content.truncated"] == tuple(names)
    whole = (ToolCall("write", {"file": "y"}, "c1"),)
    recorder.telemetry.message("a", ["b"], Message("short", tool_calls=whole), parent=TOP)
    assert "mast.content.truncated" not in recorder.attributes()


@pytest.mark.parametrize(("capture", "written"), [(True, 0), ("full", 1)])
def test_an_answer_that_was_sent_is_written_again_where_all_is(
    capture: Capture, written: int
) -> None:
    recorder = Recorder(ContentPolicy(capture=capture))
    run = recorder.telemetry.run("desk", parent=TOP)
    turn = recorder.telemetry.agent("clerk", parent=run.context)
    recorder.telemetry.message("clerk", ["user"], Message("Done."), parent=turn.context)
    turn.reply(Message("Done."))
    turn.end()
    assert ("gen_ai.output.messages" in recorder.attributes()) == bool(written)


def test_a_reply_is_the_message_that_its_agent_sent_in_this_turn_unless_it_has_an_id_of_its_own() -> (
    None
):
    """A message by somebody else with the same words is another one."""
    recorder = Recorder()
    run = recorder.telemetry.run("desk", parent=TOP)
    replied = {}
    for sender, given in (("clerk", None), ("clerk", "m9"), ("boss", None)):
        turn = recorder.telemetry.agent("clerk", parent=run.context)
        sent = recorder.telemetry.message(sender, ["user"], Message("Done."), parent=turn.context)
        turn.reply(Message("Done.", id=given))
        turn.end()
        replied[sender, given] = recorder.attributes()["mast.message.id"] == sent
    assert replied == {("clerk", None): True, ("clerk", "m9"): False, ("boss", None): False}


def test_a_cut_call_of_an_input_is_named_though_it_is_redacted() -> None:
    recorder = Recorder(ContentPolicy(limit=1000, redact=lambda text: text))
    asked = Message("", tool_calls=(ToolCall("write", {"file": ["y" * 900] * 4}, "c1"),))
    recorder.telemetry.agent("clerk", parent=TOP, input=[asked]).end()
    assert recorder.attributes()["mast.content.truncated"] == ("gen_ai.input.messages",)


def test_parts_beside_an_answer_are_left_out_by_their_size_in_bytes() -> None:
    recorder = Recorder(ContentPolicy(limit=1000))
    for text, is_kept in (("x" * 900, True), ("\u20ac" * 900, False)):
        chat = recorder.telemetry.chat("gpt", parent=TOP)
        chat.response(Message("yes"), extra={"thought": text})
        chat.end()
        beside = json.loads(recorder.attributes()["mast.response.extra"])
        assert (beside == {"thought": text}) == is_kept


def test_words_of_the_interface_beside_an_answer_are_not_redacted() -> None:
    recorder = Recorder(ContentPolicy(redact=lambda _: "?"))
    chat = recorder.telemetry.chat("gpt", parent=TOP)
    chat.response(Message("yes"), extra={"parts": [{"type": "thinking", "thought": "secret"}]})
    chat.end()
    beside = json.loads(recorder.attributes()["mast.response.extra"])
    assert beside == {"parts": [{"type": "thinking", "thought": "?"}]}


@pytest.mark.parametrize(
    ("lengths", "limit", "shares"),
    [
        ([100, 200], 300, [300, 300]),
        ([10_000, 100, 10_000], 2000, [950, 666, 950]),
        ([900] * 10, 1000, [256] * 10),
    ],
)
def test_short_texts_stay_whole_and_long_ones_get_equal_parts(
    lengths: list[int], limit: int, shares: list[int]
) -> None:
    """Not less than 256 bytes: of a text of which less is left, nothing can be read."""
    assert _shares(lengths, limit) == shares


def test_a_text_that_was_redacted_before_it_was_recorded_is_named() -> None:
    recorder = Recorder(ContentPolicy(redact=lambda text: text))
    for result in (Redacted("key: ?"), "key: ?"):
        tool = recorder.telemetry.tool("pay", parent=TOP)
        tool.result(result)
        tool.end()
        is_named = "mast.content.redacted" in recorder.attributes()
        assert is_named == isinstance(result, Redacted)
