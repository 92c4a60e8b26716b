"""A hand-made team that calls the model of its environment variables: ``team.py [WAY]``.

Each way is a difference that a program may show when it is replayed.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import openai

import mast_trace

PRICES = {"kettle": 59.0}


@mast_trace.tool
def look_up(item: str) -> float:
    """Look up a price, and log the execution to a file."""
    with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as file:
        file.write(f"{item}\n")
    return PRICES[item]


def ask(question: str, *, stream: bool = False) -> str:
    """Ask the model a question and return its answer."""
    client = openai.OpenAI(max_retries=2)
    asked = [{"role": "user", "content": question}]
    if not stream:
        answer = client.chat.completions.create(model="m", messages=asked)
        return answer.choices[0].message.content or ""
    pieces = client.chat.completions.create(model="m", messages=asked, stream=True)
    return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)


def main(way: str) -> None:
    """Ask the model for an item, look up its price, and ask the model for a sentence about it."""
    with mast_trace.run("team", input="What does it cost?"):
        with mast_trace.agent("chooser") as chooser:
            item = ask("Which item?", stream=way == "streamed")
            chooser.reply(item)
        with mast_trace.agent("seller") as seller:
            price = look_up("pot" if way == "other-tool-arguments" else item)
            if way == "leaves-early":
                return
            if way == "connects":
                socket.create_connection(("127.0.0.1", 9))
            if way == "hangs":
                time.sleep(600)
            assert isinstance(price, float)
            question = f"Say that {item} costs {price:.2f} EUR."
            try:
                said = ask(question + (" Shout." if way == "other-question" else ""))
            except openai.OpenAIError:
                if way != "other-question":
                    raise
                said = "swallowed"
            seller.reply("So: " + said if way == "other-words" else said)
    sys.stdout.write(json.dumps({"answer": said}) + "\n")


if __name__ == "__main__":
    if "unrecorded" not in sys.argv:
        mast_trace.instrument()
    main(sys.argv[1] if len(sys.argv) > 1 else "")
