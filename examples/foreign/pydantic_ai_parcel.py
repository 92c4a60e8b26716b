"""pydantic-ai: a desk asks a shipper through a tool. The framework makes the spans itself.

::

    pip install 'pydantic-ai-slim[openai]' opentelemetry-exporter-otlp-proto-http
    python pydantic_ai_parcel.py                 # scripted model: all goes well
    python pydantic_ai_parcel.py no-tariff       # scripted model: a tool fails
    OPENAI_API_KEY=... python pydantic_ai_parcel.py
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage
from pydantic_ai import Agent, ModelRetry

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()


def main() -> None:
    """Ask the desk, which asks the shipper."""
    shipper = Agent(f"openai-chat:{MODEL}", name="shipper", instructions=SHIPPER)
    desk = Agent(f"openai-chat:{MODEL}", name="desk", instructions=DESK, tools=[find_order])

    @shipper.tool_plain(name="postage")
    def price(city: str, kilograms: int) -> str:
        """Look up what a parcel costs."""
        try:
            return postage(city, kilograms)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    @desk.tool_plain
    async def ask_shipper(question: str) -> str:
        """Ask the shipper, who knows the tariff."""
        return (await shipper.run(question)).output

    print(desk.run_sync(TASK).output)


if __name__ == "__main__":
    with model_for("ask_shipper", question="What does a parcel of 3 kg to Lisbon cost?"):
        main()
