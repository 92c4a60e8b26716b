"""Export requests for load tests: agent spans of 1 to 9 KB with real text, and small spans."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import cached_property
from pydoc_data.topics import topics

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MARKER = b"\xf4load\xf5"
_TEXT = " ".join(topics.values())
_AGENTS = ("planner", "researcher", "coder", "critic", "writer")


@dataclass(frozen=True)
class Shape:
    """A kind of load.

    Attributes:
        name: in the table.
        spans: in one request.
        templates: different requests; each is sent many times with other trace ids.
    """

    name: str
    spans: int
    templates: tuple[bytes, ...]

    @property
    def bytes_per_span(self) -> float:
        """Mean size in protobuf."""
        return sum(map(len, self.templates)) / len(self.templates) / self.spans

    def body(self, number: int) -> bytes:
        """The request of this number; no two are alike."""
        # Joined, not replaced: the sender shares its cores with what is measured.
        pieces = self._pieces[number % len(self.templates)]
        return number.to_bytes(len(MARKER), "big").join(pieces)

    @cached_property
    def _pieces(self) -> list[list[bytes]]:
        return [template.split(MARKER) for template in self.templates]


def agent_shape(spans: int = 512, templates: int = 12) -> Shape:
    """Runs of 20 to 60 spans (agents, chats, tools) with about 25 attributes each."""
    dice = random.Random(1)
    bodies = tuple(_request(dice, spans, _agent_attributes, (20, 60)) for _ in range(templates))
    return Shape("agent", spans, bodies)


def small_shape(spans: int = 512, templates: int = 12) -> Shape:
    """Spans of about 450 bytes with 9 attributes."""
    dice = random.Random(2)
    bodies = tuple(_request(dice, spans, _small_attributes, (5, 15)) for _ in range(templates))
    return Shape("small", spans, bodies)


def _text(dice: random.Random, mean: int) -> str:
    length = max(20, int(dice.lognormvariate(0, 0.7) * mean))
    start = dice.randrange(len(_TEXT) - 9000)
    return _TEXT[start : start + min(length, 5000)]


def _request(dice: random.Random, count: int, attributes, run_length) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for key, value in {
        "service.name": "agents",
        "telemetry.sdk.language": "python",
        "service.version": "1.2.3",
        "host.name": "worker-1",
    }.items():
        resource.resource.attributes.add(key=key).value.string_value = value
    scope = resource.scope_spans.add()
    scope.scope.name = "mast_trace"
    now = time.time_ns()
    left = 0
    for number in range(count):
        if not left:
            left = dice.randint(*run_length)
            trace = MARKER + dice.randbytes(16 - len(MARKER))
            root = b""
        left -= 1
        span = scope.spans.add(
            trace_id=trace,
            span_id=MARKER + (number + 1).to_bytes(8 - len(MARKER), "big"),
            parent_span_id=root,
            start_time_unix_nano=now + number * 1_000_000,
            end_time_unix_nano=now + number * 1_000_000 + dice.randrange(10**9),
            kind=1,
        )
        root = root or span.span_id
        span.name = attributes(dice, span)
    return request.SerializeToString()


def _agent_attributes(dice: random.Random, span) -> str:
    operation = dice.choice(("chat", "chat", "execute_tool", "invoke_agent", "send_message"))
    agent = dice.choice(_AGENTS)
    texts = {
        "gen_ai.input.messages": 1000,
        "gen_ai.output.messages": 700,
        "gen_ai.system_instructions": 400,
        "mast.message.content": 500,
    }
    if operation == "execute_tool":
        texts = {"gen_ai.tool.call.arguments": 150, "gen_ai.tool.call.result": 900}
    for key, mean in texts.items():
        span.attributes.add(key=key).value.string_value = _text(dice, mean)
    words = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.name": agent,
        "gen_ai.agent.id": f"agent-{agent}",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
        "gen_ai.response.id": dice.randbytes(12).hex(),
        "gen_ai.conversation.id": dice.randbytes(8).hex(),
        "mast.framework": "langgraph",
        "mast.framework.version": "1.2.0",
        "mast.message.id": dice.randbytes(16).hex(),
        "mast.message.content_hash": dice.randbytes(16).hex(),
        "mast.message.sender": agent,
        "mast.message.recipients": '["critic"]',
        "mast.message.performative": "inform",
        "server.address": "api.openai.com",
    }
    for key, value in words.items():
        span.attributes.add(key=key).value.string_value = value
    for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "mast.turn"):
        span.attributes.add(key=key).value.int_value = dice.randrange(4000)
    for key in ("gen_ai.request.temperature", "gen_ai.request.top_p"):
        span.attributes.add(key=key).value.double_value = dice.random()
    return f"{operation} {agent}"


def _small_attributes(dice: random.Random, span) -> str:
    for number in range(6):
        span.attributes.add(key=f"app.attribute.{number}").value.string_value = dice.choice(_AGENTS)
    span.attributes.add(key="http.route").value.string_value = "/api/v1/items/{id}"
    span.attributes.add(key="http.response.status_code").value.int_value = 200
    span.attributes.add(key="request.id").value.string_value = dice.randbytes(8).hex()
    return "GET /api/v1/items/{id}"
