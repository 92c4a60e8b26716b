"""smolagents: a desk manages a shipper. OpenInference makes the spans.

::

    pip install 'smolagents[openai]' openinference-instrumentation-smolagents
    pip install opentelemetry-exporter-otlp-proto-http
    python smolagents_parcel.py                  # scripted model: all goes well
    python smolagents_parcel.py no-tariff        # scripted model: a tool fails
    OPENAI_API_KEY=... python smolagents_parcel.py
"""

from __future__ import annotations

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage
from smolagents import OpenAIModel, ToolCallingAgent, tool

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
SmolagentsInstrumentor().instrument(tracer_provider=provider)


def main() -> None:
    """Ask the desk, which asks the shipper it manages."""
    model = OpenAIModel(MODEL)
    shipper = ToolCallingAgent(
        [tool(postage)],
        model,
        name="shipper",
        description="Knows what parcels cost.",
        instructions=SHIPPER,
        verbosity_level=0,
    )
    desk = ToolCallingAgent(
        [tool(find_order)],
        model,
        name="desk",
        managed_agents=[shipper],
        instructions=DESK,
        verbosity_level=0,
    )
    print(desk.run(TASK))


if __name__ == "__main__":
    question = "What does a parcel of 3 kg to Lisbon cost?"
    with model_for("shipper", finish="final_answer", task=question):
        main()
