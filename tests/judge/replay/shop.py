"""A hand-made shop team whose model is at the environment's address: ``shop.py [WAY]``.

Three agents act in turn. The counter reads the stock, the planner computes the order, the buyer writes
it. The outcome is recorded; with the way ``no-outcome`` it is left to an oracle. Where the plan is wrong, ``waits`` waits
for ever and ``asks-again`` asks for another one, again and again. With ``drawn`` the first question is never the same.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import openai

import mast_trace

STOCK = {"kettle": 130, "pot": 40}
NEEDED = 340


@mast_trace.tool
def count(item: str) -> int:
    """Count the pieces of an item, and log the execution to a file."""
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as file:
        file.write(f"{item}\n")
    return STOCK[item]


def ask(who: str, said: str) -> str:
    """Ask the model in the name of an agent."""
    messages = [{"role": "system", "content": f"You are {who}."}, {"role": "user", "content": said}]
    client = openai.OpenAI(max_retries=1)
    answer = client.chat.completions.create(model="small", messages=messages)
    return answer.choices[0].message.content or ""


def main(way: str) -> None:
    """Order as many pieces as are missing."""
    with mast_trace.run("shop", input="How many must we order?"):
        with mast_trace.agent("chooser") as chooser:
            drawn = f" This is session {uuid.uuid4().hex[:8]}." if way == "drawn" else ""
            item = ask("chooser", f"Which item runs out?{drawn}")
            chooser.reply(item)
        with mast_trace.agent("counter") as counter:
            stock = count(item)
            report = ask("counter", f"The stock of {item} is {stock}. Report it.")
            counter.reply(report)
        with mast_trace.agent("planner") as planner:
            plan = ask("planner", f"We need {NEEDED}. {report} How many are missing?")
            planner.reply(plan)
            while way == "asks-again" and "210" not in plan:
                plan = ask("planner", f"{plan} That is not 210. {report} How many are missing?")
        if way == "waits" and "210" not in plan:
            time.sleep(600)
        if way == "embeds":
            openai.OpenAI().embeddings.create(model="vectors", input=plan, encoding_format="float")
        if way == "hangs":
            time.sleep(600)
        if way == "connects":
            url = urlsplit(os.environ["OPENAI_BASE_URL"])
            socket.create_connection((url.hostname, url.port)).close()
        if way == "no-buyer":
            mast_trace.record_outcome(success=True)
            return
        with mast_trace.agent("buyer") as buyer:
            order = ask("buyer", f"{plan} Write the order.")
            if way == "crashes":
                raise RuntimeError("The printer is on fire.")
            buyer.reply(order)
    if way != "no-outcome":
        mast_trace.record_outcome("210" in order, "compared with the true need")
    sys.stdout.write(json.dumps({"answer": order}) + "\n")


if __name__ == "__main__":
    mast_trace.instrument()
    main(sys.argv[1] if len(sys.argv) > 1 else "")
