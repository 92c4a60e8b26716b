"""Google ADK: a desk transfers to a shipper. The framework makes the spans itself.

::

    pip install google-adk litellm opentelemetry-exporter-otlp-proto-http
    python google_adk_parcel.py                  # scripted model: all goes well
    python google_adk_parcel.py no-tariff        # scripted model: a tool fails
    OPENAI_API_KEY=... python google_adk_parcel.py
"""

from __future__ import annotations

import asyncio
import os

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


def report(*, error: Exception, **_call: object) -> dict[str, str]:
    """Show the model what a tool raised, instead of ending the run."""
    return {"error": str(error)}


async def main() -> None:
    """Ask the desk, which transfers to the shipper."""
    model = LiteLlm(f"openai/{MODEL}")
    shipper = Agent(
        name="shipper",
        model=model,
        instruction=SHIPPER,
        tools=[postage],
        on_tool_error_callback=report,
    )
    desk = Agent(
        name="desk", model=model, instruction=DESK, tools=[find_order], sub_agents=[shipper]
    )
    runner = InMemoryRunner(desk, app_name="parcel")
    session = await runner.session_service.create_session(app_name="parcel", user_id="u")
    task = types.Content(role="user", parts=[types.Part(text=TASK)])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=task):
        if event.is_final_response() and event.content:
            print(event.content.parts[0].text)


if __name__ == "__main__":
    with model_for("transfer_to_agent", agent_name="shipper"):
        asyncio.run(main())
