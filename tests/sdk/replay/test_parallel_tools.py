"""Tools that a program calls at the same time may end in another order in a replay."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

import openai
import pytest
from interventions import playing
from scripted_llm import Call, Reply, ScriptedLLM

import mast_trace
from mast_trace.replay.comparison import first_difference
from mast_trace.replay.player import Player
from mast_trace.replay.recording import tape_of
from mast_trace.testing import capture_spans
from mast_trace.trajectory import Step, StepKind, Trajectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Done = list[tuple[str, str]]

RESULTS = {"stock": "130 pieces", "price": "59 EUR"}
slow = "stock"


def model(request: dict) -> Reply | str:
    """Ask for both tools, then answer."""
    if "130 pieces" in json.dumps(request["messages"]):
        return "130 kettles at 59 EUR."
    return Reply(calls=(Call("stock", {"item": "kettle"}), Call("price", {"item": "kettle"})))


def result_of(name: str) -> str:
    """Return a tool's result, after a while if it is the slow one."""
    time.sleep(0.1 * (name == slow))
    return RESULTS[name]


async def later(name: str) -> str:
    """Return it likewise from a task."""
    await asyncio.sleep(0.1 * (name == slow))
    return RESULTS[name]


def in_threads(calls: list[Any]) -> Done:
    """Call the tools in threads."""
    functions = {
        name: mast_trace.tool(name)(lambda item, name=name: result_of(name)) for name in RESULTS
    }
    return _threaded(calls, lambda name, arguments: functions[name](**arguments))


def in_blocks(calls: list[Any]) -> Done:
    """Run the tools' code in blocks, which no record can answer."""

    def made(name: str, arguments: dict) -> str:
        with mast_trace.tool(name, arguments) as block:
            said = result_of(name)
            block.result(said)
        return said

    return _threaded(calls, made)


def _threaded(calls: list[Any], made: Callable[[str, dict], str]) -> Done:
    def answered(call: Any) -> tuple[str, str]:
        return call.id, made(call.function.name, json.loads(call.function.arguments))

    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(mast_trace.in_context(answered), call) for call in calls]
        return [each.result() for each in as_completed(waiting)]


def in_tasks(calls: list[Any]) -> Done:
    """Call the tools in tasks of asyncio."""

    async def stock(item: str) -> str:
        return await later("stock")

    async def price(item: str) -> str:
        return await later("price")

    functions = {each.__name__: mast_trace.tool(each) for each in (stock, price)}

    async def answered(call: Any) -> tuple[str, str]:
        return call.id, await functions[call.function.name](**json.loads(call.function.arguments))

    async def together() -> Done:
        tasks = [asyncio.ensure_future(answered(call)) for call in calls]
        return [await each for each in asyncio.as_completed(tasks)]

    return asyncio.run(together())


def clerk(ways: Callable[[list[Any]], Done], *, as_words: bool) -> None:
    """Ask the model for tools, and show it their results as they have come."""
    client = openai.OpenAI(max_retries=0)
    messages: list[Any] = [{"role": "user", "content": "How many kettles, at which price?"}]
    with mast_trace.run("shop"), mast_trace.agent("clerk") as agent:
        asked = client.chat.completions.create(model="m", messages=messages).choices[0].message
        done = ways(list(asked.tool_calls or []))
        if as_words:
            messages.append({"role": "user", "content": ", ".join(text for _, text in done)})
        else:
            messages.append(asked.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in done
            ]
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        agent.reply(said.content or "")


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLLM]:
    """The model's server, and the second tool as the slow one after the recording."""
    with ScriptedLLM(model) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        yield running


@pytest.mark.parametrize(
    ("way", "as_words"),
    [
        (in_threads, False),
        (in_threads, True),
        (in_tasks, False),
        (in_tasks, True),
        (in_blocks, False),
    ],
)
def test_the_replay_is_identical(way, as_words, server, monkeypatch) -> None:
    """Recorded, the second tool ends first; in the replay all are as fast, or the other one is."""
    with capture_spans() as captured:
        clerk(way, as_words=as_words)
    recorded = captured.trajectory()
    tape = tape_of(recorded, live_tools=RESULTS)
    in_order = [] if way is in_blocks else ["price", "stock"]
    assert [each.tool for each in tape.executions] == in_order
    asked = len(server.requests)
    monkeypatch.setattr(f"{__name__}.slow", "price")
    player = Player(tape)
    with playing(player) as again:
        clerk(way, as_words=as_words)
    report = player.report()
    assert report.divergence is None
    assert (report.served_exchanges, report.waiting_exchanges, report.waiting_executions) == (
        2,
        0,
        0,
    )
    executed = (0, 2) if way is in_blocks else (2, 0)
    assert (report.served_executions, report.live_executions) == executed
    assert first_difference(recorded, again.trajectory()) is None
    assert len(server.requests) == asked


def run_of(*steps: tuple[str, int, int]) -> Trajectory:
    """Return a run of messages, each with its text, start and end."""
    made = [
        Step(n, StepKind.MESSAGE, agent="a", text=text, parent_span_id="p", start=begin, end=end)
        for n, (text, begin, end) in enumerate(steps)
    ]
    return Trajectory("r", steps=tuple(made))


@pytest.mark.parametrize(
    ("recorded", "replayed", "is_same"),
    [
        ([("x", 0, 9), ("y", 1, 5)], [("y", 0, 1), ("x", 1, 2)], True),
        ([("x", 0, 9), ("y", 1, 5)], [("y", 0, 1), ("z", 1, 2)], False),
        ([("x", 0, 9), ("y", 1, 5)], [("y", 0, 1)], False),
        ([("x", 0, 1), ("y", 1, 5)], [("y", 0, 1), ("x", 1, 2)], False),
    ],
    ids=["in another order", "another text", "one too few", "one after the other"],
)
def test_only_steps_that_overlapped_may_come_in_another_order(
    recorded: list[tuple[str, int, int]], replayed: list[tuple[str, int, int]], is_same: bool
) -> None:
    difference = first_difference(run_of(*recorded), run_of(*replayed))
    assert (difference is None) is is_same
