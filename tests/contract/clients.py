"""The facts of every instrumentation of a model client: each call is one span, if nobody above has made it."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest
from client_peers import ORDERS, another_provider, both, check_counted_once, instrumentor
from opentelemetry import context as otel_context
from received_inputs import check_inputs, tools_asked_for
from recorded_calls import (
    ANSWER,
    a_run,
    answers,
    asked_for,
    chat,
    check_apart,
    shown,
    use_tool,
)
from recorded_spans import recording
from scripted_llm import Call as ToolCall
from scripted_llm import messages_of
from scripted_protocols.server import ScriptedAnswer

from contract.lifecycle import Lifecycle
from mast_trace import semconv
from mast_trace.spans import with_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from recorded_spans import RecordedSpans

    Call = Callable[..., Any]

AT_ONCE = 5
"""Calls at the same time: as many as the scripted servers let wait for a connection."""
ROUNDS = 3
"""Answers of a conversation that ask for tools."""
both_clients = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Told(NamedTuple):
    """An answer as a program reads it.

    Attributes:
        text: its text.
        calls: its calls of tools: id, name and arguments.
        finish: the reason of its end.
        items: all of it, as a program appends it to its history.
    """

    text: str
    calls: Sequence[tuple[str, str, Any]] = ()
    finish: Any = None
    items: Sequence[Any] = ()


class ClientContract(Lifecycle):
    """The facts of a client, on its ways to ask; its folder has the fixtures ``server`` and ``options``.

    Attributes:
        ways: the ways to ask; one with "stream" in its name is read in pieces.
        tell: takes the options of a client, a way, a text, and the messages in its place; returns the answer.
        atell: the same with the asynchronous client.
        tokens: those of the input of a call that asks "Hello".
        about: further attributes of the span of such a call.
        arguments: those of the tool that the scripted model calls.
        errors: the exceptions of the client, by the text that the server fails for.
        reset_ways: the ways for which the server can cut the connection, and the texts before the cut.
        talk_ways: the ways in which conversations with tools are tried, unless all are.
        thinks: whether the scripted model thinks before it calls.
        has_ids: whether the calls of a tool have ids.
        peers: other tools' instrumentors, as modules and names.
        peer_ways: the ways that are tried beside them, unless all are.
        own_scopes: scopes of spans that the client itself makes.
        apart: others' modules that keep their span to themselves while the client works.
    """

    ways: ClassVar[Sequence[str]]
    tell: ClassVar[Callable[..., Told]]
    atell: ClassVar[Callable[..., Any]]
    tokens: ClassVar[int]
    about: ClassVar[Mapping[str, Any]]
    arguments: ClassVar[Mapping[str, Any]] = {"key": "x"}
    errors: ClassVar[Mapping[str, str]] = {
        "refuse": "BadRequestError",
        "break": "InternalServerError",
    }
    reset_ways: ClassVar[Sequence[str]] = ()
    before_reset: ClassVar[Sequence[str]] = (ANSWER[:32],)
    talk_ways: ClassVar[Sequence[str]] = ()
    thinks: ClassVar[bool] = False
    has_ids: ClassVar[bool] = True
    peers: ClassVar[Sequence[tuple[str, str]]] = ()
    peer_ways: ClassVar[Sequence[str]] = ()
    own_scopes: ClassVar[Sequence[str]] = ()
    apart: ClassVar[Sequence[str]] = ()
    needs: ClassVar[Mapping[str, str]] = {"test_a_connection_that_is_reset": "reset_ways"}
    operations = (semconv.CHAT,)

    # -- to be brought or replaced by a sub-class -----------------------------------------------------

    @abstractmethod
    def serving(self, script: Callable[[dict[str, Any]], Any]) -> AbstractContextManager[Any]:
        """Return the server of a model."""

    def options_of(self, url: str) -> dict[str, Any]:
        """Return the options of a client of the server at an address."""
        return {**self.options, "base_url": url}

    def expected(self, way: str) -> Mapping[str, Any]:
        """Return attributes of the span of a call that asks "Hello"; None for one that is absent."""
        del way
        return {semconv.INPUT_TOKENS: self.tokens, **self.about}

    def received(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request in the words of OpenAI's protocols."""
        return request

    def results(self, way: str, told: Sequence[tuple[str, str]]) -> Sequence[Any]:
        """Return the results of tools, by the ids of their calls, as they are sent."""
        del way
        return [{"role": "tool", "tool_call_id": name, "content": text} for name, text in told]

    # -- parts of facts -------------------------------------------------------------------------------

    def ask(self, options: dict[str, Any], way: str, text: str = "Hello") -> str:
        """Make a call; return the text of the answer as the program sees it."""
        return self.tell(options, way, text).text

    async def aask(self, options: dict[str, Any], way: str, text: str = "Hello") -> str:
        """Make the call asynchronously."""
        return str((await self.atell(options, way, text)).text)

    def asking(self, asynchronous: bool) -> Callable[..., Any]:
        return self.aask if asynchronous else self.ask

    def counting(self, request: dict[str, Any]) -> ScriptedAnswer:
        """Two calls a round, of equal arguments if they have ids, beside a few words; an answer in the end."""
        kinds = [
            each.get("role") or each.get("type") for each in messages_of(self.received(request))
        ]
        told = kinds.count("tool") + kinds.count("function_call_output")
        if told >= 2 * ROUNDS:
            return ScriptedAnswer("It is 42.")
        keys = ("x", "x") if self.has_ids else (f"a{told}", f"b{told}")
        return ScriptedAnswer(
            "Let me see." if told else "",
            calls=tuple(ToolCall("look_up", {"key": key}) for key in keys),
            thinking="Well." if self.thinks else "",
        )

    async def converse(
        self, options: dict[str, Any], way: str, use: Callable[..., str], asynchronous: bool
    ) -> None:
        """Execute the tools of each answer, and send everything back, until there are no more calls."""
        history: list[Any] = [{"role": "user", "content": "How much is it?"}]
        while True:
            told = self.tell(options, way, "", history) if not asynchronous else None
            told = told or await self.atell(options, way, "", history)
            if not told.calls:
                return
            found = [(each[0], use(each[1], each[2], each[0])) for each in told.calls]
            history = [*history, *told.items, *self.results(way, found)]

    def parameters(self) -> dict[str, Any]:
        return {
            **super().parameters(),
            "way": list(self.ways),
            "reset_way": list(self.reset_ways),
            "talk_way": list(self.talk_ways or self.ways),
            "error": list(self.errors),
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

    @both_clients
    def test_a_call_outside_of_runs_is_a_run_of_one_call(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """Its tokens count; its kind keeps it out of everything else."""
        assert call(self.asking(asynchronous), self.options, way) == ANSWER
        (span,) = recorded.all
        assert (span.parent, span.attributes[semconv.RUN_KIND]) == (None, semconv.CALL_KIND)
        assert answers(recorded) == [ANSWER]

    @both_clients
    def test_a_call_that_has_its_span_gets_no_second_one(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """A framework's instrumentation marks the context of the calls that it records."""
        with a_run(recorded):
            token = otel_context.attach(with_chat(otel_context.get_current()))
            assert call(self.asking(asynchronous), self.options, way) == ANSWER
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

    def test_a_call_in_no_run_counts_once_with_theirs(
        self, peer: tuple[str, str], order: str, recorded: Any
    ) -> None:
        with both(recorded, instrumentor(*peer), recorded.provider, order):
            self.ask(self.options, self.ways[0])
        if peer[0] in self.apart and order != "theirs first":
            # Nothing tells that both have seen the same call.
            assert len(recorded.traces()) == 2
            return
        run = recorded.trajectory()
        assert [each.kind for each in run.invocations].count("model") == 1
        assert run.input_tokens == self.tokens

    @both_clients
    def test_request_answer_and_usage_are_on_the_span(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        with a_run(recorded):
            assert call(self.asking(asynchronous), self.options, way) == ANSWER
        assert answers(recorded) == [ANSWER]
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]
        about, expected = chat(recorded), self.expected(way)
        assert {name: about.get(name) for name in expected} == expected
        if expected[semconv.INPUT_TOKENS]:
            assert about[semconv.OUTPUT_TOKENS] > 1
        recorded.check_shape()

    @both_clients
    def test_calls_of_tools_are_in_the_answer(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """The program executes them itself; in a stream their arguments come in pieces."""
        with a_run(recorded):
            told = call(self.asking(asynchronous), self.options, way, "Use a tool")
        assert told == "Let me see."
        assert answers(recorded) == ["Let me see."]
        assert asked_for(recorded) == [{"name": "look_up", "arguments": self.arguments}]

    @both_clients
    def test_errors_pass_through_and_are_on_the_span(
        self, way: str, error: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """The client's own exceptions."""
        with a_run(recorded), pytest.raises(Exception, match="scripted failure") as raised:
            call(self.asking(asynchronous), self.options, way, error)
        assert type(raised.value).__name__ == self.errors[error]
        assert chat(recorded)["error.type"] == self.errors[error]

    @both_clients
    def test_a_connection_that_is_reset(
        self, reset_way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """The part of a stream before an error is kept, beside the error."""
        with a_run(recorded), pytest.raises(Exception) as raised:
            call(self.asking(asynchronous), self.options, reset_way, "reset")
        assert chat(recorded)["error.type"] == type(raised.value).__qualname__
        assert answers(recorded)[0] in self.before_reset

    @both_clients
    def test_inputs_are_what_the_model_received(
        self, talk_way: str, capture: Any, asynchronous: bool, call: Call
    ) -> None:
        """In rounds of two calls of tools, which keep apart by their ids if they have any."""
        with (
            recording(self.instrumentor(), capture) as spans,
            self.serving(self.counting) as server,
            a_run(spans),
        ):
            use = partial(use_tool, spans)
            call(self.converse, self.options_of(server.url), talk_way, use, asynchronous)
        received = [self.received(request) for request in server.requests]
        assert tools_asked_for(received) == {"look_up"}
        # Old versions of Google's client stream a round again when they have executed it.
        assert len(received) == ROUNDS + 1 or not self.has_ids
        check_inputs(spans, received)
