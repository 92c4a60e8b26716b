"""AG2 classic recorded by us and by its own telemetry: nothing is doubled or orphaned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from autogen.agentchat import initiate_group_chat
from autogen.oai.client import OpenAIWrapper
from scripted_llm import ScriptedLLM

from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import TracerProvider
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("autogen")


def tools(url: str, provider: TracerProvider) -> None:
    """Five calls at once, with AG2's own spans."""
    own = pytest.importorskip("autogen.opentelemetry", reason="this version has no telemetry")
    user, solver = programs.with_tools(url)
    for agent in (user, solver):
        own.instrument_agent(agent, tracer_provider=provider)
    user.initiate_chat(solver, message="What is 2 + 3?")


def pattern(url: str, provider: TracerProvider) -> None:
    """A group with hand-offs, with AG2's own spans."""
    own = pytest.importorskip("autogen.opentelemetry", reason="this version has no telemetry")
    crew = programs.crew(url)
    own.instrument_pattern(crew, tracer_provider=provider)
    initiate_group_chat(crew, "Print the sum of 2 and 3.", max_rounds=12)


PEERS: list[tuple[Any, Any, Any]] = [
    (tools, programs.tools, programs.tools_script),
    (pattern, programs.pattern, programs.pattern_script),
]
NAMES = ["own-tools", "own-pattern"]


@pytest.fixture
def client(spans: RecordedSpans) -> Iterator[None]:
    """The client under AutoGen is instrumented by us as well."""
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=spans.provider)
    yield
    instrumentor.uninstrument()


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
@pytest.mark.parametrize(("with_theirs", "alone", "script"), PEERS, ids=NAMES)
def test_a_run_reads_the_same_with_theirs(
    spans: RecordedSpans, elsewhere, with_theirs, alone, script, shared: bool
) -> None:
    """The same steps, turns and tokens as without them; their own spans are there, too."""
    with ScriptedLLM(script) as server:
        alone(server.url)
        plain = spans.seen()
        spans.exporter.clear()
        provider, exporter = (spans.provider, spans.exporter) if shared else elsewhere
        with_theirs(server.url, provider)
    assert spans.seen() == plain
    own = [s for s in exporter.get_finished_spans() if "mast.framework" not in s.attributes]
    assert own
    if not shared:
        known = {span.context.span_id for span in spans.all}
        outside = [s.name for s in spans.all if s.parent and s.parent.span_id not in known]
        # Only the run itself may have begun inside of a span of theirs.
        assert [name.split(" ")[0] for name in outside] in ([], ["invoke_workflow"])


def test_with_ag2s_own_spans_of_model_calls(spans: RecordedSpans, elsewhere, monkeypatch) -> None:
    """AG2's wrapper of the client cannot be switched off: the test removes it."""
    own = pytest.importorskip("autogen.opentelemetry", reason="this version has no telemetry")
    provider, exporter = elsewhere
    monkeypatch.setattr(OpenAIWrapper, "create", vars(OpenAIWrapper)["create"])
    own.instrument_llm_wrapper(tracer_provider=provider)
    with ScriptedLLM(programs.tools_script) as server:
        programs.tools(server.url)
    spans.check_shape()
    assert len(spans.named("chat")) == 2
    assert len(exporter.get_finished_spans()) == 2
