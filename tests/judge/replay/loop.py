"""A program that makes several runs: ``loop.py [WAY]``."""

from __future__ import annotations

import sys

import openai

import mast_trace

mast_trace.instrument()


def ask(question: str) -> str:
    """Ask the model a question and return its answer."""
    asked = [{"role": "user", "content": question}]
    answer = openai.OpenAI().chat.completions.create(model="m", messages=asked)
    return answer.choices[0].message.content or ""


if sys.argv[1:] == ["outside"]:
    ask("ping")
for task in ("first", "second", "third"):
    with mast_trace.run("task", input=task), mast_trace.agent("clerk") as clerk:
        clerk.reply(ask(f"Do the {task}."))
        mast_trace.record_outcome(True)
