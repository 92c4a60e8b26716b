"""The expected steps of the teams under ``examples/foreign``, in each framework's own form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

TASK = "What does it cost to send order A-17?"
ANSWER = "Sending order A-17 to Lisbon costs 24.90 EUR."
GUESS = "Sending order A-17 to Lisbon costs about 30 EUR."
Told = tuple[str, str, str, Any, str, str, str | None]


def tool(
    agent: str, name: str, text: str, *, to: str = "", error: str | None = None, **arguments: Any
) -> Told:
    return ("tool", agent, name, arguments, text, to, error)


def says(agent: str, text: str) -> Told:
    return ("message", agent, "", None, text, "", None)


def calls(agent: str, name: str, *, to: str = "", **arguments: Any) -> Told:
    """A model's call of which no tool span tells."""
    return ("model", agent, "", [{"name": name, "arguments": arguments}], "", to, None)


QUESTION = "What does a parcel of 3 kg to Lisbon cost?"
HANDED_OVER = (
    "Agent shipper is now handling the request due to the following reason: the shipper knows the "
    "price.\nPlease continue with the current request."
)
FOUND = tool("desk", "find_order", "A-17: 3 kg, to Lisbon", order="A-17")
PRICE = tool("shipper", "postage", "24.90 EUR", city="Lisbon", kilograms=3)


def failed(text: str, error: str) -> Told:
    return tool("shipper", "postage", text, error=error, city="Lissabon", kilograms=3)


TASK_SENT = {"member_id": "shipper", "task": QUESTION}
MESSAGE_SENT = {"agent_name": "shipper", "message": QUESTION}
HANDED_OFF = f"Handing off to shipper: {QUESTION}"


STEPS: dict[str, list[Told]] = {
    "agno-posted": [
        FOUND,
        tool("desk", "delegate_task_to_member", ANSWER, **TASK_SENT),
        PRICE,
        says("shipper", ANSWER),
        says("desk", ANSWER),
    ],
    "agno-no-tariff": [
        FOUND,
        tool("desk", "delegate_task_to_member", GUESS, **TASK_SENT),
        failed("no tariff for 'Lissabon'", "no tariff for 'Lissabon'"),
        says("shipper", GUESS),
        says("desk", GUESS),
    ],
    # The only argument of a tool comes without its name.
    "langgraph-js-posted": [
        ("tool", "desk", "find_order", "A-17", "A-17: 3 kg, to Lisbon", "", None),
        ("tool", "desk", "ask_shipper", QUESTION, ANSWER, "", None),
        PRICE,
        says("shipper", ANSWER),
        says("desk", ANSWER),
    ],
    "langgraph-js-no-tariff": [
        ("tool", "desk", "find_order", "A-17", "A-17: 3 kg, to Lisbon", "", None),
        ("tool", "desk", "ask_shipper", QUESTION, GUESS, "", None),
        failed("", "no tariff for 'Lissabon'"),
        says("shipper", GUESS),
        says("desk", GUESS),
    ],
    "vercel-ai-posted": [
        FOUND,
        tool("desk", "ask_shipper", ANSWER, question=QUESTION),
        PRICE,
        says("shipper", ANSWER),
        says("desk", ANSWER),
    ],
    "vercel-ai-no-tariff": [
        FOUND,
        tool("desk", "ask_shipper", GUESS, question=QUESTION),
        failed("", "no tariff for 'Lissabon'"),
        says("shipper", GUESS),
        says("desk", GUESS),
    ],
    "dspy-posted": [
        FOUND,
        tool("desk", "ask_shipper", ANSWER, question=QUESTION),
        PRICE,
        tool("shipper", "submit", ANSWER, answer=ANSWER),
        tool("desk", "submit", ANSWER, answer=ANSWER),
    ],
    "dspy-no-tariff": [
        FOUND,
        tool("desk", "ask_shipper", GUESS, question=QUESTION),
        failed("", "ValueError: no tariff for 'Lissabon'"),
        tool("shipper", "submit", GUESS, answer=GUESS),
        tool("desk", "submit", GUESS, answer=GUESS),
    ],
    # The desk says something after it has handed over, and the swarm goes on.
    "strands-posted": [
        FOUND,
        tool("desk", "handoff_to_agent", HANDED_OFF, to="shipper", **MESSAGE_SENT),
        says("desk", ANSWER),
        PRICE,
        says("shipper", ANSWER),
    ],
    "strands-no-tariff": [
        FOUND,
        tool("desk", "handoff_to_agent", HANDED_OFF, to="shipper", **MESSAGE_SENT),
        says("desk", GUESS),
        failed("Error: no tariff for 'Lissabon'", "no tariff for 'Lissabon'"),
        says("shipper", GUESS),
    ],
    "agent-framework-posted": [
        FOUND,
        calls("desk", "handoff_to_shipper", to="shipper"),
        PRICE,
        says("shipper", ANSWER),
    ],
    "agent-framework-no-tariff": [
        FOUND,
        calls("desk", "handoff_to_shipper", to="shipper"),
        failed("", "ValueError(\"no tariff for 'Lissabon'\")"),
        says("shipper", GUESS),
    ],
    "google-adk-posted": [
        tool("desk", "find_order", '{"result": "A-17: 3 kg, to Lisbon"}', order="A-17"),
        tool("desk", "transfer_to_agent", '{"result": null}', to="shipper", agent_name="shipper"),
        tool("shipper", "postage", '{"result": "24.90 EUR"}', city="Lisbon", kilograms=3),
        says("shipper", ANSWER),
    ],
    "google-adk-no-tariff": [
        tool("desk", "find_order", '{"result": "A-17: 3 kg, to Lisbon"}', order="A-17"),
        tool("desk", "transfer_to_agent", '{"result": null}', to="shipper", agent_name="shipper"),
        failed('{"error": "no tariff for \'Lissabon\'"}', "TOOL_ERROR"),
        says("shipper", GUESS),
    ],
    "llama-index-posted": [
        FOUND,
        tool(
            *("desk", "handoff", HANDED_OVER),
            to="shipper",
            to_agent="shipper",
            reason="the shipper knows the price",
        ),
        PRICE,
        says("shipper", ANSWER),
    ],
    "llama-index-no-tariff": [
        FOUND,
        tool(
            *("desk", "handoff", HANDED_OVER),
            to="shipper",
            to_agent="shipper",
            reason="the shipper knows the price",
        ),
        failed("", "ValueError: no tariff for 'Lissabon'"),
        says("shipper", GUESS),
    ],
    "openai-agents-posted": [
        FOUND,
        tool("desk", "transfer_to_shipper", "shipper", to="shipper"),
        PRICE,
        says("shipper", ANSWER),
    ],
    "openai-agents-no-tariff": [
        FOUND,
        tool("desk", "transfer_to_shipper", "shipper", to="shipper"),
        failed(
            "An error occurred while running the tool. Please try again.",
            "Error running tool (non-fatal): {'tool_name': 'postage', 'error': 'Tool execution "
            "failed. Error details are redacted.'}",
        ),
        says("shipper", GUESS),
    ],
    "pydantic-ai-posted": [
        FOUND,
        tool("desk", "ask_shipper", ANSWER, question=QUESTION),
        PRICE,
        says("shipper", ANSWER),
        says("desk", ANSWER),
    ],
    "pydantic-ai-no-tariff": [
        FOUND,
        tool("desk", "ask_shipper", GUESS, question=QUESTION),
        failed("no tariff for 'Lissabon'", "error"),
        says("shipper", GUESS),
        says("desk", GUESS),
    ],
    "smolagents-posted": [
        FOUND,
        calls("desk", "shipper", task=QUESTION),
        PRICE,
        says("shipper", ANSWER),
        says("desk", ANSWER),
    ],
    "smolagents-no-tariff": [
        FOUND,
        calls("desk", "shipper", task=QUESTION),
        failed("", "ValueError: no tariff for 'Lissabon'"),
        says("shipper", GUESS),
        says("desk", GUESS),
    ],
}

# The agent of each model call, and the roles of its input by their first letters.
STEPS |= {f"mastra-{which}": STEPS[f"vercel-ai-{which}"] for which in ("posted", "no-tariff")}

CALLS: dict[str, list[tuple[str, str]]] = {
    # An agent that takes over is shown the conversation without the tools of others.
    "agent-framework": [("desk", "su"), ("desk", "suat"), ("shipper", "su"), ("shipper", "suat")],
    # Results are messages of a user, and so is the list of tools at the end.
    "dspy": [
        *[("desk", "su"), ("desk", "suauu")],
        *[("shipper", "su"), ("shipper", "suauu"), ("desk", "suauauu")],
    ],
    "strands": [
        *[("desk", "su"), ("desk", "suat"), ("desk", "suatat")],
        *[("shipper", "su"), ("shipper", "suat")],
    ],
    # The next agent gets the actions of others in words, as a user's messages.
    "google-adk": [
        *[("desk", "su"), ("desk", "suat")],
        *[("shipper", "suuuuu"), ("shipper", "suuuuuat")],
    ],
    "llama-index": [
        *[("desk", "su"), ("desk", "suat")],
        *[("shipper", "suatat"), ("shipper", "suatatat")],
    ],
    # The instructions are in the answer of OpenAI's server, and in no other's.
    "openai-agents": [
        *[("desk", "u"), ("desk", "uat")],
        *[("shipper", "uatat"), ("shipper", "uatatat")],
    ],
    **{
        name: [
            *[("desk", "su"), ("desk", "suat")],
            *[("shipper", "su"), ("shipper", "suat"), ("desk", "suatat")],
        ]
        for name in ("agno", "langgraph-js", "pydantic-ai", "smolagents", "vercel-ai", "mastra")
    },
}
TOKENS = {
    "agno": (1638, 58),
    "dspy": (3915, 59),
    "langgraph-js": (524, 53),
    "vercel-ai": (488, 53),
    "mastra": (488, 53),
    "strands": (892, 59),
    "agent-framework": (289, 27),
    "google-adk": (2201, 33),
    "llama-index": (633, 43),
    "openai-agents": (433, 27),
    "pydantic-ai": (484, 53),
    "smolagents": (6014, 58),
}


def _arguments(text: str) -> Any:
    """LangChain JS tells the only argument of a tool without its name."""
    return (json.loads(text) if text[0] in "{[" else text) if text else None


def told(run: Trajectory) -> list[Told]:
    """The steps of a run, in the same words."""
    return [
        (
            step.kind.value,
            step.agent.lower(),  # modules of DSPy are classes
            step.tool,
            _arguments(step.arguments),
            step.text,
            step.handoff_to,
            step.error,
        )
        for step in run.steps
    ]
