"""Records the traces that other tools make of small programs, for the tests beside this file.

Run it in an environment that holds the tool and its framework::

    python tests/foreign/record.py openinference-langchain

The OTLP/JSON request is written to ``tests/foreign/recorded/NAME.json``. Programs answer from a
script, so a recording changes only when the tool does.

The programs under ``examples/foreign`` are recorded as they stand, each in both of its scenarios, by
what they send to an OTLP endpoint. `EXAMPLES` has the packages of each::

    uv venv .venv-recording
    uv pip install -p .venv-recording $(python tests/foreign/record.py --packages smolagents)
    .venv-recording/bin/python tests/foreign/record.py smolagents

Those of Node.js are recorded from a folder where ``npm install`` has put their packages.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from scripted_llm import Call, Reply, Request, ScriptedLLM, messages_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

FOREIGN = Path(__file__).parents[2] / "examples" / "foreign"
TASK = "How many people live in Paris?"
ANSWER = "Paris has 2.1 million inhabitants."
SERVER = "mcp-server"
SPANS = "RECORD_SERVER_SPANS_TO"


def script(request: Request) -> Reply | str:
    """Look the number up, then say it."""
    shown = json.dumps(messages_of(request))
    if not request.get("tools") or "2.1 million" in shown:
        return ANSWER
    names = [tool.get("name") or tool["function"]["name"] for tool in request["tools"]]
    if "lookup" in names:
        return Reply(calls=(Call("lookup", {"city": "Paris"}),))
    return Reply(calls=(Call(next(n for n in names if "transfer" in n), {}),))


def lookup(city: str) -> str:
    """Look up the population of a city."""
    return f"{city}: 2.1 million"


# -- programs -----------------------------------------------------------------------------------------


def langgraph_team(url: str) -> None:
    """A supervisor hands the task to a researcher who has a tool."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from langgraph_supervisor import create_supervisor

    model = ChatOpenAI(model="gpt-4o", base_url=url, api_key="scripted")
    researcher = create_agent(model, [lookup], name="researcher", system_prompt="You research.")
    graph = create_supervisor([researcher], model=model, prompt="You supervise.").compile()
    graph.invoke({"messages": [("user", TASK)]})


def crew(url: str) -> None:
    """One agent with a tool."""
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    model = LLM(model="openai/gpt-4o", base_url=url, api_key="scripted")
    agent = Agent(
        role="researcher", goal="answer", backstory="x", tools=[tool("lookup")(lookup)], llm=model
    )
    task = Task(description=TASK, expected_output="a number", agent=agent)
    Crew(agents=[agent], tasks=[task]).kickoff()


def autogen_agentchat(url: str) -> None:
    """Microsoft AutoGen: a researcher and a writer in turn."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import SingleThreadedAgentRuntime
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    from opentelemetry import trace

    model = OpenAIChatCompletionClient(model="gpt-4o", base_url=url, api_key="scripted")
    researcher = AssistantAgent("researcher", model, tools=[lookup], reflect_on_tool_use=True)
    writer = AssistantAgent("writer", model)

    async def run() -> None:
        runtime = SingleThreadedAgentRuntime(tracer_provider=trace.get_tracer_provider())
        runtime.start()
        team = RoundRobinGroupChat(
            [researcher, writer], termination_condition=MaxMessageTermination(5), runtime=runtime
        )
        await team.run(task=TASK)
        await runtime.stop_when_idle()

    asyncio.run(run())


def agent_framework(url: str) -> None:
    """Microsoft agent-framework: one agent with a tool."""
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="gpt-4o", base_url=url, api_key="scripted")
    agent = Agent(client=client, name="researcher", instructions="You research.", tools=[lookup])
    asyncio.run(agent.run(TASK))


def agent_framework_mcp(url: str) -> None:
    """The agent with its tool on an MCP server, which runs in a process of its own and traces itself."""
    from agent_framework import Agent, MCPStdioTool
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="gpt-4o", base_url=url, api_key="scripted")
    server = MCPStdioTool(
        "population", sys.executable, args=[__file__, SERVER], env={SPANS: os.environ[SPANS]}
    )

    async def run() -> None:
        async with Agent(
            client=client, name="researcher", instructions="You research.", tools=[server]
        ) as agent:
            await agent.run(TASK)

    asyncio.run(run())


def serve() -> None:
    """Offer `lookup` over stdio; write the spans of it when the client has closed the connection."""
    from mcp.server.mcpserver import MCPServer

    exporter = traced(SERVER)
    server = MCPServer("population")
    server.add_tool(lookup)
    server.run()
    Path(os.environ[SPANS]).write_text(json.dumps(exported(exporter)))


def adk(url: str) -> None:
    """Google ADK: one agent with a tool."""
    from google.adk.agents import Agent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    model = LiteLlm(model="openai/gpt-4o", api_base=url, api_key="scripted")
    agent = Agent(name="researcher", model=model, instruction="You research.", tools=[lookup])
    runner = InMemoryRunner(agent=agent, app_name="demo")

    async def run() -> None:
        session = await runner.session_service.create_session(app_name="demo", user_id="u")
        task = types.Content(role="user", parts=[types.Part(text=TASK)])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=task):
            pass

    asyncio.run(run())


def ag2_agent(url: str) -> None:
    """AG2 1.x with its own telemetry middleware: one agent with a tool."""
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.middleware.builtin import TelemetryMiddleware
    from opentelemetry import trace

    agent = Agent(
        "researcher",
        prompt="You research.",
        config=OpenAIConfig(model="gpt-4o", base_url=url, api_key="scripted"),
        tools=[lookup],
        middleware=[
            TelemetryMiddleware(
                tracer_provider=trace.get_tracer_provider(), agent_name="researcher"
            )
        ],
    )
    asyncio.run(agent.ask(TASK))


# -- tools --------------------------------------------------------------------------------------------


def openinference_langchain(provider: TracerProvider) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def openllmetry_langchain(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)


def openlit_langchain(_provider: TracerProvider) -> None:
    import openlit

    openlit.init(capture_message_content=True, disable_metrics=True)


def openinference_crewai(provider: TracerProvider) -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def own(_provider: TracerProvider) -> None:
    """The framework traces itself."""


def own_agent_framework(_provider: TracerProvider) -> None:
    from agent_framework.observability import enable_instrumentation

    enable_instrumentation(enable_sensitive_data=True)


RECORDINGS: dict[str, tuple[Callable[[Any], None], Callable[[str], None]]] = {
    "openinference-langchain": (openinference_langchain, langgraph_team),
    "openllmetry-langchain": (openllmetry_langchain, langgraph_team),
    "openlit-langchain": (openlit_langchain, langgraph_team),
    "openinference-crewai": (openinference_crewai, crew),
    "autogen-agentchat": (own, autogen_agentchat),
    "agent-framework": (own_agent_framework, agent_framework),
    "agent-framework-mcp": (own_agent_framework, agent_framework_mcp),
    "google-adk": (own, adk),
    "ag2": (own, ag2_agent),
}


EXPORTER = "opentelemetry-exporter-otlp-proto-http"
JS_EXPORTER = "@opentelemetry/exporter-trace-otlp-proto"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "agno": (
        "agno==3.1.10",
        "openai==3.57.0",
        "openinference-instrumentation-agno==1.0.15",
        EXPORTER,
    ),
    "agent-framework": (
        "agent-framework-openai==1.17.0",
        "agent-framework-orchestrations==1.4.0",
        EXPORTER,
    ),
    "dspy": (
        "dspy==3.4.1",
        "openinference-instrumentation-dspy==0.1.48",
        "openinference-instrumentation-litellm==0.1.51",
        EXPORTER,
    ),
    "google-adk": ("google-adk==2.13.0", "litellm==1.110.2", EXPORTER),
    "llama-index": (
        "llama-index-core==0.14.25",
        "llama-index-llms-openai==0.8.3",
        "openinference-instrumentation-llama-index==4.6.1",
        EXPORTER,
    ),
    "openai-agents": (
        "openai-agents==0.24.0",
        "openinference-instrumentation-openai-agents==2.6.0",
        EXPORTER,
    ),
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.68.0", EXPORTER),
    "smolagents": (
        "smolagents[openai]==1.26.0",
        "openinference-instrumentation-smolagents==0.1.43",
        EXPORTER,
    ),
    "langgraph-js": (
        "@langchain/langgraph@1.7.3",
        "@langchain/openai@1.5.8",
        "@arizeai/openinference-instrumentation-langchain@4.1.1",
        JS_EXPORTER,
    ),
    "mastra": (
        "@mastra/core@1.71.0",
        "@mastra/observability@1.17.9",
        "@mastra/otel-exporter@1.4.0",
        JS_EXPORTER,
    ),
    "vercel-ai": ("ai@6.0.326", "@ai-sdk/openai@3.0.141", JS_EXPORTER),
    "strands": ("strands-agents[openai]==1.62.0", EXPORTER),
}
"""A program under ``examples/foreign``, without its ending -> what it was recorded with."""


QUIET = {
    "agno": {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
    "openai-agents": {"OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA": "false"},
}
"""An example -> settings under which its instrumentation tells no texts: recorded to ``recorded/quiet``."""


OLDEST: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "google-adk": (
        ("google-adk==1.15.0", "litellm==1.77.0"),
        {"        on_tool_error_callback=report,\n": ""},
    ),
    "llama-index": (
        (
            "llama-index-core==0.13.0",
            "llama-index-llms-openai==0.5.0",
            "openinference-instrumentation-llama-index==4.3.4",
        ),
        {"        MODEL,\n": '        "gpt-4o",\n'},
    ),
    "pydantic-ai": (("pydantic-ai-slim[openai]==1.0.0",), {"openai-chat:": "openai:"}),
    "strands": (("strands-agents[openai]==1.0.0",), {", entry_point=desk": ""}),
}
"""An example -> old releases that were tried, and changes of its program for them: ``record.py NAME oldest``."""


def record_example(
    name: str, scenario: str, target: str, settings: dict[str, str], changes: dict[str, str]
) -> None:
    """Run a program as its user would, and keep what it sends to its OTLP endpoint."""
    from received import Receiver

    (program,) = FOREIGN.glob(f"{name.replace('-', '_')}_parcel.*")
    with Receiver() as receiver:
        telemetry = settings | {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces",
            "OTEL_SERVICE_NAME": name,
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",  # else it asks a server for prices
        }
        os.environ.pop("OPENAI_API_KEY", None)
        if program.suffix == ".py":
            source = program.read_text()
            for old, new in changes.items():
                source = source.replace(old, new)
            command = [sys.executable, "-c", source, scenario]
            subprocess.run(command, cwd=FOREIGN, env={**os.environ, **telemetry}, check=True)
        else:
            run_node(program, scenario, telemetry)
    write(target, otlp_json(receiver.request))


def run_node(program: Path, scenario: str, telemetry: dict[str, str]) -> None:
    """Run a program of Node.js, which finds its packages in the current folder."""
    sys.path.append(str(FOREIGN))
    from parcel import model_for

    sys.argv[1:] = [scenario]
    here = Path(shutil.copy(program, Path.cwd()))
    with model_for("ask_shipper", question="What does a parcel of 3 kg to Lisbon cost?"):
        subprocess.run(["node", here.name], env={**os.environ, **telemetry}, check=True)


def write(name: str, request: dict[str, Any]) -> None:
    """Write a request, as OTLP/JSON, to its place."""
    target = Path(__file__).parent / "recorded" / f"{name}.json"
    target.write_text(json.dumps(request, indent=1, ensure_ascii=False) + "\n")
    scopes = [scope for resource in request["resourceSpans"] for scope in resource["scopeSpans"]]
    spans = [span for scope in scopes for span in scope["spans"]]
    sys.stdout.write(f"{target}: {len(spans)} spans\n")


def main(name: str) -> None:
    """Record one trace, or all of an example."""
    if sys.argv[2:] == ["oldest"]:
        record_example(name, "posted", f"oldest/{name}", {}, OLDEST[name][1])
        return
    if name in EXAMPLES:
        for scenario in ("posted", "no-tariff"):
            record_example(name, scenario, f"examples/{name}-{scenario}", {}, {})
        if name in QUIET:
            record_example(name, "posted", f"quiet/{name}", QUIET[name], {})
        return
    os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
    os.environ.setdefault("OPENAI_API_KEY", "scripted")

    from opentelemetry import trace

    exporter = traced(name)
    instrument, program = RECORDINGS[name]
    with ScriptedLLM(script) as server, tempfile.TemporaryDirectory() as folder:
        of_server = Path(folder, "spans.json")
        os.environ |= {"OPENAI_BASE_URL": server.url, SPANS: str(of_server)}
        provider: Any = trace.get_tracer_provider()
        instrument(provider)
        if name == "autogen-agentchat":
            # It begins a trace per message unless the application has a span around the run.
            with provider.get_tracer("application").start_as_current_span("team"):
                program(server.url)
        else:
            program(server.url)
        request = exported(exporter)
        if of_server.exists():
            request["resourceSpans"] += json.loads(of_server.read_text())["resourceSpans"]
    write(name, request)


def traced(service: str) -> InMemorySpanExporter:
    """Trace this process; return where its spans end up."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def exported(exporter: InMemorySpanExporter) -> dict[str, Any]:
    """Return the spans as an OTLP/JSON request, by the time at which they began."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return otlp_json(
        encode_spans(sorted(exporter.get_finished_spans(), key=lambda s: s.start_time or 0))
    )


def otlp_json(request: Any) -> dict[str, Any]:
    """Render a request as OTLP/JSON, whose ids are hexadecimal."""
    from google.protobuf.json_format import MessageToDict

    shape: dict[str, Any] = MessageToDict(request)
    for resource in shape["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
                # Stack traces name the paths of the machine that recorded.
                if message := span.get("status", {}).get("message"):
                    span["status"]["message"] = message.partition("\n")[0]
                for event in span.get("events", []):
                    event["attributes"] = [
                        item
                        for item in event.get("attributes", [])
                        if item["key"] != "exception.stacktrace"
                    ]
    return shape


if __name__ == "__main__":
    if sys.argv[1] == SERVER:
        serve()
    elif sys.argv[1] == "--packages":
        sys.stdout.write(" ".join(EXAMPLES[sys.argv[2]]) + "\n")
    else:
        main(sys.argv[1])
