"""A model's input can be rebuilt from the spans of the run, each text being written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from ag2 import Agent
from scripted_llm import Reply, ScriptedLLM

from mast_trace import semconv

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


async def test_a_text_is_written_once(spans: RecordedSpans) -> None:
    """One span holds a text (and the message that carries it), however often models are shown it."""
    await programs.serve(programs.conversation, programs.conversation_script)
    for words in ("Hello Bob.", "Good bye.", "You are alice."):
        holders = [span for span in spans.all if words in str(dict(span.attributes))]
        sent = [span for span in holders if span.name.startswith("send_message")]
        written = [span for span in holders if span not in sent]
        assert len(sent) + len(written) <= 2, words
        assert len(written) <= 1, words


async def test_an_agent_saw_the_messages_themselves(spans: RecordedSpans) -> None:
    """A view labels the messages of others; on the agent's turn each is the message, by its id."""
    await programs.serve(programs.discussion, programs.discussion_script)
    first, second, third = (m.attributes[semconv.MESSAGE_ID] for m in spans.named("send_message"))
    turns = {t.attributes[semconv.AGENT_NAME]: t for t in spans.named("invoke_agent")}
    assert turns["bob"].attributes[semconv.INPUT_MESSAGE_IDS] == (first,)
    assert turns["carol"].attributes[semconv.INPUT_MESSAGE_IDS] == (first, second)
    # AG2 does not show an agent its own earlier words (Alice opened the talk).
    assert turns["alice"].attributes[semconv.INPUT_MESSAGE_IDS] == (second, third)


async def test_a_hand_off_is_seen_as_what_was_said_with_it(spans: RecordedSpans) -> None:
    """AG2 adds a line on the hand-off before the words; the message is found below it."""
    await programs.serve(programs.workflow, programs.workflow_script)
    ids = {
        m.attributes[semconv.AGENT_NAME]: m.attributes[semconv.MESSAGE_ID]
        for m in spans.named("send_message")
    }
    coder = next(t for t in spans.named("invoke_agent") if t.name.endswith("coder"))
    seen = coder.attributes[semconv.INPUT_MESSAGE_IDS]
    assert (ids["customer"], ids["triage"]) == tuple(seen[:2])


async def test_usage_and_model_are_on_each_call(spans: RecordedSpans) -> None:
    """Tokens as the server counted them, streamed or not."""
    totals = []
    for streaming in (False, True):
        with ScriptedLLM(programs.tools_script) as server:
            await programs.tools(server.url, streaming=streaming)
        run = spans.trajectories()[-1]
        totals.append((run.input_tokens, run.output_tokens))
        for span in spans.named("chat"):
            assert span.attributes[semconv.RESPONSE_MODEL] == "scripted"
            assert span.attributes[semconv.PROVIDER_NAME] == "openai"
            assert (
                0 < span.attributes[semconv.OUTPUT_TOKENS] < span.attributes[semconv.INPUT_TOKENS]
            )
        assert spans.named("chat")[-1].attributes[semconv.FINISH_REASONS] == ("stop",)
        # The turn's input is the question, and not what later calls are shown besides.
        assert len(spans.named("invoke_agent")[-1].attributes[semconv.INPUT_MESSAGE_IDS]) == 1
        spans.exporter.clear()
    assert totals[0][1] == totals[1][1] > 0


async def test_a_model_without_a_name(spans: RecordedSpans) -> None:
    """A configuration of the program's own need not know a model's name; its calls are recorded."""
    from ag2.testing import TestConfig

    reply = await Agent("solver", config=TestConfig("It is 5.")).ask("What is 2 + 3?")
    assert reply.body == "It is 5."
    spans.check_shape()
    assert [span.name for span in spans.named("chat")] == ["chat unknown"]


async def test_a_turn_that_ends_with_its_client_has_not_failed(spans: RecordedSpans) -> None:
    with ScriptedLLM(lambda _request: Reply("late", delay=2.0)) as server:
        async with programs.two(server.url) as (_hub, (a, _b)):
            channel = await a.open(type="conversation", target="bob")
            await channel.send("Hello Bob.")
            await programs.until(lambda: server.requests)
    (turn,) = spans.named("invoke_agent")
    assert turn.status.is_ok or turn.status.is_unset
