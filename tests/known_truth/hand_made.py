"""Three agents by hand on the OpenAI client, in sequence: each calls its function, and is told what all have said."""

from __future__ import annotations

import json
from typing import Any

import openai

import mast_trace

TASK = "How many kettles must we order to last in 4 weeks?"


@mast_trace.tool
def count_stock(item: str) -> str:
    """Count the pieces of an item in the warehouse."""
    return f"{item}: 130 pieces in stock"


@mast_trace.tool
def weekly_sales(item: str) -> str:
    """Look up how many pieces of an item are sold in a week."""
    return f"{item}: 85 pieces a week"


TEAM = {"Storekeeper": count_stock, "Analyst": weekly_sales, "Buyer": None}


def turn(client: openai.OpenAI, name: str, said: list[str]) -> str:
    """Let an agent call its function until it answers."""
    messages: list[Any] = [{"role": "system", "content": f"You are {name}."}]
    messages += [{"role": "user", "content": text} for text in said]
    for _ in range(4):
        made = client.chat.completions.create(model="gpt-5-mini", messages=messages)
        answer = made.choices[0].message
        act = TEAM[name]
        if not answer.tool_calls or act is None:
            break
        messages.append(answer.model_dump(exclude_none=True))
        for call in answer.tool_calls:
            result = act(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return answer.content or ""


def main() -> None:
    """Run the team once, and record whether it orders what is missing."""
    client, said = openai.OpenAI(max_retries=0), [TASK]
    with mast_trace.run("stock", input=TASK):
        for name in TEAM:
            with mast_trace.agent(name) as agent:
                said.append(turn(client, name, said))
                agent.reply(said[-1])
        mast_trace.record_outcome(
            "order 210 kettles" in said[-1].lower(), "compared with the stock"
        )


if __name__ == "__main__":
    mast_trace.instrument()
    main()
