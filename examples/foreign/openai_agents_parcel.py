"""OpenAI Agents SDK: a desk hands over to a shipper. OpenInference turns its traces into spans.

::

    pip install openai-agents openinference-instrumentation-openai-agents
    pip install opentelemetry-exporter-otlp-proto-http
    python openai_agents_parcel.py               # scripted model: all goes well
    python openai_agents_parcel.py no-tariff     # scripted model: a tool fails
    OPENAI_API_KEY=... python openai_agents_parcel.py
"""

from __future__ import annotations

from agents import Agent, Runner, function_tool
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def main() -> None:
    """Ask the desk, which hands over."""
    shipper = Agent("shipper", instructions=SHIPPER, model=MODEL, tools=[function_tool(postage)])
    desk = Agent(
        "desk",
        instructions=DESK,
        model=MODEL,
        tools=[function_tool(find_order)],
        handoffs=[shipper],
    )
    print(Runner.run_sync(desk, TASK).final_output)


if __name__ == "__main__":
    with model_for("transfer_to_shipper"):
        main()
