"""A team fails, is diagnosed, gets the lesson and tries again: three rounds, as in AgenTracer (arXiv 2509.03312).

::

    mast-trace up                                      # receives, judges, and serves the lessons
    python three_rounds.py                             # scripted model: a team that listens
    python three_rounds.py deaf                        # it reads the lessons and changes nothing
    python three_rounds.py harmed                      # lessons confuse it
    python three_rounds.py listening --experiment e1   # none, placebo and feedback, each task in all arms
    OPENAI_API_KEY=... python three_rounds.py          # a real model (OPENAI_BASE_URL, OPENAI_MODEL)

Rounds show what a lesson does to the very tasks that it comes from. Whether lessons help with other tasks is the
question of the experiment: plan it after some rounds, and before its first run, by
`mast-trace experiment e1 --plan --design pairs --workflow price-desk`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openai import OpenAI
from opentelemetry import trace
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of, system_text

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scripted_llm import Request

    from mast_trace.experiment.marks import Feedback

mast_trace.instrument()

WORKFLOW = "price-desk"
PRICES = {f"item-{number}": 20 + 7 * number for number in range(200)}
MOST_CALLS = 5
SECONDS_TO_JUDGE = 60.0
LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up the price of an item.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}},
    },
}


@mast_trace.tool("look_up")
def look_up(item: str) -> str:
    """Look up the price of an item."""
    return f"{item} costs {PRICES[item]} EUR"


def turn(client: OpenAI, name: str, role: str, said: str, *, tools: bool = False) -> str:
    """Return the reply of an agent, which may call the tool up to `MOST_CALLS` times."""
    messages: list[Any] = [
        {"role": "system", "content": f"You are {name}. {role}"},
        {"role": "user", "content": said},
    ]
    with mast_trace.agent(name, input=said) as acting:
        for _ in range(MOST_CALLS):
            answer = (
                client.chat.completions.create(
                    model=os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
                    messages=messages,
                    **({"tools": [LOOK_UP]} if tools else {}),
                )
                .choices[0]
                .message
            )
            if not answer.tool_calls:
                acting.reply(answer.content or "")
                return answer.content or ""
            messages.append(answer.model_dump(exclude_none=True))
            for call in answer.tool_calls:
                result = look_up(json.loads(call.function.arguments)["item"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        acting.reply("I have no answer.")
        return "I have no answer."


def run_team(client: OpenAI, item: str, given: Feedback) -> tuple[str, bool]:
    """Run the team on one task with what it is told; return the run's trace id and whether it succeeded."""
    task = f"What does {item} cost?"
    notes = f"\n\n{given.text}" if given else ""
    with mast_trace.using_feedback(given), mast_trace.run(WORKFLOW, input=task):
        context = trace.get_current_span().get_span_context()
        found = turn(client, "clerk", f"Look up prices.{notes}", task, tools=True)
        mast_trace.message("clerk", "writer", found)
        answer = turn(client, "writer", f"Answer the customer.{notes}", found)
        success = re.search(rf"\b{PRICES[item]}\b", answer) is not None
        mast_trace.record_outcome(success, "" if success else "the answer does not hold the price")
    return f"{context.trace_id:032x}", success


def diagnosed(run: str, seconds: float) -> Feedback:
    """Return the lessons of a run as soon as it has been judged, or none after a time."""
    mast_trace.flush()
    until = time.monotonic() + seconds
    while True:
        found = mast_trace.feedback(run)
        # An answer that does not come in time is not the end: the machine may be busy.
        if found or found.reason.startswith("No run has") or time.monotonic() > until:
            return found
        time.sleep(0.5)


def rounds(client: OpenAI, items: list[str], seconds: float) -> list[list[bool]]:
    """Run each task in three rounds, each failed one again with its lesson; return the outcomes by round."""
    told = dict.fromkeys(items, mast_trace.feedback(last=0))
    outcomes = []
    for number in range(3):
        ended = {item: run_team(client, item, told[item]) for item in items}
        outcomes.append([success for _, success in ended.values()])
        print(f"round {number + 1}: {sum(outcomes[-1])} of {len(items)} tasks succeed")
        if number < 2:
            for item, (run, success) in ended.items():
                if not success:
                    told[item] = diagnosed(run, seconds)
                    print(f"  {item}: {told[item].text or told[item].reason}")
    return outcomes


def experiment(client: OpenAI, name: str, items: list[str]) -> None:
    """Run each task in all arms, each time with a fresh team."""
    for item in items:
        for _ in range(3):
            arm = mast_trace.assign(name, key=item, design="pairs")
            told = mast_trace.feedback(arm=arm, task=f"What does {item} cost?")
            _, success = run_team(client, item, told)
            print(f"{item} {arm}: {'success' if success else 'failure'}")
    mast_trace.flush()


def careless(request: Request) -> Reply | str:
    """Answer as a model that misreads the prices of two items of three."""
    told = [each for each in messages_of(request) if each.get("role") != "system"]
    item = re.search(r"item-(\d+)", " ".join(str(each.get("content")) for each in told))
    name = item[0] if item else "item-0"
    if "You are clerk" not in system_text(request):
        price = re.search(r"\d+ EUR", last_text(request))
        return f"It costs {price[0]}." if price else "We do not know the price."
    if not any(each.get("role") == "tool" for each in told):
        return Reply(calls=(Call("look_up", {"item": name}),))
    if int(name.removeprefix("item-")) % 3:
        return f"The lookup says {PRICES[name] + 91} EUR."
    return last_text(request)


def listening(request: Request) -> Reply | str:
    """Answer as one that follows the lesson, where it is told."""
    told = "copy figures from tool results" in system_text(request)
    if told and "costs" in last_text(request):
        return last_text(request)
    return careless(request)


def harmed(request: Request) -> Reply | str:
    """Answer as one that guesses as soon as it is told about failures."""
    if "failed runs" in system_text(request) and "You are clerk" in system_text(request):
        return "I would say that it costs 1 EUR."
    return careless(request)


POLICIES: dict[str, Callable[[Request], Reply | str]] = {
    "listening": listening,
    "deaf": careless,
    "harmed": harmed,
}


@contextmanager
def model_for(name: str) -> Iterator[OpenAI]:
    """Yield a client of the user's own model where one is set up, else of the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        yield OpenAI()
        return
    with ScriptedLLM(POLICIES[name]) as server:
        yield OpenAI(base_url=server.url, api_key="scripted")


def main() -> None:
    """Run the rounds or the experiment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("team", nargs="?", choices=sorted(POLICIES), default="listening")
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="number of the first item")
    parser.add_argument("--experiment", default="", help="its name")
    parser.add_argument("--wait", type=float, default=SECONDS_TO_JUDGE, help="seconds to judge")
    given = parser.parse_args()
    items = list(PRICES)[given.first : given.first + given.tasks]
    with model_for(given.team) as client:
        if given.experiment:
            experiment(client, given.experiment, items)
        else:
            rounds(client, items, given.wait)


if __name__ == "__main__":
    main()
