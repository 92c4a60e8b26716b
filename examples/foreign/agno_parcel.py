"""Agno: a desk leads a team with a shipper. OpenInference makes the spans.

::

    pip install agno openai openinference-instrumentation-agno
    pip install opentelemetry-exporter-otlp-proto-http
    python agno_parcel.py                        # scripted model: all goes well
    python agno_parcel.py no-tariff              # scripted model: a tool fails
    OPENAI_API_KEY=... python agno_parcel.py
"""

from __future__ import annotations

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team
from openinference.instrumentation.agno import AgnoInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
AgnoInstrumentor().instrument(tracer_provider=provider)


def main() -> None:
    """Ask the desk, which asks the shipper."""
    shipper = Agent(
        id="shipper",
        name="shipper",
        model=OpenAIChat(MODEL),
        instructions=SHIPPER,
        tools=[postage],
        telemetry=False,
    )
    desk = Team(
        name="desk",
        model=OpenAIChat(MODEL),
        instructions=DESK,
        members=[shipper],
        tools=[find_order],
        telemetry=False,
    )
    print(desk.run(TASK).content)


if __name__ == "__main__":
    task = "What does a parcel of 3 kg to Lisbon cost?"
    with model_for("delegate_task_to_member", member_id="shipper", task=task):
        main()
