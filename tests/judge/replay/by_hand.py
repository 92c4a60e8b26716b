"""A hand-made agent whose tool is a plain function: ``by_hand.py [WAY]``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import openai

import mast_trace

mast_trace.instrument()


def charge(card: str) -> str:
    """Charge a card, and log it to a file."""
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as file:
        file.write(f"{card}\n")
    return f"charged {card}"


def charge_in_block(card: str) -> str:
    """Charge a card in a block that records it."""
    with mast_trace.tool("charge", {"card": card}) as call:
        result = charge(card)
        call.result(result)
    return result


def main(way: str) -> None:
    """Let a model call the tool, until it answers."""
    tools = {"decorated": mast_trace.tool(charge), "block": charge_in_block}
    tool = tools.get(way, charge)
    messages: list[Any] = [{"role": "user", "content": "Charge card 7."}]
    if way == "earlier":  # a conversation with a call of an earlier run
        function = {"name": "charge", "arguments": json.dumps({"card": "6"})}
        call = {"id": "call_earlier", "type": "function", "function": function}
        messages.insert(0, {"role": "tool", "tool_call_id": "call_earlier", "content": "charged 6"})
        messages.insert(0, {"role": "assistant", "content": None, "tool_calls": [call]})
    client = openai.OpenAI()
    with mast_trace.run("desk", input="Charge card 7."), mast_trace.agent("clerk") as clerk:
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        while said.tool_calls:
            messages.append(said.model_dump(exclude_none=True))
            for each in said.tool_calls:
                if way == "unanswered":  # a structured output
                    break
                result = tool(**json.loads(each.function.arguments))
                messages.append({"role": "tool", "tool_call_id": each.id, "content": result})
            if way == "unanswered":
                messages[-1:] = [{"role": "assistant", "content": "It is done."}]
            said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        clerk.reply(said.content)
        mast_trace.record_outcome(False, "the card was charged")


main(sys.argv[1] if len(sys.argv) > 1 else "")
