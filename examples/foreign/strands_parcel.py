"""Strands Agents: a desk hands over to a shipper in a swarm. The framework makes the spans itself.

::

    pip install 'strands-agents[openai]' opentelemetry-exporter-otlp-proto-http
    python strands_parcel.py                     # scripted model: all goes well
    python strands_parcel.py no-tariff           # scripted model: a tool fails
    OPENAI_API_KEY=... python strands_parcel.py
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import Swarm

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


def main() -> None:
    """Ask the desk, which hands over."""
    model = OpenAIModel(model_id=MODEL)
    desk = Agent(model, name="desk", system_prompt=DESK, tools=[tool(find_order)])
    shipper = Agent(model, name="shipper", system_prompt=SHIPPER, tools=[tool(postage)])
    print(Swarm([desk, shipper], entry_point=desk)(TASK).results["shipper"].result)


if __name__ == "__main__":
    message = "What does a parcel of 3 kg to Lisbon cost?"
    with model_for("handoff_to_agent", agent_name="shipper", message=message):
        main()
