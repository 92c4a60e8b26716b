"""MetaGPT with the OpenAI client under it recorded by others too: each call counts once."""

from __future__ import annotations

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

from metagpt_programs import script, team
from openai_peers import NAMES, instrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace_instrumentations.openai import OpenAIInstrumentor

pytestmark = pytest.mark.framework("metagpt")


async def run_team() -> None:
    made = team()
    made.run_project("an adder")
    await made.run(n_round=4)


@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_run_reads_the_same_with_theirs(recorded, server, name: str, shared: bool) -> None:
    """The same steps, turns and tokens as without them; their own spans are there, too."""
    server.follow(script)
    theirs, ours = instrumentor(name), OpenAIInstrumentor()
    await run_team()
    plain = recorded.seen()
    recorded.exporter.clear()
    provider, exporter = recorded.provider, recorded.exporter
    if not shared:
        exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    ours.instrument(tracer_provider=recorded.provider)
    theirs.instrument(tracer_provider=provider)
    try:
        await run_team()
    finally:
        theirs.uninstrument()
        ours.uninstrument()
    assert recorded.seen() == plain
    own = [s for s in exporter.get_finished_spans() if "mast.framework" not in s.attributes]
    assert len(own) == 2
    if not shared:
        recorded.check_shape()
