"""The facts of every instrumentation of a model client: each call is one span, if nobody above has made it."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from client_peers import ORDERS, another_provider, both, check_counted_once, instrumentor
from opentelemetry import context as otel_context
from recorded_calls import ANSWER, a_run, answers, check_apart

from contract.lifecycle import Lifecycle
from mast_trace import semconv
from mast_trace.spans import with_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from recorded_spans import RecordedSpans

    Call = Callable[..., Any]

AT_ONCE = 5
"""Calls at the same time: as many as the scripted servers let wait for a connection."""


class ClientContract(Lifecycle):
    """The facts of a client, on its ways to ask; its folder has the fixtures ``server`` and ``options``.

    Attributes:
        ways: the ways to ask.
        ask: takes the options of a client, a way and a text; returns the text of the answer.
        aask: the same with the asynchronous client.
        tokens: those of the input of a call that asks "Hello".
        peers: other tools' instrumentors, as modules and names.
        peer_ways: the ways that are tried beside them, unless all are.
        own_scopes: scopes of spans that the client itself makes.
    """

    ways: ClassVar[Sequence[str]]
    ask: ClassVar[Callable[..., str]]
    aask: ClassVar[Callable[..., Any]]
    tokens: ClassVar[int]
    peers: ClassVar[Sequence[tuple[str, str]]] = ()
    peer_ways: ClassVar[Sequence[str]] = ()
    own_scopes: ClassVar[Sequence[str]] = ()
    operations = (semconv.CHAT,)

    def parameters(self) -> dict[str, Any]:
        return {
            **super().parameters(),
            "way": list(self.ways),
            "peer": list(self.peers),
            "peer_way": list(self.peer_ways or self.ways),
            "order": ORDERS,
            "shared": [True, False],
            "theirs": [{"openinference.span.kind": "LLM"}, {"gen_ai.operation.name": "chat"}],
        }

    @pytest.fixture(autouse=True)
    def surroundings(self, options: Any, server: Any) -> None:
        """Gives the facts a client of the scripted server."""
        self.options, self.server = options, server

    @pytest.fixture
    def plain(self) -> Any:
        """Results of the calls without an instrumentation; they are made once."""
        if "made_once" not in vars(type(self)):
            made = self.work(lambda function, *args: asyncio.run(function(*args)), None)
            type(self).made_once = made
        return type(self).made_once

    def around(self, recorded: RecordedSpans | None) -> AbstractContextManager[None]:
        return a_run(recorded) if recorded else nullcontext()

    def work(self, call: Call, _recorded: RecordedSpans | None) -> Any:
        """Ask in all ways; return the answers and the requests."""
        before = len(self.server.requests) if self.server else 0
        told = [self.ask(self.options, way) for way in self.ways]
        told += [call(self.aask, self.options, way) for way in self.ways]
        return told, self.server.requests[before:] if self.server else []

    server: Any = None

    def more_arguments(self) -> list[str]:
        return [json.dumps(self.options)]

    def work_by_itself(self, recorded: RecordedSpans) -> None:
        self.options = json.loads(sys.argv[4])
        super().work_by_itself(recorded)

    # -- facts ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    def test_outside_of_runs_nothing_is_recorded(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """A program that has no agents is none of our business."""
        asking = self.aask if asynchronous else self.ask
        assert call(asking, self.options, way) == ANSWER
        assert recorded.all == []

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    def test_a_call_that_has_its_span_gets_no_second_one(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """A framework's instrumentation marks the context of the calls that it records."""
        asking = self.aask if asynchronous else self.ask
        with a_run(recorded):
            token = otel_context.attach(with_chat(otel_context.get_current()))
            assert call(asking, self.options, way) == ANSWER
            otel_context.detach(token)
        assert recorded.named(semconv.CHAT) == []

    def test_a_call_that_another_tool_records_gets_no_second_one(
        self, way: str, theirs: dict[str, str], recorded: Any
    ) -> None:
        """Another tool's span is the current one when its wrapper is around ours."""
        tracer = recorded.provider.get_tracer("another tool")
        with a_run(recorded), tracer.start_as_current_span("theirs", attributes=theirs):
            assert self.ask(self.options, way) == ANSWER
        ours = [s for s in recorded.named(semconv.CHAT) if semconv.FRAMEWORK in s.attributes]
        assert ours == []

    def test_calls_in_threads_stay_apart(self, recorded: Any) -> None:
        """Each call is one span, with its own question and answer."""
        with a_run(recorded), ThreadPoolExecutor(AT_ONCE) as pool:
            waiting = [
                pool.submit(
                    copy_context().run,
                    self.ask,
                    self.options,
                    self.ways[number % len(self.ways)],
                    f"Hello {number}",
                )
                for number in range(AT_ONCE)
            ]
            assert {each.result() for each in waiting} == {ANSWER}
        check_apart(recorded, AT_ONCE)

    def test_calls_in_tasks_stay_apart(self, call: Call, recorded: Any) -> None:
        async def ask_all() -> list[str]:
            return await asyncio.gather(
                *(
                    self.aask(self.options, self.ways[n % len(self.ways)], f"Hello {n}")
                    for n in range(AT_ONCE)
                )
            )

        with a_run(recorded):
            assert call(ask_all) == [ANSWER] * AT_ONCE
        check_apart(recorded, AT_ONCE)

    def test_each_call_counts_once_with_theirs(
        self, peer: tuple[str, str], order: str, shared: bool, peer_way: str, recorded: Any
    ) -> None:
        """One model call with its tokens, in our trace; theirs goes on as it would without us."""
        others = instrumentor(*peer)
        with another_provider() as (provider, exporter):
            used = (recorded.provider, recorded.exporter) if shared else (provider, exporter)
            with both(recorded, others, used[0], order), a_run(recorded):
                assert self.ask(self.options, peer_way) == ANSWER
            check_counted_once(recorded, self.tokens)
            own = [s for s in used[1].get_finished_spans() if "mast.framework" not in s.attributes]
            own = [s for s in own if s.instrumentation_scope.name not in self.own_scopes]
            assert len(own) == 1

    def test_a_call_in_no_run_is_theirs_alone(
        self, peer: tuple[str, str], order: str, recorded: Any
    ) -> None:
        with both(recorded, instrumentor(*peer), recorded.provider, order):
            self.ask(self.options, self.ways[0])
        assert [s.name for s in recorded.all if "mast.framework" in s.attributes] == []
        assert len(recorded.all) == 1

    def test_every_answer_is_recorded(self, call: Call, recorded: Any) -> None:
        """In every way, with the client's synchronous and asynchronous classes."""
        with a_run(recorded):
            self.work(call, recorded)
        assert answers(recorded) == [ANSWER] * (2 * len(self.ways))
        recorded.check_shape()
