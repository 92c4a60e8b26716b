"""LlamaIndex: a desk hands over to a shipper. OpenInference makes the spans.

::

    pip install llama-index-core llama-index-llms-openai
    pip install openinference-instrumentation-llama-index opentelemetry-exporter-otlp-proto-http
    python llama_index_parcel.py                 # scripted model: all goes well
    python llama_index_parcel.py no-tariff       # scripted model: a tool fails
    OPENAI_API_KEY=... python llama_index_parcel.py
"""

from __future__ import annotations

import asyncio
import os

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LlamaIndexInstrumentor().instrument(tracer_provider=provider)


async def main() -> None:
    """Ask the desk, which hands over."""
    model = OpenAI(
        MODEL,
        api_base=os.environ.get("OPENAI_BASE_URL"),
        additional_kwargs={"stream_options": {"include_usage": True}},  # tokens of streamed answers
    )
    desk = FunctionAgent(
        name="desk",
        description="Knows the orders.",
        system_prompt=DESK,
        tools=[find_order],
        llm=model,
        can_handoff_to=["shipper"],
    )
    shipper = FunctionAgent(
        name="shipper",
        description="Knows what parcels cost.",
        system_prompt=SHIPPER,
        tools=[postage],
        llm=model,
    )
    print(await AgentWorkflow(agents=[desk, shipper], root_agent="desk").run(TASK))


if __name__ == "__main__":
    with model_for("handoff", to_agent="shipper", reason="the shipper knows the price"):
        asyncio.run(main())
