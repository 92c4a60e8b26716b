"""Calls of the OpenAI client that are answered from a recorded run return the recorded values."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import openai
import openai_ways
import pytest
from installed import installed
from live_replays import going_live

import mast_trace
from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.replay.intervention import Intervention
from mast_trace.replay.recording import NotReplayable
from mast_trace.testing import capture_spans, replayed
from mast_trace_instrumentations.replay import http_clients

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripted_llm import ScriptedLLM

    from mast_trace.trajectory import Trajectory

pytestmark = pytest.mark.framework("openai")

TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
VECTORS: Any = {"model": "vectors", "input": "x", "encoding_format": "float"}


def whole(options: dict[str, Any], text: str) -> str:
    """Call without streaming."""
    return openai_ways.tell(options, "chat", text).text


@pytest.fixture
def recorded_run(options: dict[str, Any]) -> Trajectory:
    """The record of one call."""
    with capture_spans(["openai"]) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        whole(options, "Hello")
    return captured.trajectory()


def test_another_parameter_is_a_difference(options: dict[str, Any]) -> None:
    """A changed temperature, tool or model is named, though the messages are the recorded ones."""

    def program(**more: Any) -> None:
        client = openai.OpenAI(**options)
        with mast_trace.run("work"), mast_trace.agent("worker"):
            asked = {"model": "m", "tools": [TOOL], "temperature": 0.2, **more}
            client.chat.completions.create(messages=openai_ways.messages(), **asked)

    with capture_spans(["openai"]) as captured:
        program()
    run = captured.trajectory()
    for more, text in (
        ({}, ""),
        (
            {"temperature": 0.7},
            "worker asks the model with other parameters: temperature was 0.2, is 0.7.",
        ),
        ({"tools": [{**TOOL, "function": {"name": "other"}}]}, "tools has changed"),
        ({"seed": 1}, "seed was absent, is 1"),
        ({"model": "n"}, "model was m, is n"),
    ):
        with replayed(run, frameworks=["openai"]) as replay:
            program(**more)
        if not text:
            replay.assert_identical()
            continue
        assert text in replay.report.other_parameters
        with pytest.raises(AssertionError, match="other parameters"):
            replay.assert_identical()


@mast_trace.tool
def price(item: str):
    """Return a number, its text, nothing, or a tuple; the return type is not annotated."""
    executed.append(item)
    return {"kettle": 750.0, "pot": "750.0", "pan": None, "lid": (1, 2)}[item]


executed: list[str] = []


class TestTypes:
    """Results of hand-made tools come back as the values that they were."""

    def program(self, options: dict[str, Any], *items: str) -> list[Any]:
        executed.clear()
        with mast_trace.run("work"), mast_trace.agent("worker"):
            whole(options, "Hello")
            return [price(item) for item in items]

    def test_values_are_told_apart(self, options: dict[str, Any]) -> None:
        items = ("kettle", "pot", "pan")
        with capture_spans(["openai"]) as captured:
            self.program(options, *items)
        with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
            assert self.program(options, *items) == [750.0, "750.0", None]
        replay.assert_identical()
        assert executed == []

    def test_a_value_that_no_text_holds_is_said_before(self, options: dict[str, Any]) -> None:
        with capture_spans(["openai"]) as captured:
            self.program(options, "kettle", "lid")
        run = captured.trajectory()
        reason = (
            "price returned a value of tuple, which no text can stand for. --set live_tools=price"
        )
        with pytest.raises(NotReplayable, match=reason), replayed(run):
            pass
        with replayed(run, live_tools=["price"], frameworks=["openai"]) as replay:
            assert self.program(options, "kettle", "lid") == [750.0, (1, 2)]
        assert executed == ["lid"]
        replay.assert_identical()


class TestRedaction:
    """Runs whose texts were redacted are refused; a redaction that changed nothing leaves no trace."""

    def program(self, options: dict[str, Any]) -> None:
        with mast_trace.run("work", input="The key is 4242."), mast_trace.agent("worker"):
            whole(options, "Hello")
            price("kettle")

    @pytest.mark.parametrize(
        ("word", "reason"),
        [
            ("Hello", "the input of a model call of worker"),
            ("750", "the result of a call of price"),
            ("kettle", "the arguments of a call of price"),
        ],
    )
    def test_a_changed_text_is_said_before(
        self, options: dict[str, Any], word: str, reason: str
    ) -> None:
        with capture_spans(["openai"], redact=lambda text: text.replace(word, "*")) as captured:
            self.program(options)
        assert word not in str([record.attributes for record in captured.records])
        run = captured.trajectory()
        with (
            pytest.raises(NotReplayable, match=f"redaction has changed {reason}"),
            replayed(run),
        ):
            pass

    def test_texts_that_stay_are_replayed(self, options: dict[str, Any]) -> None:
        """The run's own input is redacted, which no model was shown."""
        with capture_spans(["openai"], redact=lambda text: text.replace("4242", "*")) as captured:
            self.program(options)
        run = captured.trajectory()
        assert run.redacted == ("gen_ai.input.messages",)
        with replayed(run, frameworks=["openai"]) as replay:
            self.program(options)
        assert replay.report.divergence is None
        assert replay.report.served_exchanges == 1


def test_other_requests_are_not_touched(options: dict[str, Any], recorded_run: Trajectory) -> None:
    """Requests to other paths reach the network; model APIs that are not recorded are refused by name."""
    client = openai.OpenAI(**options)
    with replayed(recorded_run, frameworks=["openai"]) as replay:
        assert client.models.list().data
        with pytest.raises(openai.BadRequestError, match="cannot be answered"):
            client.embeddings.create(model="m", input="x")
    assert replay.report.divergence is not None
    assert replay.report.divergence.kind == "unsupported"
    with pytest.raises(AssertionError, match="embeddings"):
        replay.assert_identical()


def test_embeddings_are_let_through_by_name(
    server: ScriptedLLM, options: dict[str, Any], recorded_run: Trajectory
) -> None:
    """Requests for embeddings reach their server as a live tool, and are counted."""
    sent = len(server.requests)
    with replayed(recorded_run, live_tools=["embeddings"], frameworks=["openai"]) as replay:
        openai.OpenAI(**options).embeddings.create(**VECTORS)
    assert len(server.requests) == sent + 1
    assert replay.report.divergence is None
    assert replay.report.live_executions == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_embeddings_after_a_change_are_live(
    server: ScriptedLLM,
    options: dict[str, Any],
    recorded_run: Trajectory,
    tmp_path: Path,
    is_async: bool,
) -> None:
    """Before the change no tape can answer them; after it they are sent and counted."""

    def work() -> None:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            whole(options, "Hello")
            if is_async:
                asyncio.run(openai.AsyncOpenAI(**options).embeddings.create(**VECTORS))
            else:
                openai.OpenAI(**options).embeddings.create(**VECTORS)

    sent = len(server.requests)
    fixed = Intervention("answer", 0, 1, Message("fixed"))
    with going_live(recorded_run, fixed, tmp_path, frameworks=["openai"]) as (player, live, _):
        work()
    assert [(call.model, call.status) for call in live.calls()] == [("vectors", 200)]
    assert len(server.requests) == sent + 1
    assert player.report().divergence is None
    (tmp_path / "live.jsonl").unlink()
    early = Intervention("keep", 1, 2)
    with (
        going_live(recorded_run, early, tmp_path, frameworks=["openai"]) as (player, live, _),
        pytest.raises(openai.BadRequestError, match="cannot be answered"),
    ):
        work()
    assert live.calls() == ()
    assert len(server.requests) == sent + 1


def test_afterwards_the_client_is_as_it_was(recorded_run: Trajectory) -> None:
    """The original functions of the HTTP clients are restored."""
    found = [import_module(name) for name in http_clients.LIBRARIES if installed(name)]
    clients = [kind for library in found for kind in (library.Client, library.AsyncClient)]
    before = [vars(kind)["send"] for kind in clients]
    assert before
    with replayed(recorded_run, frameworks=["openai"]):
        replaced = [vars(kind)["send"] for kind in clients]
        assert all(a is not b for a, b in zip(replaced, before, strict=True))
    assert [vars(kind)["send"] for kind in clients] == before


@pytest.mark.skipif(not openai_ways.HAS_RESPONSES, reason="this version has no Responses")
def test_a_stream_of_responses_is_complete(options: dict[str, Any]) -> None:
    """The client's own helper assembles a replayed stream from its pieces."""

    def whole(word: str) -> Any:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            return openai_ways.output(
                openai.OpenAI(**options).responses.create(model="m", input=word)
            )

    for word in openai_ways.OUTPUTS:
        with capture_spans(["openai"]) as captured:
            first = whole(word)
        with (
            replayed(captured.trajectory(), frameworks=["openai"]),
            mast_trace.run("work"),
            mast_trace.agent("worker"),
            openai.OpenAI(**options).responses.stream(model="m", input=word) as stream,
        ):
            kinds = [event.type for event in stream]
            found = stream.get_final_response()
        assert "".join(_texts(openai_ways.output(found))) == "".join(_texts(first))
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"


@pytest.mark.parametrize("capture", [True, False])
def test_extras_are_content(options: dict[str, Any], capture: bool) -> None:
    """They are redacted text by text, and absent where content is not captured."""

    def hidden(text: str) -> str:
        return text.replace("The list", "[hidden]")

    with (
        capture_spans(["openai"], capture_content=capture, redact=hidden) as captured,
        mast_trace.run("work"),
        mast_trace.agent("worker"),
    ):
        whole(options, "think")
    (kept,) = [
        span.attributes.get(semconv.RESPONSE_EXTRA)
        for span in captured.records
        if span.operation == semconv.CHAT
    ]
    expected = {"message": {"reasoning_content": "[hidden] says 79, so it is 79."}}
    assert (json.loads(kept) if capture else kept) == (expected if capture else None)


def _texts(output: list[dict[str, Any]]) -> Iterator[str]:
    for item in output:
        for part in item.get("content") or ():
            yield part.get("text") or part.get("refusal") or ""
