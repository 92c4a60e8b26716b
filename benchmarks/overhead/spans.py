"""Measures the cost of a span in the agent's own thread, by kind: from its start to its end, without export.

Spans go to a provider whose processor only counts them, as the background exporter's does little
more than to put them in a queue. The texts are those of a run: each message is new to the run
where the table says so, else it is known and only its id is written.

::

    python benchmarks/overhead/spans.py
    python benchmarks/overhead/spans.py --characters 4000
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from mast_trace.messages import Message, ToolCall
from mast_trace.spans import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

ROUNDS = 15
SPANS_PER_ROUND = 200


class Spans:
    """Makes one span of each kind on the texts of a run.

    Args:
        characters: of each text.
    """

    def __init__(self, characters: int) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SpanProcessor())
        self._telemetry = Telemetry(provider, framework="benchmark", version="1")
        self._text = "Revenue by region and quarter, in euros. " * (characters // 41 + 1)
        self._text = self._text[:characters]
        self._made = 0

    def _new(self, role: str = "assistant") -> Message:
        """A message that the run has not seen, as an agent or a tool makes it."""
        self._made += 1
        return Message(f"{self._made} {self._text}", role=role, id=f"message-{self._made}")

    def chat(self, inputs: int) -> Callable[[Context], None]:
        """A call of a model on ``inputs`` messages, the last of them new, with a new answer."""
        history = [self._new() for _ in range(inputs - 1)]

        def make(run: Context) -> None:
            shown = [*history, self._new("user")]
            span = self._telemetry.chat("gpt-5-mini", parent=run, provider="openai", input=shown)
            call = ToolCall("read", {"page": self._made}, f"call_{self._made}")
            answer = Message(self._new().content, tool_calls=(call,))
            span.response(answer, finish_reason="tool_calls", input_tokens=90, output_tokens=9)
            span.end()

        return make

    def agent(self, inputs: int) -> Callable[[Context], None]:
        """An agent's turn on ``inputs`` messages, the last of them new, with a new reply."""
        history = [self._new() for _ in range(inputs - 1)]

        def make(run: Context) -> None:
            shown = [*history, self._new("user")]
            span = self._telemetry.agent("analyst", parent=run, input=shown)
            span.reply(self._new())
            span.end()

        return make

    def tool(self, run: Context) -> None:
        """A call of a tool with a new result."""
        arguments = {"page": self._made, "region": "north"}
        call = f"call_{self._made}"
        span = self._telemetry.tool("read", parent=run, arguments=arguments, call_id=call)
        span.result(self._new("tool").content)
        span.end()

    def message(self, run: Context) -> None:
        """A new message to two agents."""
        self._telemetry.message("analyst", ["writer", "user"], self._new(), parent=run)

    def time(self, make: Callable[[Context], None]) -> list[float]:
        """Return microseconds a span, one value for each round."""
        found: list[float] = []
        for _ in range(ROUNDS + 1):
            run = self._telemetry.run("benchmark")
            make(run.context)  # the history becomes known
            began = time.thread_time()
            for _ in range(SPANS_PER_ROUND):
                make(run.context)
            found.append((time.thread_time() - began) / SPANS_PER_ROUND * 1e6)
            run.end()
        return found[1:]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--characters", type=int, default=800, help="length of each text")
    options = parser.parse_args()
    spans = Spans(options.characters)
    kinds = {
        "send_message": spans.message,
        "execute_tool": spans.tool,
        "invoke_agent, 1 message seen": spans.agent(1),
        "invoke_agent, 20 messages seen": spans.agent(20),
        "chat, 1 message seen": spans.chat(1),
        "chat, 20 messages seen": spans.chat(20),
        "chat, 200 messages seen": spans.chat(200),
    }
    print("| span | CPU of the agent's thread, us |")
    print("|---|---|")
    for name, make in kinds.items():
        found = spans.time(make)
        print(f"| {name} | {statistics.median(found):.0f} [{min(found):.0f} .. {max(found):.0f}] |")


if __name__ == "__main__":
    main()
