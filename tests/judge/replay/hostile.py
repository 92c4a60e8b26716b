"""A program with one habit that makes a replay hard: ``hostile.py HABIT``."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import openai

import mast_trace

mast_trace.instrument()
HERE = Path(os.environ["PLACE"])
WORDS = {"red", "green", "blue", "grey", "pink", "brown"}


@dataclass
class Order:
    """A value that no text can stand for."""

    price: int


def acts(what: str) -> str:
    """Do what a replay may not do again."""
    with (HERE / "acts").open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")
    return f"done: {what}"


def ask(text: str, **more: Any) -> str:
    """Ask the model."""
    asked: Any = [{"role": "user", "content": text}]
    said: Any = openai.OpenAI().chat.completions.create(model="m", messages=asked, **more)
    if more.get("stream"):
        return "".join(each.choices[0].delta.content or "" for each in said if each.choices)
    return str(said.choices[0].message.content)


def agent(text: str) -> str:
    """Ask it as an agent."""
    with mast_trace.agent("helper", input=text) as turn:
        said = ask(text)
        turn.reply(said)
    return said


def visits() -> int:
    """Count the visits in a database of the program."""
    with sqlite3.connect(HERE / "visits.db") as store:
        store.execute("CREATE TABLE IF NOT EXISTS visits (n)")
        store.execute("INSERT INTO visits VALUES (1)")
        return int(store.execute("SELECT count(*) FROM visits").fetchone()[0])


def kept(text: str) -> str:
    """Ask the model unless the answer is in a file of the program."""
    file = HERE / "cache"
    if not file.exists():
        file.write_text(ask(text), encoding="utf-8")
    return file.read_text(encoding="utf-8")


def seen_before() -> str:
    """Say whether the program has run in this folder."""
    file = HERE / "seen"
    seen = file.exists()
    file.touch()
    return "again" if seen else "first"


def raising(what: str) -> str:
    """Fail as a tool."""
    acts(what)
    raise LookupError(what)


def handled() -> str:
    """Call a tool that fails."""
    try:
        return mast_trace.tool(raising)("find")
    except LookupError as error:
        return ask(f"It failed: {error}")


def in_block() -> str:
    """Act in a block."""
    with mast_trace.tool("send", {"to": "ann"}) as call:
        call.result(acts("send"))
    return "sent"


def called_by_hand() -> str:
    """Execute what the model asks for as a plain function."""
    messages: list[Any] = [{"role": "user", "content": "CALL"}]
    tools: Any = [{"type": "function", "function": {"name": "acts", "parameters": {}}}]
    client = openai.OpenAI()
    said = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0]
    messages.append(said.message.model_dump(exclude_none=True))
    messages += [
        {"role": "tool", "tool_call_id": each.id, "content": acts("plain")}
        for each in said.message.tool_calls or ()
    ]
    return str(client.chat.completions.create(model="m", messages=messages).choices[0])


def bare_thread() -> str:
    """Ask in a thread without a context."""
    thread = threading.Thread(target=agent, args=["In a thread."])
    thread.start()
    thread.join()
    return "asked"


def fetched() -> str:
    """Read another service without a tool."""
    address = os.environ["OPENAI_BASE_URL"].replace("/v1", "/elsewhere")
    with urllib.request.urlopen(address, timeout=5) as answer:
        return str(answer.status)


def pooled(count: int) -> str:
    """Ask in threads of a pool."""
    with ThreadPoolExecutor(count) as pool:
        asked = [
            pool.submit(mast_trace.in_context(agent), f"Part {each}.") for each in range(count)
        ]
        return " ".join(each.result() for each in asked)


def other_process() -> str:
    """Ask in another process."""
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(agent, "Elsewhere.").result()


async def together() -> str:
    """Ask in tasks."""
    asked = (asyncio.to_thread(agent, f"Task {each}.") for each in range(3))
    return " ".join(await asyncio.gather(*asked))


def hangs() -> str:
    """End late unless the run is being recorded."""
    while "RECORDING" not in os.environ:
        time.sleep(0.1)
    return "ended"


def tool(what: Any, *given: Any) -> str:
    """Call a function as a tool, and tell the model its result."""
    return ask(f"It is {mast_trace.tool(what)(*given)}.")


def a_pair(what: str) -> tuple[str, int]:
    """Return a tuple."""
    return acts(what), 2


def an_order(what: str) -> Order:
    """Return an object."""
    acts(what)
    return Order(120)


def a_table(what: str) -> dict[str, int]:
    """Return what JSON holds."""
    acts(what)
    return {"price": 120}


def by_shell(what: str) -> str:
    """Run a command."""
    acts(what)
    return subprocess.run(["echo", what], capture_output=True, text=True, check=True).stdout


def responses() -> str:
    """Ask by the newer interface."""
    return str(openai.OpenAI().responses.create(model="m", input="Go on.").output_text)


HABITS: dict[str, Any] = {
    "date": lambda: ask(f"Today is {datetime.now(timezone.utc):%A, %d %B %Y}."),
    "clock": lambda: ask(f"It is {datetime.now(timezone.utc):%d %B %Y, %H:%M:%S}."),
    "local time": lambda: ask(f"It is {time.strftime('%c')}."),
    "unix time": lambda: ask(f"now={time.time()}"),
    "uuid": lambda: ask(f"Session {uuid.uuid4()}."),
    "short id": lambda: ask(f"Session {uuid.uuid4().hex[:8]}."),
    "folder": lambda: ask(f"Work in {tempfile.mkdtemp()}."),
    "process": lambda: ask(f"You run in process {os.getpid()}."),
    "elapsed": lambda: ask(f"It took {ask('Begin.') and time.perf_counter():.4f} s."),
    "random": lambda: ask(f"Number {random.random()}."),
    "set": lambda: ask(f"Tags: {', '.join(WORDS)}."),
    "temperature": lambda: ask("Go on.", temperature=random.random()),
    "database": lambda: ask(f"Visit {visits()}."),
    "file": lambda: ask(f"You come here {seen_before()}."),
    "cache": lambda: kept("Go on."),
    "stream": lambda: ask("Go on.", stream=True),
    "responses": responses,
    "choices": lambda: ask("Go on.", n=2),
    "tool fails": handled,
    "tool": lambda: tool(acts, "look"),
    "tool: table": lambda: tool(a_table, "look"),
    "tool: tuple": lambda: tool(a_pair, "look"),
    "tool: object": lambda: tool(an_order, "look"),
    "tool: shell": lambda: tool(by_shell, "look"),
    "block": in_block,
    "by hand": called_by_hand,
    "other service": fetched,
    "pool": lambda: pooled(4),
    "tasks": lambda: asyncio.run(together()),
    "bare thread": bare_thread,
    "other process": other_process,
    "hangs": hangs,
    "exits": lambda: sys.exit(0),
    "warm-up": lambda: "warm",
    "two runs": lambda: "twice",
}

if __name__ == "__main__":
    habit = sys.argv[1]
    if habit == "warm-up":
        ask("Are you there?")
    for number in range(1 + (habit == "two runs")):
        with mast_trace.run(f"desk {number}", input="Go."):
            agent(f"Begin with {number}.")
            agent(f"They said {HABITS[habit]()}")
            mast_trace.record_outcome(False, "the price is wrong")
