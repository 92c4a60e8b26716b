"""A hand-made clerk that gets lessons: ``taught.py WAY``.

WAY is ``marked`` (`using_feedback`), ``bare`` (fetched before the run alone), ``inside`` (fetched in the run), ``dated``
(fetched for a task that holds the time and a new id) or ``twice`` (fetched for two agents, and once more).
"""

from __future__ import annotations

import os
import sys
import uuid
from datetime import datetime, timezone

import openai

import mast_trace


def ask(note: str) -> None:
    """Ask the model with lessons in the system prompt."""
    messages = [
        {"role": "system", "content": f"You are the clerk. {note}"},
        {"role": "user", "content": "What do they owe us?"},
    ]
    client = openai.OpenAI(
        max_retries=0, base_url=os.environ["OPENAI_BASE_URL"], api_key="scripted"
    )
    with mast_trace.agent("clerk") as clerk:
        answer = client.chat.completions.create(model="small", messages=messages)
        clerk.reply(answer.choices[0].message.content or "")


def main(way: str) -> None:
    """Answer one question."""
    if way == "marked":
        lessons = mast_trace.feedback(workflow="desk")
        with mast_trace.using_feedback(lessons), mast_trace.run("desk", input="owe"):
            ask(f"{lessons.text} {[each.advice for each in lessons.items]} {lessons.version}")
    elif way == "bare":
        lessons = mast_trace.feedback(workflow="desk")
        with mast_trace.run("desk", input="owe"):
            ask(lessons.text)
    elif way == "inside":
        with mast_trace.run("desk", input="owe"):
            ask(mast_trace.feedback(workflow="desk").text)
    elif way == "dated":
        task = f"Report {uuid.uuid4()} of {datetime.now(timezone.utc).isoformat()}"
        with mast_trace.run("desk", input="owe"):
            ask(mast_trace.feedback(task=task).text)
    else:
        with mast_trace.run("desk", input="owe"):
            for agent in ("clerk", "boss", "clerk"):
                ask(mast_trace.feedback(agent=agent).text)


if __name__ == "__main__":
    mast_trace.instrument()
    main(sys.argv[1])
