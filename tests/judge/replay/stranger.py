"""The shop of ``shop.py``, written by a stranger: ``stranger.py [WAY]``.

It draws UUIDs and reads the clock in its prompts, asks its model in threads of its own, tries again where
an answer is unreadable, swallows exceptions, and has a tool that raises. Ways: ``hangs`` (it never ends
after its first answer), ``connects`` (it opens a socket of its own), ``forks`` (it starts a child process
that outlives it).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone

import openai

import mast_trace

STOCK, NEEDED = {"kettle": 130}, 340


@mast_trace.tool
def count(item: str) -> int:
    """Count the pieces of an item."""
    return STOCK[item]


@mast_trace.tool
def warehouse(item: str) -> str:
    """Raise an exception, always."""
    raise RuntimeError(f"the warehouse of {item} is closed")


def ask(who: str, said: str) -> str:
    """Ask the model up to three times, in a thread, until the answer can be read."""
    client = openai.OpenAI(max_retries=2)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    messages = [
        {"role": "system", "content": f"You are {who}. Session {uuid.uuid4()}, begun {now}."},
        {"role": "user", "content": said},
    ]
    answer = ""
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            asked = mast_trace.in_context(client.chat.completions.create)
            made = pool.submit(asked, model="small", messages=messages).result()
        answer = made.choices[0].message.content or ""
        if answer != "???":
            break
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": said + " Try again."},
        ]
    return answer


def main(way: str) -> None:
    """Order as many pieces as are missing."""
    order = ""
    with mast_trace.run("shop", input="How many must we order?"):
        with mast_trace.agent("chooser") as chooser:
            item = ask("chooser", "Which item runs out?")
            chooser.reply(item)
        if way == "connects":
            socket.create_connection(("127.0.0.1", 9))
        while way == "hangs" and "MAST_TRACE_REPLAY" in os.environ:
            time.sleep(1)
        if way == "forks":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with mast_trace.agent("counter") as counter:
            with suppress(Exception):
                warehouse(item)
            report = ask("counter", f"The stock of {item} is {count(item)}. Report it.")
            counter.reply(report)
        with mast_trace.agent("planner") as planner:
            plan = ask("planner", f"We need {NEEDED}. {report} How many are missing?")
            planner.reply(plan)
        with mast_trace.agent("buyer") as buyer:
            try:
                order = ask("buyer", f"{plan} Write the order.")
            except Exception as error:  # as programs do
                order = f"No order: {error}"
            buyer.reply(order)
    mast_trace.record_outcome("210" in order, "compared with the true need")


if __name__ == "__main__":
    mast_trace.instrument()
    main(sys.argv[1] if len(sys.argv) > 1 else "")
