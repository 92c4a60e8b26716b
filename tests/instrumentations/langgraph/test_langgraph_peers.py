"""LangGraph recorded by us and by LangSmith at the same time: nothing is doubled, nothing orphaned."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph_programs import arithmetic, ask, supervised
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("langgraph")


def run_team() -> None:
    """Run a team once."""
    with ScriptedLLM(arithmetic) as server:
        model = ChatOpenAI(base_url=server.url, model="scripted", api_key="scripted", max_retries=0)
        supervised(model, name="team").invoke(ask())


class _LangSmith:
    """Takes what LangSmith's client sends, and counts the requests."""

    def __init__(self) -> None:
        self.requests = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                owner.requests += 1
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def langsmith() -> Iterator[_LangSmith]:
    """LangSmith's service, as far as its client needs it."""
    service = _LangSmith()
    yield service
    service.server.shutdown()
    service.server.server_close()


def _over_http(service: _LangSmith) -> Any:
    from langsmith import Client

    return Client(api_url=service.url, api_key="none", info={"version": "0"})


def _over_opentelemetry(service: _LangSmith, provider: Any) -> Any:
    from langsmith import Client

    return Client(
        api_url=service.url,
        api_key="none",
        info={"version": "0"},
        tracing_mode="otel",
        otel_tracer_provider=provider,
    )


@pytest.mark.parametrize("way", ["http", "opentelemetry", "opentelemetry, one provider"])
def test_a_run_reads_the_same_with_langsmith(recorded, langsmith, way: str) -> None:
    """LangSmith's tracing, which LangChain has built in, goes on beside ours."""
    from langsmith import tracing_context

    run_team()
    plain = recorded.seen()
    recorded.exporter.clear()
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    if way.endswith("one provider"):
        exporter, provider = recorded.exporter, recorded.provider
    else:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    smith = _over_http(langsmith) if way == "http" else _over_opentelemetry(langsmith, provider)
    with tracing_context(enabled=True, client=smith, project_name="tests"):
        run_team()
    smith.flush()
    assert recorded.seen() == plain
    if way == "http":
        assert langsmith.requests
    else:
        spans = exporter.get_finished_spans()
        assert [span for span in spans if "mast.framework" not in (span.attributes or {})]
    if exporter is not recorded.exporter:
        recorded.check_shape()
