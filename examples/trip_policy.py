"""A model for `ag2_group_chat.py` that reads what it is shown: a corrected answer reaches the next agent.

The scenarios of that program give replies in turn, whatever was said before. Replays that correct one
answer need a model that goes on from the correction, as a real one does::

    python trip_policy.py  # prints its address, and serves until its standard input is closed
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from scripted_llm import Call, Reply, ScriptedLLM, messages_of, system_text

if TYPE_CHECKING:
    from collections.abc import Callable

TRAVELLERS, NIGHTS, BUDGET = 2, 3, 1200


def researcher(shown: str) -> Reply | str:
    """Look up both prices, and report them as the tools gave them."""
    flight = re.search(r": (\d+) EUR per person", shown)
    room = re.search(r": (\d+) EUR per night", shown)
    if flight is None:
        return Reply(calls=(Call("flight_price", {"origin": "Vienna", "destination": "Lisbon"}),))
    if room is None:
        return Reply(calls=(Call("hotel_price", {"city": "Lisbon"}),))
    return (
        f"The return flight Vienna-Lisbon costs {flight[1]} EUR for each of you. The hotel search says "
        f"that a double room in Lisbon costs {room[1]} EUR a night."
    )


def planner(shown: str) -> str:
    """Add up the prices that the researcher has reported."""
    flight = re.search(r"costs (\d+) EUR for each", shown)
    room = re.search(r"costs (\d+) EUR a night", shown)
    if flight is None or room is None:
        return "I need both prices before I can add them up."
    flights, hotel = TRAVELLERS * int(flight[1]), NIGHTS * int(room[1])
    return (
        f"Flights {TRAVELLERS} x {flight[1]} = {flights} EUR, hotel {NIGHTS} x {room[1]} = {hotel} EUR, "
        f"together {flights + hotel} EUR. That leaves {BUDGET - flights - hotel} EUR of the budget."
    )


def auditor(shown: str) -> Reply | str:
    """Finish with the planner's total, if it is within the budget."""
    total = re.search(r"together (\d+) EUR", shown)
    if total is None:
        return "There is no total that I could check."
    if "The trip costs" in shown:
        return f"Within the budget, and the planner's sum is right: {total[1]} EUR."
    return Reply(calls=(Call("finish", {"answer": f"The trip costs {total[1]} EUR."}),))


AGENTS: dict[str, Callable[[str], Reply | str]] = {
    "researcher": researcher,
    "planner": planner,
    "auditor": auditor,
}


def policy(request: dict[str, Any]) -> Reply | str:
    """Answer a request in the part of the agent whose system prompt it holds."""
    prompt = system_text(request)
    shown = "\n".join(f"{message}" for message in messages_of(request))
    for name, part in AGENTS.items():
        if f"You are the {name}." in prompt:
            return part(shown)
    return Reply(status=400, text=f"no agent of the trip is named in: {prompt[:200]}")


def main() -> None:
    """Serve until standard input is closed."""
    with ScriptedLLM(policy) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
