"""A program whose prompts differ from day to day: ``dated.py [WAY]``."""

from __future__ import annotations

import os
import random
import sys
import time
import uuid
from datetime import datetime, timezone

import openai
import time_machine

import mast_trace
from mast_trace.replay import normalize

if day := os.environ.get("DAY"):  # for the recording
    time_machine.travel(day, tick=True).start()
mast_trace.instrument()
WAYS = {
    "date": lambda: f"Today is {datetime.now(timezone.utc):%A, %d %B %Y}.",
    "session": lambda: f"This is session {uuid.uuid4().hex[:8]}.",
    "quoted": lambda: f"This is session {uuid.uuid4().hex[:8]}.",
    "late": lambda: (
        f"This took {time.monotonic() - begun + 9 * bool(day):.2f} s, and today's number of wings is {random.random()}."
    ),
    "masked": lambda: f"This is session {uuid.uuid4().hex[:8]}.",
    "drawn": lambda: f"Today's number is {random.random()}.",
    "seeded": lambda: f"Today's number is {random.random()}.",
    "set": lambda: f"Tags: {', '.join({'red', 'green', 'blue', 'grey', 'pink', 'brown'})}.",
    "else": lambda: f"Be {'kind' if os.environ.get('DAY') else 'rude'}.",
}
way = sys.argv[1]
if way == "masked":
    normalize(r"session \w{8}", "session")
if way == "seeded":
    mast_trace.seed()
with mast_trace.run("desk", input="Go."), mast_trace.agent("clerk") as clerk:
    started, ticking, begun = datetime.now(timezone.utc), time.time(), time.monotonic()
    for question in ("Begin.", WAYS[way], "Go on."):
        asked = [{"role": "user", "content": question if isinstance(question, str) else question()}]
        said = openai.OpenAI().chat.completions.create(model="m", messages=asked)
    assert time.time() > ticking
    assert datetime.now(timezone.utc) > started
    clerk.reply(said.choices[0].message.content)
