"""Coroutines that run at the same time."""

import asyncio

import pytest

from mast_trace_judge.llm.retry import together


async def test_results_come_in_order():
    async def after(seconds):
        await asyncio.sleep(seconds)
        return seconds

    assert await together(after(seconds) for seconds in (0.02, 0.0, 0.01)) == [0.02, 0.0, 0.01]
    assert await together([]) == []


async def test_nothing_is_left_behind_when_one_fails():
    ended = []

    async def waits():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("waits")

    async def fails():
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await asyncio.wait_for(together([waits(), fails(), waits()]), 10)
    assert ended == ["waits", "waits"]


async def test_cancelling_it_cancels_all():
    sleeping = (asyncio.sleep(60) for _ in range(3))
    task = asyncio.create_task(together(sleeping))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
