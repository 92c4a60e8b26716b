"""Measures how many finished runs a second a worker takes through the local layers.

    python benchmarks/judge/worker.py [--runs 1000] [--repeat 3]

The runs are those of a team of five that the SDK records, 22 steps and about 50 spans each, no text
alike; they are written into an embedded store by the collector's writer. The worker finds them,
reads their spans, applies rules and attribution and stores the verdicts. Engine and worker share
this process, so the processor time holds both.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from pydoc_data.topics import topics
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace.messages import Message, ToolCall
from mast_trace.spans import Telemetry
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.worker import Worker

if TYPE_CHECKING:
    from mast_trace.spans import AgentSpan, RunSpan

_TEXT = " ".join(topics.values())
_WORKERS = ("researcher", "analyst", "coder", "critic", "writer")
_RUNS_PER_REQUEST = 20


class Team:
    """Records runs as an instrumented program would."""

    def __init__(self, seed: int = 0) -> None:
        self._dice = random.Random(seed)
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._telemetry = Telemetry(provider, framework="langgraph", version="1.2")

    def requests(self, runs: int) -> list[bytes]:
        """Return runs as OTLP requests."""
        made = []
        for first in range(0, runs, _RUNS_PER_REQUEST):
            for number in range(first, min(runs, first + _RUNS_PER_REQUEST)):
                self._run(number)
            made.append(encode_spans(self._exporter.get_finished_spans()).SerializeToString())
            self._exporter.clear()
        return made

    def _run(self, number: int) -> None:
        task = Message(self._words(300), role="user")
        root = self._telemetry.run("team", parent=otel_context.Context(), input=[task])
        if number % 3:
            root.set({"mast.run.outcome": ("success", "failure")[number % 3 - 1]})
        self._telemetry.message("user", ["boss"], task, parent=root.context)
        history = [task]
        for worker in _WORKERS:
            order = self._speak(root, "boss", [worker], history)
            history.append(order)
            history.append(self._work(root, worker, order, repeat=number % 5 == 0))
        self._speak(root, "boss", ["user"], history)
        root.finish("completed")

    def _speak(
        self, root: RunSpan, agent: str, recipients: list[str], history: list[Message]
    ) -> Message:
        turn = self._telemetry.agent(agent, parent=root.context, input=history)
        reply_message = self._asked(turn, history)
        self._telemetry.message(agent, recipients, reply_message, parent=turn.context)
        turn.reply(reply_message)
        turn.end()
        return reply_message

    def _work(self, root: RunSpan, agent: str, order: Message, *, repeat: bool) -> Message:
        turn = self._telemetry.agent(agent, parent=root.context, input=[order])
        shown = [order]
        for attempt in range(2):
            arguments = {"page": 1 if repeat else attempt, "query": order.content[:40]}
            call = ToolCall("search_pages", arguments, f"call_{self._dice.random()}")
            shown.append(self._asked(turn, shown, call))
            tool = self._telemetry.tool(
                call.name, parent=turn.context, arguments=arguments, call_id=call.id
            )
            result = f"Found {self._dice.randrange(10**6)} pages. {self._words(500)}"
            tool.result(result)
            tool.end()
            shown.append(Message(result, role="tool", tool_call_id=call.id))
        reply_message = self._asked(turn, shown)
        self._telemetry.message(agent, ["boss"], reply_message, parent=turn.context)
        turn.reply(reply_message)
        turn.end()
        return reply_message

    def _asked(self, turn: AgentSpan, shown: list[Message], *calls: ToolCall) -> Message:
        chat = self._telemetry.chat("gpt-5", parent=turn.context, input=shown)
        answer = Message("" if calls else self._words(400), tool_calls=calls)
        chat.response(answer, input_tokens=900, output_tokens=80)
        chat.end()
        return answer

    def _words(self, mean: int) -> str:
        length = min(5000, max(20, int(self._dice.lognormvariate(0, 0.7) * mean)))
        start = self._dice.randrange(len(_TEXT) - 5000)
        return _TEXT[start : start + length]


def measure(runs: int) -> tuple[float, float]:
    """Return seconds and processor seconds in which a worker has judged that many runs."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}/data") as store:
        migrate(store)
        writer = SpanWriter(store)
        for number, request in enumerate(Team().requests(runs)):
            writer.write([request], token=f"worker-{number}")
        config = WorkerConfig(run_quiet_seconds=0.001)
        worker = Worker(store, Judge(JudgeConfig(judge_model="")), config)
        time.sleep(1.0)  # merges that the writes have left
        wall, processor = time.perf_counter(), time.process_time()
        judged = asyncio.run(_drain(worker))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if judged != runs:
        raise SystemExit(f"{judged} of {runs} runs were judged")
    return wall, processor


async def _drain(worker: Worker) -> int:
    judged = 0
    while done := await worker.drain_once():
        judged += done
    return judged


def main() -> None:
    """Fill and judge stores, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    rates, costs = [], []
    for _ in range(given.repeat):
        wall, processor = measure(given.runs)
        rates.append(given.runs / wall)
        costs.append(1000 * processor / given.runs)
        print(f"{rates[-1]:.0f} runs/s, {costs[-1]:.1f} ms of processor time a run", flush=True)
    print(f"median: {statistics.median(rates):.0f} runs/s, {statistics.median(costs):.1f} ms")


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    main()
