"""Three agents of AG2's classic API (`import autogen`) answer a customer about a refund.

::

    pip install "ag2[openai]==0.14.0" mast-trace
    python autogen_group_chat.py                     # scripted model: all goes well
    python autogen_group_chat.py wrong-policy        # scripted model: an agent misreads the policy
    OPENAI_API_KEY=... python autogen_group_chat.py  # a real model (OPENAI_BASE_URL, OPENAI_MODEL)
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group import AgentTarget, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from scripted_llm import Call, Reply, ScriptedLLM, by_speaker

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

mast_trace.instrument()

TASK = "I want my money back for order 4711. The kettle leaks."
PRICE, DAYS_SINCE_DELIVERY = 59, 21


def look_up_order(number: int) -> str:
    """Look up an order."""
    return f"Order {number}: kettle, {PRICE} EUR, delivered {DAYS_SINCE_DELIVERY} days ago"


def refund_policy(reason: str) -> str:
    """Look up the refund policy for a reason: defect or change-of-mind."""
    days = 730 if reason == "defect" else 14
    return f"{reason}: full refund within {days} days of delivery"


def team() -> DefaultPattern:
    """Return the agents, each of which hands over to the next when it is done."""
    model = {
        "config_list": [
            {
                "model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
                "base_url": os.environ.get("OPENAI_BASE_URL"),
                "api_key": os.environ["OPENAI_API_KEY"],
            }
        ],
        "cache_seed": None,
    }
    clerk = ConversableAgent(
        "clerk",
        system_message="You are the clerk. Look up the order and report its facts.",
        llm_config=model,
        functions=[look_up_order],
    )
    expert = ConversableAgent(
        "expert",
        system_message="You are the expert. Look up the policy and say what the customer gets.",
        llm_config=model,
        functions=[refund_policy],
    )
    writer = ConversableAgent(
        "writer",
        system_message="You are the writer. Write the answer to the customer, in one sentence.",
        llm_config=model,
    )
    clerk.handoffs.set_after_work(AgentTarget(expert))
    expert.handoffs.set_after_work(AgentTarget(writer))
    return DefaultPattern(
        initial_agent=clerk, agents=[clerk, expert, writer], group_after_work=TerminateTarget()
    )


SCRIPTS = {
    "refunded": {
        "clerk": (
            Reply(calls=(Call("look_up_order", {"number": 4711}),)),
            "The kettle of order 4711 cost 59 EUR and was delivered 21 days ago. It leaks.",
        ),
        "expert": (
            Reply(calls=(Call("refund_policy", {"reason": "defect"}),)),
            "A leak is a defect: the customer gets 59 EUR back.",
        ),
        "writer": ("We are sorry about the leak and return your 59 EUR.",),
    },
    "wrong-policy": {
        "clerk": (
            Reply(calls=(Call("look_up_order", {"number": 4711}),)),
            "The kettle of order 4711 cost 59 EUR and was delivered 21 days ago. It leaks.",
        ),
        "expert": (
            Reply(calls=(Call("refund_policy", {"reason": "change-of-mind"}),)),
            "The 14 days are over: the customer gets nothing back.",
        ),
        "writer": ("We are sorry, but the time for a refund is over.",),
    },
}


@contextmanager
def model_for(name: str) -> Iterator[None]:
    """Use the user's own model where one is set up, else the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        yield
        return
    with ScriptedLLM(by_speaker(SCRIPTS[name])) as server:
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        yield


def main() -> None:
    """Ask the team, and check whether the customer gets what the policy gives."""
    result, _variables, _last = initiate_group_chat(team(), TASK, max_rounds=12)
    answer = str(result.chat_history[-1]["content"])
    # Not in a longer number, such as 590.
    success = bool(re.search(rf"(?<![\d.,]){PRICE}(?:\.00)?(?![.,]?\d)", answer))
    mast_trace.record_outcome(success, "" if success else f"the policy gives {PRICE} EUR back")
    print(answer)


if __name__ == "__main__":
    with model_for(sys.argv[1] if len(sys.argv) > 1 else "refunded"):
        main()
