"""Extras of answers that LangChain reads are recorded on its own spans, and served again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from scripted_llm import Reply, ScriptedLLM

pytest.importorskip("langgraph", reason="needs LangGraph")

from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState
from langgraph_programs import linear

from mast_trace import semconv
from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("langgraph")

MESSAGE = {"role": "assistant", "content": None, "refusal": "I will not."}


def script(request: dict[str, Any]) -> Reply:
    """Refuse, in one piece or as a stream."""
    base = {"id": "c1", "created": 0, "model": "m"}
    if not request.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": MESSAGE}
        return Reply(body=json.dumps({**base, "object": "chat.completion", "choices": [choice]}))
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"refusal": "I will"}, {"refusal": " not."}, {}]
    chunks = [
        {
            **base,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": d, "finish_reason": None if d else "stop"}],
        }
        for d in deltas
    ]
    told = [*map(json.dumps, chunks), "[DONE]"]
    return Reply(body="".join(f"data: {each}\n\n" for each in told))


@pytest.fixture
def refusing() -> Iterator[ScriptedLLM]:
    """A model that refuses."""
    with ScriptedLLM(script) as serving:
        yield serving


@pytest.mark.parametrize("streaming", [False, True])
def test_a_refusal_is_given_again(refusing: ScriptedLLM, streaming: bool) -> None:
    """The graph's message has it in its additional fields, in the replay as in the recorded run."""
    model = ChatOpenAI(
        model="m", base_url=refusing.url, api_key="x", max_retries=0, streaming=streaming
    )

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    compiled = linear(MessagesState, clerk=answer)

    def program() -> Any:
        last = compiled.invoke({"messages": [("user", "Do it.")]})["messages"][-1]
        return last.content, last.additional_kwargs.get("refusal")

    with capture_spans(["langgraph", "openai"]) as captured:
        first = program()
    asked = len(refusing.requests)
    if not streaming:
        assert first[1] == "I will not."
    (chat,) = [span for span in captured.records if span.operation == semconv.CHAT]
    kept = json.loads(str(chat.attributes[semconv.RESPONSE_EXTRA]))
    assert kept == {"message": {"refusal": "I will not."}}
    with replayed(captured.trajectory(), frameworks=["langgraph", "openai"]) as replay:
        assert program() == first
    replay.assert_identical()
    assert len(refusing.requests) == asked


@pytest.mark.parametrize("told", ["model", "model_name"])
def test_a_model_is_named_by_its_parameters_where_nothing_else_names_it(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FakeListChatModel(responses=["So."])
    monkeypatch.setattr(FakeListChatModel, "_get_ls_params", lambda *_, **__: {})
    monkeypatch.setattr(FakeListChatModel, "_identifying_params", {told: "old-1"})
    compiled = linear(
        MessagesState, clerk=lambda state: {"messages": [model.invoke(state["messages"])]}
    )
    with capture_spans(["langgraph"]) as captured:
        compiled.invoke({"messages": [("user", "Do it.")]})
    (chat,) = [span for span in captured.records if span.operation == semconv.CHAT]
    assert chat.attributes[semconv.REQUEST_MODEL] == "old-1"
