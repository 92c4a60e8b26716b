"""Requests and answers of the OpenAI client, read field by field into the messages of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.openai.requests import (
    chat_messages,
    responses_messages,
    text_of,
    tool_call,
)
from mast_trace_instrumentations.openai.responses import (
    Answer,
    ChatAssembly,
    ResponseAssembly,
    chat_answer,
    response_answer,
)

pytestmark = pytest.mark.framework("openai")


def nested(number: int, name: str = "look_up") -> dict[str, Any]:
    """A call as Chat Completions writes it."""
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }


class TestChatRequest:
    """Requests to Chat Completions."""

    def test_every_field_of_a_message(self) -> None:
        asked = {
            "role": "assistant",
            "content": "text",
            "name": "writer",
            "tool_calls": [nested(1), nested(2, "write")],
        }
        answered = {"role": "tool", "content": "result", "tool_call_id": "call_1"}
        assert chat_messages({"messages": [asked, answered]}) == [
            Message(
                "text",
                name="writer",
                tool_calls=(
                    ToolCall("look_up", "{}", "call_1"),
                    ToolCall("write", "{}", "call_2"),
                ),
            ),
            Message("result", "tool", tool_call_id="call_1"),
        ]

    def test_the_clients_own_objects_are_read_as_mappings_are(self) -> None:
        given = ChatCompletionMessage.model_validate(
            {"role": "assistant", "content": None, "tool_calls": [nested(1)]}
        )
        assert chat_messages({"messages": (given,)}) == [
            Message(text_of(None), tool_calls=(ToolCall("look_up", "{}", "call_1"),))
        ]

    @pytest.mark.parametrize(
        ("role", "read"),
        [("developer", "system"), ("function", "tool"), ("user", "user"), ("system", "system")],
    )
    def test_older_and_newer_names_of_roles(self, role: str, read: str) -> None:
        (message,) = chat_messages({"messages": [{"role": role, "content": ""}]})
        assert message.role == read

    def test_an_iterator_is_left_to_the_client(self) -> None:
        given = iter([{"role": "user", "content": "text"}])
        assert chat_messages({"messages": given}) == []
        assert next(given)["content"] == "text"
        assert chat_messages({}) == []

    def test_parts_are_joined_and_what_is_no_text_is_json(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "https://example.org/i.png"}}
        parts = [{"text": "one "}, {"refusal": "two "}, image]
        for given in (parts, tuple(parts)):
            text = text_of(given)
            assert text.startswith("one two ")
            assert json.loads(text.removeprefix("one two ")) == image
        assert json.loads(text_of({"a": 1})) == {"a": 1}

    def test_a_call_without_a_name_has_an_empty_one(self) -> None:
        assert tool_call({"id": "1"}) == ToolCall("", None, "1")
        assert tool_call({"name": "flat", "arguments": "{}", "id": "1"}, "2") == ToolCall(
            "flat", "{}", "2"
        )


class TestResponsesRequest:
    """Requests to Responses."""

    def test_instructions_come_first(self) -> None:
        request = {"instructions": "Be brief.", "input": "Hello"}
        assert responses_messages(request) == [
            Message("Be brief.", "system"),
            Message("Hello", "user"),
        ]
        assert responses_messages({"instructions": "", "input": None}) == []
        assert responses_messages({"instructions": 7, "input": []}) == []

    def test_every_kind_of_item(self) -> None:
        call = {
            "type": "function_call",
            "call_id": "c1",
            "id": "f1",
            "name": "look_up",
            "arguments": "{}",
        }
        output = {"type": "function_call_output", "call_id": "c1", "output": "found"}
        item = {"role": "developer", "content": [{"type": "input_text", "text": "text"}]}
        other = {"type": "item_reference", "id": "x"}
        read = responses_messages({"input": [call, output, item, other]})
        assert read[:3] == [
            Message("", tool_calls=(ToolCall("look_up", "{}", "c1"),)),
            Message("found", "tool", tool_call_id="c1"),
            Message("text", "system"),
        ]
        assert json.loads(read[3].content) == other
        assert read[3].role == "assistant"


def completion(**message: Any) -> ChatCompletion:
    return ChatCompletion.model_validate(
        {
            "id": "r1",
            "object": "chat.completion",
            "created": 1,
            "model": "small-1",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", **message},
                }
            ],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 3,
                "total_tokens": 13,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }
    )


class TestChatAnswer:
    """Whole answers of Chat Completions."""

    def test_all_of_it(self) -> None:
        found = chat_answer(completion(content="text", tool_calls=[nested(1)]))
        assert found.message == Message("text", tool_calls=(ToolCall("look_up", "{}", "call_1"),))
        assert found.about == {
            "model": "small-1",
            "response_id": "r1",
            "finish_reason": "stop",
            "input_tokens": 10,
            "output_tokens": 3,
            # Older clients know nothing of it.
            "cached_tokens": 4 if "prompt_tokens_details" in CompletionUsage.model_fields else None,
        }

    def test_a_refusal_is_the_text_where_there_is_no_other(self) -> None:
        assert chat_answer(completion(content="", refusal="No.")).message == Message("No.")
        assert chat_answer(completion(content="Yes.", refusal="No.")).message == Message("Yes.")

    def test_of_an_empty_one_there_is_no_text(self) -> None:
        assert chat_answer(completion(content="")).message == Message("")

    def test_older_clients_know_no_refusal(self) -> None:
        answer = completion(content="")
        del answer.choices[0].message.refusal
        assert chat_answer(answer).message == Message("")

    def test_one_without_a_choice_says_nothing(self) -> None:
        empty = completion(content="text")
        empty.choices = []
        empty.usage = None
        assert chat_answer(empty) == Answer(None, {"model": "small-1", "response_id": "r1"})


def chunk(*deltas: tuple[int, dict[str, Any], str | None], **more: Any) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(
        {
            "id": "r1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "small-1",
            "choices": [
                {"index": index, "delta": delta, "finish_reason": reason}
                for index, delta, reason in deltas
            ],
            **more,
        }
    )


class TestChatPieces:
    """Answers that come piece by piece."""

    def test_nothing_came(self) -> None:
        assert ChatAssembly().answer() == Answer()

    def test_texts_of_the_first_choice_are_joined(self) -> None:
        assembly = ChatAssembly()
        assembly.add(chunk((0, {"content": "one "}, None), (1, {"content": "other"}, "length")))
        assembly.add(chunk((1, {"content": "other"}, None), (0, {"refusal": "two"}, None)))
        assert assembly.answer().message == Message("one two")
        assert "finish_reason" not in assembly.answer().about
        assembly.add(chunk((0, {}, "stop")))
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        assembly.add(chunk(usage=usage))
        assert assembly.answer() == Answer(
            Message("one two"),
            {
                "model": "small-1",
                "response_id": "r1",
                "finish_reason": "stop",
                "input_tokens": 5,
                "output_tokens": 2,
                "cached_tokens": None,
                "extra": {"message": {"refusal": "two"}},
            },
        )

    def test_older_clients_know_neither_refusal_nor_usage(self) -> None:
        piece = chunk((0, {"content": ""}, None))
        del piece.choices[0].delta.refusal
        del piece.usage
        assembly = ChatAssembly()
        assembly.add(piece)
        assert assembly.answer() == Answer(Message(""), {"model": "small-1", "response_id": "r1"})

    def test_calls_are_put_together_by_their_numbers(self) -> None:
        def piece(index: int, **function: str) -> dict[str, Any]:
            identity = {"id": f"call_{index}"} if "name" in function else {}
            return {"tool_calls": [{"index": index, **identity, "function": function}]}

        assembly = ChatAssembly()
        for delta in (
            piece(1, name="second", arguments='{"a"'),
            piece(0, name="first", arguments=""),
            piece(1, arguments=": 1}"),
            {"tool_calls": [{"index": 2}]},
        ):
            assembly.add(chunk((0, delta, None)))
        assert assembly.answer().message == Message(
            "",
            tool_calls=(
                ToolCall("first", "", "call_0"),
                ToolCall("second", '{"a": 1}', "call_1"),
                ToolCall("", "", None),
            ),
        )


CALL = {
    "type": "function_call",
    "id": "f1",
    "call_id": "c1",
    "name": "look_up",
    "arguments": "{}",
}


class TestResponse:
    """Answers of Responses, whole or in pieces."""

    def response(self, *output: dict[str, Any], **more: Any) -> Any:
        types = pytest.importorskip("openai.types.responses", reason="this version has none")
        return types.Response.model_validate(
            {
                "id": "r1",
                "object": "response",
                "created_at": 1,
                "model": "small-1",
                "output": list(output),
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "usage": {
                    "input_tokens": 10,
                    "output_tokens": 3,
                    "total_tokens": 13,
                    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
                    "output_tokens_details": {"reasoning_tokens": 0},
                },
                **more,
            }
        )

    def item(self, text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }

    def test_all_of_it(self) -> None:
        reasoning = {"type": "reasoning", "id": "x", "summary": []}
        found = response_answer(self.response(reasoning, self.item("one "), self.item("two")))
        extra = found.about.pop("extra")
        assert [each["type"] for each in extra["output"]] == ["reasoning", "message", "message"]
        assert [each["content"][0]["chars"] for each in extra["output"][1:]] == [4, 3]
        assert found == Answer(
            Message("one two"),
            {
                "model": "small-1",
                "response_id": "r1",
                "finish_reason": "stop",
                "input_tokens": 10,
                "output_tokens": 3,
                "cached_tokens": 4,
            },
        )

    def test_older_clients_know_nothing_of_cached_tokens(self) -> None:
        answer = self.response(self.item("text"))
        del answer.usage.input_tokens_details
        assert response_answer(answer).about["cached_tokens"] is None

    @pytest.mark.parametrize(
        ("reason", "finish"),
        [("max_output_tokens", "length"), ("content_filter", "content_filter")],
    )
    def test_why_it_ended(self, reason: str, finish: str) -> None:
        cut = self.response(CALL, incomplete_details={"reason": reason})
        assert response_answer(cut).about["finish_reason"] == finish
        for more in ({}, {"status": "completed"}):
            asked = response_answer(self.response({**CALL, **more}))
            assert (asked.about["finish_reason"], "extra" in asked.about) == ("tool_calls", False)
            assert asked.message == Message("", tool_calls=(ToolCall("look_up", "{}", "c1"),))

    @pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
    def test_the_whole_counts_more_than_its_pieces(self, kind: str) -> None:
        types = pytest.importorskip("openai.types.responses", reason="this version has none")
        assembly = ResponseAssembly()
        assert assembly.answer() == Answer()
        for text in ("a ", "piece"):
            assembly.add(
                types.ResponseTextDeltaEvent.model_construct(
                    type="response.output_text.delta", delta=text
                )
            )
        assert assembly.answer() == Answer(Message("a piece"))
        whole = self.response(self.item("all of it"))
        name = f"Response{kind.title()}Event"
        event = getattr(types, name).model_construct(type=f"response.{kind}", response=whole)
        assembly.add(event)
        assert assembly.answer() == response_answer(whole)
