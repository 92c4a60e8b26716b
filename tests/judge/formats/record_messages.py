"""Records samples of messages: of model clients, frameworks, and published sets in words of ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from recording import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    REPORT,
    RESULT,
    SYSTEM,
    count_stock,
    write,
    write_lines,
)


def openai_chat() -> None:
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion_message_function_tool_call import (
        ChatCompletionMessageFunctionToolCall,
        Function,
    )

    call = ChatCompletionMessageFunctionToolCall(
        id="call_1",
        type="function",
        function=Function(name="count_stock", arguments=json.dumps(ARGUMENTS)),
    )
    asked = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    answered = ChatCompletionMessage(role="assistant", content=ANSWER)
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        asked.model_dump(mode="json"),
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
        answered.model_dump(mode="json"),
    ]
    write("chat.json", {"messages": messages})
    write("chat-list.json", messages)
    write_lines("chat-messages.jsonl", messages)
    other = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]
    write_lines("chat-finetune.jsonl", [{"messages": messages}, {"messages": other}])


def responses() -> None:
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    call = ResponseFunctionToolCall(
        type="function_call",
        call_id="call_1",
        id="fc_1",
        name="count_stock",
        arguments=json.dumps(ARGUMENTS),
        status="completed",
    )
    text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
    answered = ResponseOutputMessage(
        id="msg_1", type="message", role="assistant", status="completed", content=[text]
    )
    items = [
        {"role": "user", "content": QUESTION},
        call.model_dump(mode="json"),
        {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
        answered.model_dump(mode="json"),
    ]
    write("responses.json", items)


def anthropic() -> None:
    from anthropic.types import Message, TextBlock, ToolUseBlock, Usage

    def answer(*content: Any, why: str) -> Any:
        whole = Message(
            id="msg_1",
            type="message",
            role="assistant",
            model="claude-sonnet-4-5",
            content=list(content),
            stop_reason=why,
            usage=Usage(input_tokens=10, output_tokens=5),
        )
        return whole.model_dump(mode="json", include={"role", "content"})

    use = ToolUseBlock(type="tool_use", id="toolu_1", name="count_stock", input=ARGUMENTS)
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}
    messages = [
        {"role": "user", "content": QUESTION},
        answer(use, why="tool_use"),
        {"role": "user", "content": [result]},
        answer(TextBlock(type="text", text=ANSWER), why="end_turn"),
    ]
    write("anthropic.json", {"model": "claude-sonnet-4-5", "system": SYSTEM, "messages": messages})


def langchain() -> None:
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    calls = [{"name": "count_stock", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}]
    messages = [
        SystemMessage(SYSTEM),
        HumanMessage(QUESTION),
        AIMessage("", name="stock_keeper", tool_calls=calls),
        ToolMessage(RESULT, tool_call_id="call_1", name="count_stock"),
        AIMessage(ANSWER, name="stock_keeper"),
    ]
    write("langchain.json", {"messages": [each.model_dump(mode="json") for each in messages]})
    write("langchain-serialized.json", [dumpd(each) for each in messages])


def autogen() -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    usage = RequestUsage(prompt_tokens=10, completion_tokens=5)
    call = FunctionCall(id="call_1", name="count_stock", arguments=json.dumps(ARGUMENTS))
    asks = CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)
    info = {
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "family": "unknown",
        "structured_output": False,
    }
    keeper = AssistantAgent(
        "stock_keeper",
        ReplayChatCompletionClient([asks, ANSWER], model_info=info),
        tools=[count_stock],
        reflect_on_tool_use=True,
    )
    writer = AssistantAgent("writer", ReplayChatCompletionClient([REPORT], model_info=info))
    team = RoundRobinGroupChat(
        [keeper, writer], termination_condition=MaxMessageTermination(3, include_agent_event=False)
    )
    result = asyncio.run(team.run(task=QUESTION))
    write("autogen.json", result.model_dump(mode="json"))
    lines = [message.model_dump(mode="json") for message in result.messages]
    write_lines("autogen-messages.jsonl", lines)


def magentic() -> None:
    """Magentic-One's first release is on no index: its log handler's keys, with texts of ours."""
    entries = [
        ("UserProxy", QUESTION, "OrchestrationEvent"),
        ("Orchestrator (thought)", "Next speaker Counter", "OrchestrationEvent"),
        ("Orchestrator (-> Counter)", "Count the blue pens.", "OrchestrationEvent"),
        ("Counter", ANSWER, "AgentEvent"),
    ]
    lines: list[Any] = [
        {"timestamp": f"2026-11-24T10:00:0{n}.5", "source": s, "message": m, "type": t}
        for n, (s, m, t) in enumerate(entries)
    ]
    tokens = {"prompt_tokens": 10, "completion_tokens": 5, "type": "LLMCallEvent"}
    lines.insert(1, {"timestamp": "2026-11-24T10:00:00.7", **tokens})
    lines.append(
        {
            "timestamp": "2026-11-24T10:00:06.5",
            "source": "WebSurfer",
            "message": "I visited the page.",
            "url": "https://example.com",
            "action": "visit_page",
            "arguments": {"url": "https://example.com"},
            "type": "WebSurferEvent",
        }
    )
    write_lines("magentic.jsonl", lines)


def published() -> None:
    call = json.dumps({"name": "count_stock", "arguments": ARGUMENTS})
    words = {"system": SYSTEM, "human": QUESTION, "function_call": call, "observation": RESULT}
    turns = [{"from": who, "value": text} for who, text in {**words, "gpt": ANSWER}.items()]
    write("sharegpt.json", {"conversations": turns})
    answered = [{"name": "Planner", "content": QUESTION}, {"name": "Counter", "content": ANSWER}]
    write("transcript.json", answered)
