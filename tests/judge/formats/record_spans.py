"""Records samples of spans: of OpenTelemetry and of the tools that store them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from typing import Any

from recording import ANSWER, ARGUMENTS, QUESTION, RESULT, SAMPLES, count_stock, write, write_lines


def _spans(tracer: Any) -> None:
    """Make the spans of the run in the words of the GenAI conventions."""
    seen = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    call = {"type": "tool_call", "id": "call_1", "name": "count_stock", "arguments": ARGUMENTS}
    asks = [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    with tracer.start_as_current_span("invoke_agent stock_keeper") as turn:
        turn.set_attribute("gen_ai.operation.name", "invoke_agent")
        turn.set_attribute("gen_ai.agent.name", "stock_keeper")
        for output in (asks, answered):
            with tracer.start_as_current_span("chat gpt-5-mini") as chat:
                chat.set_attribute("gen_ai.operation.name", "chat")
                chat.set_attribute("gen_ai.request.model", "gpt-5-mini")
                chat.set_attribute("gen_ai.response.finish_reasons", ["stop"])
                chat.set_attribute("gen_ai.usage.input_tokens", 10)
                chat.set_attribute("gen_ai.input.messages", json.dumps(seen))
                chat.set_attribute("gen_ai.output.messages", json.dumps(output))
            if output is asks:
                with tracer.start_as_current_span("execute_tool count_stock") as tool:
                    tool.set_attribute("gen_ai.operation.name", "execute_tool")
                    tool.set_attribute("gen_ai.tool.name", "count_stock")
                    tool.set_attribute("gen_ai.tool.call.id", "call_1")
                    tool.set_attribute("gen_ai.tool.call.arguments", json.dumps(ARGUMENTS))
                    tool.set_attribute("gen_ai.tool.call.result", RESULT)
                    tool.add_event("counted", {"rows": 1})


def opentelemetry() -> None:
    from base64 import b64decode

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    printed = io.StringIO()
    provider = TracerProvider(resource=Resource({"service.name": "stock"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=printed)))
    _spans(provider.get_tracer("stock.agents"))
    (SAMPLES / "otel-console.txt").write_text(printed.getvalue(), encoding="utf-8")
    request = MessageToDict(encode_spans(kept.get_finished_spans()))
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = b64decode(span[name]).hex()
    write("otlp.jsonl", request, indent=None)
    write("jaeger.json", _as_jaeger(kept.get_finished_spans()))


def _as_jaeger(spans: Any) -> Any:
    """Return spans as Jaeger's query service translates OTLP; Jaeger is no Python package."""
    kinds = {bool: "bool", int: "int64", float: "float64"}

    def tags(attributes: Any) -> list[Any]:
        return [
            {"key": key, "type": kinds.get(type(value), "string"), "value": _tag(value)}
            for key, value in attributes.items()
        ]

    def one(span: Any) -> Any:
        trace = f"{span.context.trace_id:032x}"
        parent = span.parent
        above = {"refType": "CHILD_OF", "traceID": trace}
        scope = {"otel.scope.name": span.instrumentation_scope.name, "span.kind": "internal"}
        return {
            "traceID": trace,
            "spanID": f"{span.context.span_id:016x}",
            "operationName": span.name,
            "references": [{**above, "spanID": f"{parent.span_id:016x}"}] if parent else [],
            "startTime": span.start_time // 1000,
            "duration": (span.end_time - span.start_time) // 1000,
            "tags": tags({**span.attributes, **scope}),
            "logs": [
                {
                    "timestamp": event.timestamp // 1000,
                    "fields": tags({"event": event.name, **event.attributes}),
                }
                for event in span.events
            ],
            "processID": "p1",
            "warnings": None,
        }

    found = [one(span) for span in spans]
    process = {"serviceName": "stock", "tags": []}
    trace = {"traceID": found[0]["traceID"], "spans": found, "processes": {"p1": process}}
    return {"data": [{**trace, "warnings": None}], "total": 0, "limit": 0, "offset": 0}


def _tag(value: Any) -> Any:
    return json.dumps(list(value)) if isinstance(value, tuple) else value


def langsmith() -> None:
    """A LangGraph agent under LangChain's tracer, whose client keeps what it would send."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tracers import LangChainTracer
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langsmith.schemas import Run

    calls = [{"name": "count_stock", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}]
    model = GenericFakeChatModel(
        messages=iter([AIMessage("", tool_calls=calls), AIMessage(ANSWER)])
    )

    class Client:
        def __init__(self) -> None:
            self.runs: dict[str, dict[str, Any]] = {}

        def create_run(self, **given: Any) -> None:
            self.runs[str(given["id"])] = dict(given)

        def update_run(self, run_id: Any, **given: Any) -> None:
            known = self.runs[str(run_id)]
            known.update({key: value for key, value in given.items() if value is not None})

        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: None

    def stock_keeper(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("stock_keeper", stock_keeper)
    graph.add_node("tools", ToolNode([count_stock]))
    graph.add_edge(START, "stock_keeper")
    graph.add_conditional_edges(
        "stock_keeper", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tools", "stock_keeper")
    client = Client()
    tracer = LangChainTracer(client=client, project_name="stock")  # type: ignore[arg-type]
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    graph.compile(name="stock").invoke(asked, config={"callbacks": [tracer]})
    fields = Run.model_fields.keys()
    runs = []
    for given in client.runs.values():
        given.get("extra", {}).pop("runtime", None)  # details of the machine
        kept = {key: value for key, value in given.items() if key in fields}
        run = Run(**{**kept, "session_id": None})
        runs.append(json.loads(run.model_dump_json(exclude_none=True, exclude={"serialized"})))
    write_lines("langsmith.jsonl", runs)


def langfuse() -> None:
    """Observations in the types of Langfuse's API, as its client serialises them."""
    from langfuse.api import ObservationV2

    trace = "4f2c6a1e9b7d4c3fa1b2c3d4e5f60718"
    base = {"trace_id": trace, "project_id": "p1", "environment": "default"}
    seen = [{"role": "user", "content": QUESTION}]
    function = {"name": "count_stock", "arguments": json.dumps(ARGUMENTS)}
    asks = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    answered = {"role": "assistant", "content": ANSWER}
    root, turn = "00000000000000a0", "00000000000000a1"
    given = [
        (root, None, "SPAN", "stock run", {"question": QUESTION}, ANSWER),
        (turn, root, "AGENT", "stock_keeper", seen, ANSWER),
        ("00000000000000a2", turn, "GENERATION", "chat", seen, asks),
        ("00000000000000a3", turn, "TOOL", "count_stock", ARGUMENTS, RESULT),
        ("00000000000000a4", turn, "GENERATION", "chat", seen, answered),
    ]
    rows = []
    for second, (own, parent, kind, name, inputs, outputs) in enumerate(given):
        last = 9 if kind in {"SPAN", "AGENT"} else second
        made = ObservationV2(
            id=own,
            parent_observation_id=parent,
            type=kind,
            name=name,
            start_time=f"2026-11-24T10:00:0{second}.000Z",
            end_time=f"2026-11-24T10:00:0{last}.500Z",
            input=json.dumps(inputs),
            output=json.dumps(outputs),
            level="DEFAULT",
            **({"usage_details": {"input": 10, "output": 5}} if kind == "GENERATION" else {}),
            **base,
        )
        rows.append(json.loads(made.json(by_alias=True, exclude_none=True)))
    write("langfuse-api.json", {"data": rows, "meta": {"totalItems": 5}})

    def camel(name: str) -> str:
        head, *tail = name.split("_")
        return head + "".join(part.title() for part in tail)

    observations = [
        {camel(key): value for key, value in row.items()}
        | {key: json.loads(row[key]) for key in ("input", "output")}
        for row in rows
    ]
    whole = {
        "id": trace,
        "timestamp": "2026-11-24T10:00:00.000Z",
        "name": "stock run",
        "sessionId": "talk-1",
        "input": {"question": QUESTION},
        "latency": 9.5,
    }
    write("langfuse-trace.json", {"trace": whole, "observations": observations})


def phoenix() -> None:
    """Spans that a Phoenix server received, as its client gives them: a data frame, and objects."""
    from openinference.instrumentation import using_session  # noqa: F401  # says what is missing
    from openinference.semconv.trace import SpanAttributes as Names
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from phoenix.client import Client

    url = os.environ["PHOENIX_COLLECTOR_ENDPOINT"]
    resource = Resource({"service.name": "stock", "openinference.project.name": "stock"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("stock.agents")
    seen = {
        f"{Names.LLM_INPUT_MESSAGES}.0.message.role": "user",
        f"{Names.LLM_INPUT_MESSAGES}.0.message.content": QUESTION,
    }
    answers = f"{Names.LLM_OUTPUT_MESSAGES}.0.message"
    call = f"{answers}.tool_calls.0.tool_call"
    asks = {
        f"{answers}.role": "assistant",
        f"{call}.id": "call_1",
        f"{call}.function.name": "count_stock",
        f"{call}.function.arguments": json.dumps(ARGUMENTS),
    }
    answered = {f"{answers}.role": "assistant", f"{answers}.content": ANSWER}
    turn = {"openinference.span.kind": "AGENT", "agent.name": "stock_keeper"}
    with tracer.start_as_current_span("stock_keeper", attributes=turn):
        for output in (asks, answered):
            chat = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5-mini"}
            chat |= {"llm.token_count.prompt": 10} | seen | output  # type: ignore[assignment]
            tracer.start_span("chat", attributes=chat).end()
            if output is asks:
                tool = {
                    "openinference.span.kind": "TOOL",
                    "tool.name": "count_stock",
                    "input.value": json.dumps(ARGUMENTS),
                    "output.value": RESULT,
                }
                tracer.start_span("count_stock", attributes=tool).end()
    client = Client(base_url=url)
    frame = None
    for _ in range(60):
        with contextlib.suppress(Exception):
            frame = client.spans.get_spans_dataframe(project_identifier="stock")
        if frame is not None and len(frame) == 4:
            break
        time.sleep(1)
    assert frame is not None
    frame = frame.sort_values("start_time")
    frame.to_parquet(SAMPLES / "phoenix.parquet")
    frame.to_json(
        SAMPLES / "phoenix.jsonl", orient="records", lines=True, date_unit="ns", date_format="iso"
    )
    write("phoenix-api.json", {"data": client.spans.get_spans(project_identifier="stock")})
