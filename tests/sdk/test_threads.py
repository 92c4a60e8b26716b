"""Hand-made agents in threads: `in_context` takes their run along, else the log warns."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import mast_trace
from mast_trace.spans import carried, guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mast_trace.testing import CapturedSpans

pytestmark = pytest.mark.mast_trace(frameworks=[])

NAMES = ["a", "b", "c"]
TEAM = ["invoke_workflow team", *(f"  invoke_agent {name}" for name in NAMES)]


@pytest.fixture(autouse=True)
def _forget(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.WARNING, "mast_trace")
    guard._misused.clear()
    yield
    guard._misused.clear()


def ask(name: str) -> str:
    with mast_trace.agent(name) as turn:
        turn.reply(f"I am {name}.")
    return name


def by_map(function: Callable[[str], str]) -> list[str]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(function, NAMES))


def by_submit(function: Callable[[str], str]) -> list[str]:
    with ThreadPoolExecutor(3) as pool:
        return [future.result() for future in [pool.submit(function, name) for name in NAMES]]


def by_thread(function: Callable[[str], str]) -> list[str]:
    for name in NAMES:
        thread = threading.Thread(target=function, args=(name,))
        thread.start()
        thread.join()
    return NAMES


def by_loop(function: Callable[[str], str]) -> list[str]:
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*[loop.run_in_executor(None, function, n) for n in NAMES])

    return asyncio.run(run())


WAYS = {"map": by_map, "submit": by_submit, "Thread": by_thread, "run_in_executor": by_loop}


@pytest.mark.parametrize("way", WAYS)
def test_agents_in_threads_are_in_the_run(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """Agents in threads are in the run, however the threads are started; results come back unchanged."""
    with mast_trace.run("team"):
        assert WAYS[way](mast_trace.in_context(ask)) == NAMES
    assert sorted(captured_spans.tree().splitlines()) == sorted(TEAM)
    assert caplog.records == []


@pytest.mark.parametrize("way", WAYS)
def test_without_it_runs_are_carried_unless_that_is_off(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """The warning is logged once."""
    with mast_trace.run("team"):
        WAYS[way](ask)
    assert sorted(captured_spans.tree().splitlines()) == sorted(TEAM)
    carried.carry_no_runs()
    with mast_trace.run("team"):
        WAYS[way](ask)
    assert len(captured_spans.trajectories()) == 1 + 4
    (record,) = caplog.records
    assert "mast_trace.in_context(function)" in record.message


@pytest.mark.parametrize("what", ["tool", "message"])
def test_tools_and_messages_are_told_of_as_well(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    def act() -> None:
        if what == "message":
            mast_trace.message("a", "b", "hi")
        else:
            with mast_trace.tool("look"):
                pass

    carried.carry_no_runs()
    with mast_trace.run("team"):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
    assert [record.message.split("(")[0] for record in caplog.records] == [f"mast_trace.{what}"]
    assert len(captured_spans.trajectories()) == 2


def test_a_server_with_a_run_for_each_request_is_told_nothing(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    """No warning is logged though runs of other threads are always open, and some agents have no run."""
    together = threading.Barrier(4)

    def request(name: str) -> None:
        together.wait(30)
        with mast_trace.run(name):
            together.wait(30)
            ask(name)
            together.wait(30)

    ask("before any run")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(request, "wxyz"))
    ask("after all of them")
    assert len(captured_spans.trajectories()) == 6
    assert caplog.records == []


async def test_tasks_and_to_thread_need_no_help(
    captured_spans: CapturedSpans, caplog: pytest.LogCaptureFixture
) -> None:
    """Python hands the context on to them."""
    async with mast_trace.run("team"):
        await asyncio.gather(*[asyncio.to_thread(ask, name) for name in NAMES])
    assert len(captured_spans.trajectories()) == 1
    assert caplog.records == []


class TestInContext:
    """The wrapper of `in_context` is of the same kind as its argument."""

    def test_a_function_keeps_its_name_errors_and_context(
        self, captured_spans: CapturedSpans
    ) -> None:
        """The context of the thread is as before after the call."""
        mine = LookupError("no such agent")

        def fail(*, fast: bool) -> None:
            """Fail."""
            ask("inside")
            raise mine if fast else ValueError

        with mast_trace.run("team"):
            wrapped = mast_trace.in_context(fail)
        assert (wrapped.__name__, wrapped.__doc__) == ("fail", "Fail.")
        with pytest.raises(LookupError) as raised:
            wrapped(fast=True)
        assert raised.value is mine
        ask("outside")
        assert captured_spans.tree().splitlines() == [
            "invoke_workflow team",
            "  invoke_agent inside",
            "invoke_agent outside",
        ]

    async def test_coroutines_and_streams(self, captured_spans: CapturedSpans) -> None:
        """Coroutines and streams may be consumed anywhere."""

        async def speak(name: str) -> str:
            await asyncio.sleep(0)
            return ask(name)

        def stream() -> Iterator[str]:
            yield ask("b")
            yield ask("c")

        async def later() -> AsyncIterator[str]:
            yield ask("d")

        with mast_trace.run("team"):
            functions: list[Any] = [mast_trace.in_context(f) for f in (speak, stream, later)]
        assert await functions[0]("a") == "a"
        assert list(functions[1]()) == ["b", "c"]
        assert [name async for name in functions[2]()] == ["d"]
        assert len(captured_spans.trajectories()) == 1

    def test_what_cannot_be_called_is_given_back(self) -> None:
        assert mast_trace.in_context(5) == 5  # type: ignore[type-var]
