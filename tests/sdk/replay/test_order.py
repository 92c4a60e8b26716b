"""Answers of calls that overlapped are released in the recorded order, and none is held for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mast_trace.messages import Message
from mast_trace.replay import order
from mast_trace.replay.order import Order, ToolOrder
from mast_trace.replay.tape import Exchange, Execution

if TYPE_CHECKING:
    from collections.abc import Callable


def call(start: int, end: int) -> Exchange:
    """Return a call that lasted from ``start`` to ``end``."""
    return Exchange("a", (("user", "the same"),), Message(str(end)), start=start, end=end)


def in_threads(line: Order, asked: list[Exchange]) -> list[int]:
    """Return the ends of calls in the order of their release by threads that start as ``asked``."""
    done: list[int] = []

    def wait(each: Exchange) -> None:
        line.wait(each)
        done.append(each.end)

    threads = [threading.Thread(target=wait, args=(each,)) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def in_tasks(line: Order, asked: list[Exchange]) -> list[int]:
    """Return the ends of calls in the order of their release by tasks that ask all at once."""
    done: list[int] = []

    async def wait(each: Exchange) -> None:
        await line.wait_async(each)
        done.append(each.end)

    async def together() -> None:
        await asyncio.gather(*map(wait, asked))

    asyncio.run(together())
    return done


@pytest.mark.parametrize("way", [in_threads, in_tasks])
def test_overlapping_calls_keep_their_order(way: Callable[..., list[int]]) -> None:
    """The last to be asked is the first to be released, as it was when recorded."""
    calls = [call(1, 10), call(2, 20), call(3, 30), call(4, 40)]
    assert way(Order(calls), calls[::-1]) == [10, 20, 30, 40]


def test_many_calls_at_once_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their releases, one after the other, take longer than one waits: no wait is in vain while they go on."""
    monkeypatch.setattr(order, "LONGEST", 0.25)
    calls = [call(1, 10 + number) for number in range(150)]
    after = [call(1000, 1001 + number) for number in range(3)]
    line = Order([*calls, *after])
    began = time.monotonic()
    assert in_tasks(line, calls[::-1]) == [each.end for each in calls]
    assert time.monotonic() - began > 0.3
    assert in_tasks(line, after[::-1]) == [1001, 1002, 1003]


def test_a_call_that_is_missing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls that wait for it go on in their order, and those after them are ordered, too."""
    monkeypatch.setattr(order, "LONGEST", 0.2)
    calls = [call(1, 10 + number) for number in range(20)]
    after = [call(1000, 1001 + number) for number in range(3)]
    line = Order([*calls, *after])
    began = time.monotonic()
    assert in_tasks(line, calls[:0:-1]) == [each.end for each in calls[1:]]
    assert time.monotonic() - began >= 0.2
    assert line._in_vain == 1
    assert in_tasks(line, after[::-1]) == [1001, 1002, 1003]


def test_a_call_that_cannot_go_on_holds_nothing_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call in the loop's own thread holds up the task for which it waits; a cancelled task is gone."""
    monkeypatch.setattr(order, "LONGEST", 0.1)
    calls = [call(1, 10), call(2, 20), call(3, 30)]

    async def blocked() -> float:
        line = Order(calls)
        task = asyncio.create_task(line.wait_async(calls[1]))
        await asyncio.sleep(0.01)
        began = time.monotonic()
        line.wait(calls[2])
        took = time.monotonic() - began
        await task
        return took

    async def cancelled() -> float:
        line = Order(calls[1:])
        task = asyncio.create_task(line.wait_async(calls[1]))
        await asyncio.sleep(0)
        task.cancel()
        began = time.monotonic()
        await line.wait_async(calls[2])
        return time.monotonic() - began

    assert asyncio.run(blocked()) < 0.5
    assert asyncio.run(cancelled()) < 0.5


@pytest.mark.parametrize(("second", "stops"), [(call(10, 20), False), (call(2, 20), True)])
def test_calls_that_did_not_overlap_do_not_wait(second: Exchange, stops: bool) -> None:
    """A call that began after another one had ended, or after the order was given up, is released at once."""
    line = Order([call(1, 10), second])
    if stops:
        line.stop()
    began = time.monotonic()
    line.wait(second)
    assert time.monotonic() - began < 0.2


def test_a_program_that_works_in_another_order_waits_three_times_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program without parallel calls is not held for ever, whatever their number."""
    monkeypatch.setattr(order, "LONGEST", 0.05)
    calls = [call(1, 10 + number) for number in range(100)]
    line = Order(calls)
    began = time.monotonic()
    for each in calls[:0:-1]:
        line.wait(each)
    assert 0.1 < time.monotonic() - began < 1.0


def tool(start: int, end: int, parent: str = "agent") -> Execution:
    """Return a tool call that lasted from ``start`` to ``end``."""
    return Execution(
        "a", "look", "{}", str(end), span_id=str(end), start=start, end=end, parent=parent
    )


def test_a_tool_waits_for_those_beside_it_alone() -> None:
    """Tools inside of an answered one are not called, so that nothing waits for them."""
    inner, outer = tool(2, 10, "20"), tool(1, 20)
    line = ToolOrder([inner, outer])
    began = time.monotonic()
    line.wait(outer)
    assert time.monotonic() - began < 0.2
    calls = [tool(1, 10), tool(2, 20)]
    line = ToolOrder(calls)
    changed = replace(calls[0], result="another")
    thread = threading.Thread(target=lambda: (time.sleep(0.1), line.wait(changed)))
    thread.start()
    began = time.monotonic()
    line.wait(calls[1])
    assert 0.05 <= time.monotonic() - began < 1.0
    thread.join()


def test_nothing_waits_for_a_call_that_the_program_answers_itself() -> None:
    """A tool that runs for real is no more waited for, nor is one in the thread of an event loop."""
    calls = [tool(1, 10), tool(2, 20), tool(3, 30)]
    line = ToolOrder(calls)

    async def on_the_loop() -> None:
        line.wait(calls[1])

    began = time.monotonic()
    asyncio.run(on_the_loop())
    line.release(calls[0])
    line.wait(calls[2])
    assert time.monotonic() - began < 0.5


def test_ten_thousand_calls_are_ordered_quickly() -> None:
    """The order of a long run is found in linear time, with and without overlaps."""
    began = time.process_time()
    Order([call(10 * number, 10 * number + 9) for number in range(10_000)])
    Order([call(1, number + 2) for number in range(10_000)])
    assert time.process_time() - began < 2.0
