"""A program with a recorded run: a buyer asks a tool for a price, and a model for the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from scripted_llm import ScriptedLLM

import mast_trace
from mast_trace.testing import capture_spans
from mast_trace_collector.storage.span_writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripted_llm import Reply

    from mast_trace_collector.storage import Store

SYSTEM = "You are the buyer of the team. Answer in one word."


def store_buying(store: Store, script: Callable[[dict[str, Any]], Reply | str]) -> None:
    """Runs the program on a model of this script, and stores its spans with the input of its calls."""
    with capture_spans(["openai"]) as spans, ScriptedLLM(script) as llm:
        _buy(OpenAI(base_url=llm.url, api_key="none"))
        request = encode_spans(spans.spans)
    SpanWriter(store).write([request.SerializeToString()], token="program")


def _buy(client: OpenAI) -> None:
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    tools: Any = [{"type": "function", "function": {"name": "price_of", "parameters": schema}}]

    @mast_trace.tool
    def price_of(item: str) -> str:
        return f"{item}: 12 EUR"

    @mast_trace.agent
    def buyer(task: str) -> str:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": task},
        ]
        first = client.chat.completions.create(model="m", messages=messages, tools=tools)
        said = first.choices[0].message
        (call,) = cast("Any", said.tool_calls)
        result = price_of(**json.loads(call.function.arguments))
        messages += [said, {"role": "tool", "tool_call_id": call.id, "content": result}]
        client.chat.completions.create(model="m", messages=messages, tools=tools)
        slowly = SYSTEM.replace("in one", "slowly in one")
        messages[0] = {"role": "system", "content": slowly}
        last = client.chat.completions.create(model="dear", messages=messages[:2])
        return last.choices[0].message.content or ""

    attributes = {"user.id": "ada"}
    with mast_trace.run("buying", conversation_id="talk-1", attributes=attributes):
        buyer("What is a bolt?")
