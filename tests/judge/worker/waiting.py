"""Waiting for what a worker does on its own."""

import asyncio


async def eventually(condition):
    """Wait until a condition holds."""
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came to hold")
