"""The facts of every instrumentation of an agent framework."""

from __future__ import annotations

import asyncio
import json
import time
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from client_peers import ORDERS, another_provider, instrumentor
from doctor_process import diagnosed
from opentelemetry import context as otel_context
from opentelemetry import trace
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import record, recording
from scripted_llm import Reply, ScriptedLLM, messages_of

from contract.complaints import COMPLAINTS
from contract.lifecycle import Lifecycle
from contract.span_trees import tree_of, trees_of
from mast_trace import semconv
from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from recorded_spans import RecordedSpans

    Call = Callable[..., Any]
    Script = Callable[[dict[str, Any]], Reply | str]


@dataclass(frozen=True)
class Program:
    """A program of a framework.

    Attributes:
        run: takes the address of the model's server, and returns (or is awaited for) what is compared.
        script: the answers of its model.
        runs: the number of its traces.
    """

    run: Callable[[str], Any]
    script: Script
    runs: int = 1


def out_of_order(_request: dict[str, Any]) -> Reply:
    """A model that is out of order."""
    return Reply("no such model", status=400)


class FrameworkContract(Lifecycle):
    """The facts of a framework, on its programs.

    Attributes:
        main: the program of most facts: agents that speak to each other and call tools.
        tree: its spans, siblings by name.
        sent: its messages: sender, recipients, text.
        end: the reason of its end.
        ways: the same program run in other ways.
        counted: the ways in which tokens are counted, and "main".
        awaited: the same program as a coroutine, unless it is one.
        failing: a program whose model fails, unless it is the main one.
        others: further programs.
        received: programs whose models' inputs are compared with what was received.
        joined_by: what stands between the parts of one text.
        peers: other tools' instrumentors of the framework and its client, as modules and names.
        ends_of_failure: the operations whose spans a failed call of the model fails.
        leaves_files: whether the framework's import makes files in the home folder.
    """

    main: ClassVar[Program]
    tree: ClassVar[str]
    sent: ClassVar[Sequence[tuple[str, tuple[str, ...], str]]]
    end: ClassVar[str] = "completed"
    ways: ClassVar[Mapping[str, Callable[[str], Any]]] = {}
    counted: ClassVar[Sequence[str]] = ("main",)
    awaited: ClassVar[Callable[[str], Any] | None] = None
    failing: ClassVar[Program | None] = None
    others: ClassVar[Mapping[str, Program]] = {}
    received: ClassVar[Mapping[str, Program]] = {}
    joined_by: ClassVar[str] = ""
    in_order: ClassVar[bool] = True
    peers: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {}
    leaves_files: ClassVar[bool] = False
    calls_tools: ClassVar[bool] = True
    orders: ClassVar[Sequence[str]] = ORDERS
    ends_of_failure: ClassVar[Sequence[str]] = ("chat", "invoke_agent", "invoke_workflow")
    needs: ClassVar[Mapping[str, str]] = {
        "test_every_way_of_running_it_gives_the_same": "ways",
        "test_the_very_exception_comes_out": "raising",
        "test_a_run_reads_the_same_with_theirs": "peers",
    }
    operations = (semconv.SEND_MESSAGE, semconv.INVOKE_AGENT, semconv.CHAT, semconv.EXECUTE_TOOL)

    # -- to be brought or replaced by a sub-class -----------------------------------------------------

    def serving(self, script: Script) -> AbstractContextManager[Any]:
        """Return the server of the model."""
        return ScriptedLLM(script)

    def asked(self, requests: Sequence[dict[str, Any]]) -> Any:
        """Return what the models were sent, as it is compared."""
        return [messages_of(request) for request in requests]

    raising: ClassVar[Callable[[Any, Exception], Any] | None] = None
    """Runs a program in which the program's own code raises an error that the framework lets through."""

    def cancellable(self) -> Callable[[str], Any]:
        """Return the program that is cancelled while its model is asked."""
        return self.awaited_program()

    # -- parts of facts -------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        every = ["main", *self.others]
        return {
            **super().parameters(),
            "program": every,
            "way": list(self.ways),
            "counted_in": list(self.counted),
            "beside_client": ["main", *({"streamed"} & set(self.ways))],
            "inputs_of": ["main", *self.received],
            "peer": list(self.peers),
            "order": self.orders,
            "shared": [True, False],
            "complaint": list(COMPLAINTS),
        }

    def outcome(self, call: Call, program: Program) -> Any:
        """Return a program's result or exception, and what its models were sent."""
        with self.serving(program.script) as server:
            result, error = None, ""
            try:
                result = call(program.run, server.url)
            except Exception as raised:
                # The text holds the address of the server.
                error = type(raised).__name__
            return result, error, self.asked(server.requests)

    def work(self, call: Call, _recorded: RecordedSpans | None) -> Any:
        return self.outcome(call, self.main)

    def run_in(self, way: str) -> Callable[[str], Any]:
        return self.main.run if way == "main" else self.ways[way]

    def program_of(self, name: str) -> Program:
        return {"main": self.main, **self.others, **self.received}[name]

    # -- facts ----------------------------------------------------------------------------------------

    def test_each_message_call_and_turn_is_recorded_once(self, call: Call, recorded: Any) -> None:
        """Under the span in which it happened; the run has ended well, and the messages are in order."""
        _, error, asked = self.outcome(call, self.main)
        assert error == ""
        assert tree_of(recorded) == self.tree.strip()
        assert recorded.sent_messages() == list(self.sent)
        assert len(recorded.named(semconv.CHAT)) == len(asked)
        assert recorded.trajectory().termination_reason == self.end

    def test_every_way_of_running_it_gives_the_same(
        self, way: str, plain: Any, call: Call, recorded: Any
    ) -> None:
        result, _, asked = self.outcome(call, Program(self.ways[way], self.main.script))
        assert (result, len(asked)) == (plain[0], len(plain[2]))
        assert tree_of(recorded) == self.tree.strip()

    def test_a_program_does_the_same_with_and_without(self, program: str, call: Call) -> None:
        """Same results, same exceptions, and the models are sent the same."""
        tried = self.program_of(program)
        without = self.outcome(call, tried)
        with recording(self.instrumentor()) as spans:
            assert self.outcome(call, tried) == without
        spans.check_shape(runs=tried.runs)

    def test_the_very_exception_comes_out(self, call: Call, recorded: Any) -> None:
        """Identity, not only type; nothing is chained to it."""
        told = []
        for on in (False, True):
            if not on:
                recorded.instrumentor.uninstrument()
            error = RuntimeError("mine")
            with pytest.raises(RuntimeError) as caught:
                call(self.raising, error)
            told.append((caught.value is error, error.__cause__, type(error.__context__)))
            if not on:
                recorded.instrumentor.instrument(tracer_provider=recorded.provider)
        assert told[0] == told[1]
        recorded.check_shape()
        assert recorded.trajectory().termination_reason == "error"

    def test_agents_older_than_the_instrumentation_are_recorded(self, call: Call) -> None:
        """Agents keep what they were built with."""
        with self.serving(self.main.script) as server:
            run_it = self.built(server.url)
            with recording(self.instrumentor()) as spans:
                call(run_it)
        assert tree_of(spans) == self.tree.strip()

    def test_agents_that_outlive_the_instrumentation_are_not(self, plain: Any, call: Call) -> None:
        with self.serving(self.main.script) as server:
            with recording(self.instrumentor()) as spans:
                run_it = self.built(server.url)
            assert call(run_it) == plain[0]
        assert spans.all == []

    @abstractmethod
    def built(self, url: str) -> Callable[[], Any]:
        """Build the agents of the main program; return what runs them."""

    @pytest.mark.parametrize("at_once", ["threads", "loop"])
    def test_runs_at_the_same_time_stay_apart(
        self, at_once: str, call: Call, recorded: Any
    ) -> None:
        with self.serving(self.main.script) as server:
            if at_once == "loop":
                awaited = self.awaited_program()

                async def three() -> None:
                    await asyncio.gather(*(awaited(server.url) for _ in range(3)))

                call(three)
            else:
                self.in_threads(recorded, server.url)
        assert trees_of(recorded) == [self.tree.strip()] * 3

    def in_threads(self, _recorded: RecordedSpans, url: str) -> None:
        """Run the main program three times at once, each time in a thread of its own."""

        def one(_number: int) -> None:
            result = self.main.run(url)
            if asyncio.iscoroutine(result):
                asyncio.run(result)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(one, range(3)))

    def awaited_program(self) -> Callable[[str], Any]:
        """Return the main program as a function that makes a coroutine."""
        found = vars(type(self)).get("awaited")
        return found.__func__ if isinstance(found, staticmethod) else found or self.main.run

    def test_a_run_that_is_cancelled_is_closed(self, call: Call, recorded: Any) -> None:
        """Nothing stays open, and the run says that somebody stopped it."""
        awaited = self.cancellable()

        async def cancelled() -> None:
            task = asyncio.ensure_future(awaited(server.url))
            while not server.requests:  # noqa: ASYNC110  # the server is in a thread
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with self.serving(lambda _request: Reply("late", delay=0.5)) as server:
            call(cancelled)
        recorded.check_shape()
        assert recorded.trajectory().termination_reason == "cancelled"
        # A call that a framework makes in a thread goes on.
        while not recorded.named(semconv.CHAT):
            time.sleep(0.005)
        recorded.check_shape()
        assert recorded.counts()[semconv.CHAT] == 1

    def test_an_error_of_the_model_is_on_its_call_its_turn_and_the_run(
        self, call: Call, recorded: Any
    ) -> None:
        self.outcome(call, self.failing or Program(self.main.run, out_of_order))
        recorded.check_shape()
        failed = {
            str(s.attributes[semconv.OPERATION_NAME]) for s in recorded.all if not s.status.is_ok
        }
        assert failed == set(self.ends_of_failure)
        assert all(not span.status.is_ok for span in recorded.named(semconv.CHAT))
        assert recorded.trajectory().termination_reason == "error"

    def test_inputs_are_what_the_models_received(
        self, inputs_of: str, capture: Any, call: Call
    ) -> None:
        """With each text once and with all texts in full; a program without tool calls tests little."""
        program = self.program_of(inputs_of)
        with (
            recording(self.instrumentor(), capture) as spans,
            self.serving(program.script) as server,
        ):
            call(program.run, server.url)
        check_inputs(spans, server.requests, joined_by=self.joined_by, in_order=self.in_order)
        if inputs_of == "main":
            assert bool(tools_asked_for(server.requests)) is self.calls_tools

    def test_without_content_no_text_leaves(self, program: str, call: Call) -> None:
        """The model's inputs are there by their ids; their words, and what tools gave, are not."""
        tried = self.program_of(program)
        with (
            recording(self.instrumentor(), capture=False) as spans,
            self.serving(tried.script) as server,
        ):
            with suppress(Exception):
                call(tried.run, server.url)
            assert spans.all
        everything = json.dumps([record(span).attributes for span in spans.all], default=str)
        texts = {text for request in server.requests for text in _texts(request) if len(text) > 9}
        told = {text for text in texts if json.dumps(text)[1:-1] in everything}
        assert told == set()
        for span in spans.named(semconv.CHAT):
            assert span.attributes[semconv.INPUT_MESSAGE_IDS]

    def test_each_calls_tokens_are_counted_once(
        self, counted_in: str, call: Call, recorded: Any
    ) -> None:
        """On the span of the call, and on no other."""
        with self.serving(self.main.script) as server:
            call(self.run_in(counted_in), server.url)
        counted = [
            s.attributes[semconv.INPUT_TOKENS]
            for s in recorded.all
            if semconv.INPUT_TOKENS in s.attributes
        ]
        assert sorted(counted) == sorted(
            sum(len(json.dumps(message)) for message in messages_of(request)) // 4 + 1
            for request in server.requests
        )
        assert all(span.attributes[semconv.OUTPUT_TOKENS] for span in recorded.named(semconv.CHAT))
        both = (semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS)
        told = {
            tuple(span.attributes[name] for name in both) for span in recorded.named(semconv.CHAT)
        }
        assert any(read != written for read, written in told)  # they are not swapped or doubled

    def test_with_the_client_recorded_too_nothing_is_doubled(
        self, beside_client: str, call: Call, recorded: Any
    ) -> None:
        client = OpenAIInstrumentor()
        client.instrument(tracer_provider=recorded.provider)
        try:
            self.outcome(call, Program(self.run_in(beside_client), self.main.script))
        finally:
            client.uninstrument()
        assert tree_of(recorded) == self.tree.strip()
        frameworks = {span.attributes[semconv.FRAMEWORK] for span in recorded.all}
        assert frameworks == {self.instrumentor.framework}

    def test_where_other_tools_lose_spans_ours_are_there(
        self, complaint: Any, plain: Any, call: Call, recorded: Any, caplog: Any
    ) -> None:
        """The program's results are what they are without, and nobody complains in the log."""
        with self.serving(self.main.script) as server:
            results = call(complaint, self.awaited_program(), server.url, recorded)
        assert results == [plain[0]] * len(results)
        assert trees_of(recorded) == [self.tree.strip()] * len(results)
        assert [
            r for r in caplog.records if r.name.startswith(("mast_trace", "opentelemetry"))
        ] == []

    def test_inside_of_a_span_of_the_programs_own(self, call: Call, recorded: Any) -> None:
        """The run is a child of the current span, and leaves that current."""
        tracer = recorded.provider.get_tracer("mine")
        before = otel_context.get_current()
        with (
            self.serving(self.main.script) as server,
            tracer.start_as_current_span("outer") as outer,
        ):
            call(self.main.run, server.url)
            assert trace.get_current_span() is outer
        assert otel_context.get_current() == before
        inside = "\n".join(f"  {line}" for line in self.tree.strip().splitlines())
        assert tree_of(recorded) == f"outer\n{inside}"

    def test_a_run_reads_the_same_with_theirs(
        self, peer: str, shared: bool, order: str, call: Call, recorded: Any
    ) -> None:
        """The same steps, turns and tokens as without them; their own spans are there, too."""
        self.check_with_theirs(peer, shared, order, call, recorded)

    def check_with_theirs(
        self, peer: str, shared: bool, order: str, call: Call, recorded: Any
    ) -> None:
        theirs = [instrumentor(*each) for each in self.peers[peer]]
        self.outcome(call, self.main)
        alone = recorded.seen()
        recorded.exporter.clear()
        ours = [recorded.instrumentor, OpenAIInstrumentor()]
        with another_provider() as elsewhere:
            provider, exporter = (recorded.provider, recorded.exporter) if shared else elsewhere
            mine = [(one, recorded.provider) for one in ours]
            others = [(one, provider) for one in theirs]
            recorded.instrumentor.uninstrument()
            both = mine + others if order == "ours first" else others + mine
            for one, where in both:
                one.instrument(tracer_provider=where)
            try:
                self.outcome(call, self.main)
            finally:
                # The last one is removed first: theirs remove the outermost wrapper.
                for one, _ in reversed(both):
                    one.uninstrument()
            assert recorded.seen() == alone
            assert [
                s for s in exporter.get_finished_spans() if "mast.framework" not in s.attributes
            ]
            if not shared:
                known = {span.context.span_id for span in recorded.all}
                outside = [
                    s.name for s in recorded.all if s.parent and s.parent.span_id not in known
                ]
                # Only the run itself may have begun inside of a span of theirs.
                assert outside in ([], [self.tree.strip().split("\n")[0]])

    def test_the_doctor_finds_every_target(self, tmp_path: Path) -> None:
        """Nothing is missing, nothing is left unlooked at, and our check leaves no file behind."""
        report = diagnosed(self.instrumentor.framework, tmp_path)
        assert report["absent"] == list(self.absent)
        assert report["reason"] == "" or self.absent
        assert self.leaves_files or list(tmp_path.iterdir()) == []


def _texts(request: dict[str, Any]) -> Iterator[str]:
    """The texts of a request's messages, without those of calls."""
    for message in messages_of(request):
        content = message.get("content")
        if isinstance(content, str):
            yield content
        for part in content if isinstance(content, list) else ():
            yield str(part["text"])
