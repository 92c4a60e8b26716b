"""Microsoft agent-framework: a desk hands over to a shipper. The framework makes the spans itself.

::

    pip install agent-framework-openai agent-framework-orchestrations
    pip install opentelemetry-exporter-otlp-proto-http
    python agent_framework_parcel.py             # scripted model: all goes well
    python agent_framework_parcel.py no-tariff   # scripted model: a tool fails
    OPENAI_API_KEY=... python agent_framework_parcel.py
"""

from __future__ import annotations

import asyncio
import os

from agent_framework import Agent
from agent_framework.observability import configure_otel_providers
from agent_framework.openai import OpenAIChatCompletionClient
from agent_framework.orchestrations import HandoffBuilder
from parcel import DESK, MODEL, SHIPPER, TASK, find_order, model_for, postage

os.environ.setdefault("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/v1/traces")
configure_otel_providers(otlp_protocol="http/protobuf", enable_sensitive_data=True)


async def main() -> None:
    """Ask the desk, which hands over."""
    client = OpenAIChatCompletionClient(model=MODEL)
    desk = Agent(
        client,
        name="desk",
        instructions=DESK,
        tools=[find_order],
        require_per_service_call_history_persistence=True,
    )
    shipper = Agent(
        client,
        name="shipper",
        instructions=SHIPPER,
        tools=[postage],
        require_per_service_call_history_persistence=True,
    )
    team = HandoffBuilder(
        name="parcel",
        participants=[desk, shipper],
        termination_condition=lambda conversation: conversation[-1].author_name == "shipper",
    )
    result = await team.with_start_agent(desk).build().run(TASK)
    print(result.get_outputs()[-1].text)


if __name__ == "__main__":
    with model_for("handoff_to_shipper"):
        asyncio.run(main())
