"""Spans of model calls that clients below a framework share, whatever the client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace.content import ContentPolicy
from mast_trace.delivery.provider import make_provider
from mast_trace.spans import Telemetry, chat_is_open
from mast_trace_instrumentations.model_calls import ModelCall, note_parameters, noted_span
from mast_trace_instrumentations.model_calls.call import Answer, parameters_of, plain

if TYPE_CHECKING:
    from collections.abc import Iterator


class Recorded:
    """A telemetry and what it has recorded."""

    def __init__(self, content: ContentPolicy | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        provider = make_provider("service", SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(provider, content)

    def attributes(self) -> dict[str, Any]:
        return dict(self.exporter.get_finished_spans()[-1].attributes or {})


class Call(ModelCall):
    """A call whose answer is of no matter."""

    def read(self, result: Any) -> Answer:
        return Answer(None, {"extra": result})


class Pieces:
    """Assembles nothing."""

    def add(self, event: Any) -> None:
        del event

    def answer(self) -> Answer:
        return Answer()


def test_the_outermost_client_has_the_word_on_a_frameworks_call() -> None:
    """A client may call another one; the outer one has what was asked for, and reads its answer first."""
    recorded = Recorded()
    chat = recorded.telemetry.chat("m")
    with chat.attached():
        for temperature, thought in ((0.5, "outer"), (0.9, "inner")):
            note_parameters({"temperature": temperature})
            noted = noted_span(recorded.telemetry)
            assert noted is not None
            noted.response(None, extra={"thought": thought})
    chat.end()
    found = recorded.attributes()
    assert found["mast.request.parameters"] == ("temperature=0.5",)
    assert json.loads(found["mast.response.extra"]) == {"thought": "outer"}


@pytest.mark.parametrize(("capture", "is_noted"), [(True, True), (False, False)])
def test_nothing_is_noted_beside_an_answer_where_no_content_is(
    capture: bool, is_noted: bool
) -> None:
    recorded = Recorded(ContentPolicy(capture=capture))
    assert noted_span(recorded.telemetry) is None
    chat = recorded.telemetry.chat("m")
    with chat.attached():
        assert (noted_span(recorded.telemetry) is not None) == is_noted
        chat.end()
        assert noted_span(recorded.telemetry) is None


def test_each_piece_of_a_stream_is_made_inside_of_its_call() -> None:
    """A client that asks again while it streams makes no second call; the program's code is outside."""
    recorded = Recorded()
    call = Call(recorded.telemetry.chat("m"), Pieces())
    inside = []

    def stream() -> Iterator[int]:
        for number in range(3):
            inside.append(chat_is_open())
            yield number

    inside.extend(chat_is_open() for _ in call.pieces(stream()))
    assert inside == [True, False] * 3
    assert len(recorded.exporter.get_finished_spans()) == 1


def test_parameters_are_told_apart_without_their_texts() -> None:
    """Words of the interface stay, texts are hashed; in whatever order a set of tools is listed."""
    tools = [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
    found = parameters_of(
        {"temperature": 0, "stop": "secret", "tool_choice": "auto", "tools": tools}
    )
    assert [each.partition("=")[0] for each in found] == [
        "temperature",
        "stop",
        "tools",
        "tool_choice",
    ]
    assert "temperature=0" in found
    assert "tool_choice=auto" in found
    assert "secret" not in str(found)
    turned = [dict(reversed(each.items())) for each in reversed(tools)]
    assert parameters_of({"tools": turned}) == parameters_of({"tools": tools})
    assert parameters_of({"tools": tools[:1]}) != parameters_of({"tools": tools})


def test_what_contains_itself_is_read_to_a_depth() -> None:
    looped: dict[str, Any] = {}
    looped["again"] = looped
    assert len(json.dumps(plain(looped))) < 10_000


def test_the_context_of_a_call_is_not_left_behind() -> None:
    before = otel_context.get_current()
    call = Call(Recorded().telemetry.chat("m"), Pieces())
    with pytest.raises(ZeroDivisionError):
        list(call.pieces(1 // number for number in (1, 0)))
    assert otel_context.get_current() is before
