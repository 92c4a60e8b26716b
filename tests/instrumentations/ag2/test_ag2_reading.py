"""AG2's events and parts, read into the messages of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.ag2.reading import (
    answer,
    encoder,
    heard,
    seen,
    shown_to_model,
    text_of,
)

pytestmark = pytest.mark.framework("ag2")

events = pytest.importorskip("ag2.events", reason="needs AG2")
compact = pytest.importorskip("ag2.compact", reason="needs AG2")


class Shouting:
    """A program's own serializer."""

    def encode(self, data: Any) -> bytes:
        return json.dumps(data).upper().encode()


ENCODE = encoder(Shouting())


class TestParts:
    """The parts of a request or of a tool's result."""

    def test_texts_stand_below_each_other(self) -> None:
        parts = [events.TextInput("one"), events.TextInput("two")]
        assert text_of(parts, ENCODE) == "one\ntwo"
        assert text_of([], ENCODE) == ""

    def test_data_is_what_the_program_makes_of_it(self) -> None:
        assert text_of([events.DataInput({"a": "b"})], ENCODE) == '{"A": "B"}'

    def test_where_its_serializer_fails_it_is_json(self) -> None:
        unable = encoder(object())
        assert json.loads(text_of([events.DataInput({"a": "b"})], unable)) == {"a": "b"}

    def test_of_others_only_what_they_are(self) -> None:
        parts = [
            events.ImageInput("https://example.org/i.png"),
            events.ImageInput(file_id="f1", filename="i.png"),
            events.ImageInput(data=b"secret", media_type="image/png"),
        ]
        assert [json.loads(line) for line in text_of(parts, ENCODE).splitlines()] == [
            {"type": "UrlInput", "url": "https://example.org/i.png"},
            {"type": "FileIdInput", "file_id": "f1", "filename": "i.png"},
            {"type": "BinaryInput", "media_type": "image/png"},
        ]


def response(text: str | None, *calls: Any) -> Any:
    message = None if text is None else events.ModelMessage(text)
    return events.ModelResponse(message, tool_calls=events.ToolCallsEvent(list(calls)))


CALL = events.ToolCallEvent("look_up", id="c1", arguments='{"key": "x"}')


class TestHistory:
    """The part of a history that reaches a model."""

    def test_a_models_answer(self) -> None:
        assert answer(response("text")) == Message("text")
        assert answer(response(None, CALL)) == Message(
            "", tool_calls=(ToolCall("look_up", '{"key": "x"}', "c1"),)
        )

    def test_one_without_calls_asks_for_none(self) -> None:
        sent = response("text")
        sent.tool_calls = None
        assert answer(sent) == Message("text")

    def test_data_is_what_the_program_makes_of_it(self) -> None:
        given = events.ModelRequest([events.DataInput({"a": "b"})])
        result = events.ToolResultEvent.from_call(CALL, {"c": "d"})
        told = [
            message.content for message in seen([given, events.ToolResultsEvent([result])], ENCODE)
        ]
        assert told == ['{"A": "B"}', '{"C": "D"}']

    def test_every_event_in_order(self) -> None:
        result = events.ToolResultEvent.from_call(CALL, "found")
        history = [
            compact.CompactionSummary(summary="Before.", event_count=3),
            events.ModelRequest([events.TextInput("ask")]),
            response("Let me see.", CALL),
            events.ToolResultsEvent([result, result]),
            events.HumanInputRequest("not for models"),
        ]
        told = [
            Message("[Summary of earlier conversation]\nBefore.", "user"),
            Message("ask", "user"),
            Message("Let me see.", tool_calls=(ToolCall("look_up", '{"key": "x"}', "c1"),)),
            *[Message("found", "tool", tool_call_id="c1")] * 2,
        ]
        assert seen(history, ENCODE) == told
        system = Message("Be brief.\nBe kind.", "system")
        assert shown_to_model(["Be brief.", "Be kind."], history, ENCODE) == [system, *told]
        assert shown_to_model([], history, ENCODE) == told


class TestHeard:
    """A channel's view of a message is read as the original message."""

    @staticmethod
    def sent(*texts: str) -> dict[str, str]:
        return {Message(text).key: text for text in texts}

    def test_the_speakers_label_is_taken_off(self) -> None:
        found = heard(
            [Message("[critic]: It is [bad]: no.", "user")], self.sent("It is [bad]: no.")
        )
        assert found == [Message("It is [bad]: no.", "user", name="critic")]

    def test_so_is_a_handoffs_line(self) -> None:
        sent = self.sent("Go on.\nNow.")
        labelled = heard([Message("[planner]: Handing over to you.\nGo on.\nNow.", "user")], sent)
        assert labelled == [Message("Go on.\nNow.", "user", name="planner")]
        bare = heard([Message("[to you]\nGo on.\nNow.", "user")], sent)
        assert bare == [Message("Go on.\nNow.", "user")]

    def test_a_first_line_that_was_said_is_no_handoffs(self) -> None:
        sent = self.sent("Go on.\nNow.", "Now.")
        found = heard([Message("[planner]: Go on.\nNow.", "user")], sent)
        assert found == [Message("Go on.\nNow.", "user", name="planner")]

    @pytest.mark.parametrize(
        "message",
        [
            Message("[critic]: Nobody said this.", "user"),
            Message("[critic]: Nobody said\nthis.", "user"),
            Message("[critic]: said", "assistant"),
            Message("critic]: said", "user"),
            Message("said", "user"),
            Message("[no label", "user"),
        ],
    )
    def test_what_nobody_said_stays_as_it_is(self, message: Message) -> None:
        others = [Message("[writer]: said", "user")]
        found = heard([message, *others], self.sent("said"))
        assert found == [message, Message("said", "user", name="writer")]

    def test_so_does_what_was_said_with_a_label_of_its_own(self) -> None:
        sent = self.sent("[note]: keep", "keep")
        assert heard([Message("[note]: keep", "user")], sent) == [Message("[note]: keep", "user")]
