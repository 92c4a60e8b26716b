"""Instruments first and imports the framework afterwards; prints what is recorded."""

import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
instrumentor = LangGraphInstrumentor()
state = instrumentor.instrument(tracer_provider=provider)
if [name for name in sys.modules if name.partition(".")[0] in {"langgraph", "langchain_core"}]:
    sys.exit("instrument() has imported the framework")
if state.waiting and not state.patched:
    sys.stdout.write("waiting\n")

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

model = ChatOpenAI(model="scripted", base_url=sys.argv[1], api_key="scripted")


def speaker(asked: MessagesState) -> dict:
    """Ask the model."""
    return {"messages": [model.invoke(asked["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("speaker", speaker)
builder.add_edge(START, "speaker")
builder.compile().invoke({"messages": [("user", "Hi")]})
for span in exporter.get_finished_spans():
    sys.stdout.write(span.name.split()[0] + "\n")
if state.missing or state.waiting != ["langgraph.prebuilt.tool_node"]:
    # The program has no use for that one, so it has not imported it.
    sys.exit(f"waiting for {state.waiting}, missing {state.missing}")
