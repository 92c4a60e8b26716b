"""A team on LangGraph, recorded by us alone and by others at the same time.

For a process of its own: what others put in place, their `uninstrument` does not take out again.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from langchain_openai import ChatOpenAI
from langgraph_programs import arithmetic, ask, supervised
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from recorded_spans import RecordedSpans
from scripted_llm import ScriptedLLM

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor
from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


def run_team() -> None:
    """Run it once."""
    with ScriptedLLM(arithmetic) as server:
        model = ChatOpenAI(base_url=server.url, model="scripted", api_key="scripted", max_retries=0)
        supervised(model, name="team").invoke(ask())


def theirs(name: str) -> list[Any]:
    """Another tool's instrumentations of LangChain and of the OpenAI client."""
    if name == "openinference":
        from openinference.instrumentation.langchain import LangChainInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor as Client

        return [LangChainInstrumentor(), Client()]
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor as Client

    return [LangchainInstrumentor(), Client()]


@contextmanager
def both(recorded: RecordedSpans, name: str, provider: Any, order: str) -> Iterator[None]:
    """Record by both, instrumented in this order; what came last goes first."""
    ours = [recorded.instrumentor, OpenAIInstrumentor()]
    recorded.instrumentor.uninstrument()
    mine = [(one, recorded.provider) for one in ours]
    others = [(one, provider) for one in theirs(name)]
    with ExitStack() as stack:
        for one, where in mine + others if order == "ours first" else others + mine:
            one.instrument(tracer_provider=where)
            stack.callback(one.uninstrument)
        yield


def compare(name: str, *, shared: bool, order: str) -> dict[str, Any]:
    """Return how the run reads without them and with them, and what is left of each trace."""
    recorded = RecordedSpans.of(LangGraphInstrumentor())
    run_team()
    alone = recorded.seen()
    recorded.exporter.clear()
    provider, exporter = recorded.provider, recorded.exporter
    if not shared:
        provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    with both(recorded, name, provider, order):
        run_team()
    known = {span.context.span_id for span in recorded.all}
    return {
        "alone": alone,
        "with theirs": recorded.seen(),
        "their spans": sum(
            "mast.framework" not in span.attributes for span in exporter.get_finished_spans()
        ),
        "without parent": [
            span.name for span in recorded.all if span.parent and span.parent.span_id not in known
        ],
    }
