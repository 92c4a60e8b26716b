"""The compared tools: how their documentation switches each on, and their packages.

Every entry gets a `TracerProvider` that is also the global one; all its spans go there.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LANGGRAPH = (
    "langgraph==1.2.22",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "langgraph-supervisor==0.0.31",
)
CREWAI = ("crewai==1.15.30",)
AG2 = ("ag2[openai]==1.2.1",)
AUTOGEN = ("ag2[openai]==0.14.0",)
# It pins packages that are gone or contradict each other; its environment needs uv, and Python 3.11 or older.
METAGPT = (
    "metagpt==0.8.2",
    "chardet",  # it imports this without asking for it
    *("--overrides", str(Path(__file__).parents[1] / "tests/environments/metagpt-0.8.overrides")),
)
OTEL = ("opentelemetry-sdk",)


@dataclass(frozen=True)
class Peer:
    """A tool, the packages that it adds, and how it is switched on.

    Attributes:
        name: in the table.
        packages: beside the framework's.
        instrument: switches it on.
        first: modules to import before it is switched on, for tools that need this order.
        own: whether it is the framework's own telemetry, which the program has to ask for.
    """

    name: str
    packages: tuple[str, ...]
    instrument: Callable[[Any], None]
    first: tuple[str, ...] = ()
    own: bool = False

    def switch_on(self, provider: Any) -> None:
        """Instrument this process, with content capture on.

        Args:
            provider: receives the spans; it is made the global one.
        """
        from opentelemetry import trace

        os.environ.update(
            TRACELOOP_TRACE_CONTENT="true",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        )
        trace.set_tracer_provider(provider)
        for module in self.first:
            import_module(module)
        self.instrument(provider)


def peer(framework: str, name: str) -> Peer:
    """Return the entry of `PEERS` with this name.

    Raises:
        KeyError: there is none.
    """
    return {entry.name: entry for entry in PEERS[framework]}[name]


def _mast_trace(provider: Any) -> None:
    import mast_trace

    mast_trace.instrument(tracer_provider=provider)


def _openinference_langchain(provider: Any) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def _openinference_crewai(provider: Any) -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openinference_crewai_listener(provider: Any) -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider, use_event_listener=True)


def _openinference_ag2(provider: Any) -> None:
    from openinference.instrumentation.ag2 import AG2Instrumentor

    AG2Instrumentor().instrument(tracer_provider=provider)


def _openinference_ag2_and_openai(provider: Any) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    _openinference_ag2(provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openllmetry_langchain(provider: Any) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)


def _openllmetry_crewai(provider: Any) -> None:
    from opentelemetry.instrumentation.crewai import CrewAIInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openlit(_provider: Any) -> None:
    import openlit

    # Prices from a file: it would ask the internet for them.
    prices = Path(tempfile.mkdtemp()) / "prices.json"
    prices.write_text('{"chat": {}}')
    openlit.init(capture_message_content=True, disable_metrics=True, pricing_json=str(prices))


def _agentops(provider: Any) -> None:
    import agentops
    from agentops.sdk.core import tracer

    agentops.init(api_key="00000000-0000-0000-0000-000000000000", auto_start_session=False)
    # It keeps a provider of its own.
    tracer.provider.add_span_processor(provider._active_span_processor)


def _own(_provider: Any) -> None:
    """The framework's own telemetry, which the program switches on."""


PEERS: dict[str, tuple[Peer, ...]] = {
    "langgraph": (
        Peer("mast-trace", OTEL, _mast_trace),
        Peer(
            "openinference",
            ("openinference-instrumentation-langchain==0.1.80",),
            _openinference_langchain,
        ),
        Peer(
            "openllmetry",
            ("opentelemetry-instrumentation-langchain==0.62.4",),
            _openllmetry_langchain,
        ),
        Peer("openlit", ("openlit==1.45.0",), _openlit),
        Peer("agentops", ("agentops==0.4.21",), _agentops),
    ),
    "crewai": (
        Peer("mast-trace", OTEL, _mast_trace),
        Peer(
            "openinference",
            (
                "openinference-instrumentation-crewai==1.1.21",
                "openinference-instrumentation-openai==0.1.66",
            ),
            _openinference_crewai,
        ),
        Peer(
            "openinference, listener",
            ("openinference-instrumentation-crewai==1.1.21",),
            _openinference_crewai_listener,
        ),
        Peer(
            "openllmetry",
            (
                "opentelemetry-instrumentation-crewai==0.62.4",
                "opentelemetry-instrumentation-openai==0.62.4",
            ),
            _openllmetry_crewai,
        ),
        Peer("openlit", ("openlit==1.45.0",), _openlit),
        Peer("agentops", ("agentops==0.4.21",), _agentops, first=("crewai",)),
        Peer("own", OTEL, _own, own=True),
    ),
    "ag2": (Peer("mast-trace", OTEL, _mast_trace), Peer("own", OTEL, _own, own=True)),
    "autogen": (
        Peer("mast-trace", OTEL, _mast_trace),
        Peer("openinference", ("openinference-instrumentation-ag2==0.1.12",), _openinference_ag2),
        Peer(
            "openinference, with OpenAI's",
            (
                "openinference-instrumentation-ag2==0.1.12",
                "openinference-instrumentation-openai==0.1.66",
            ),
            _openinference_ag2_and_openai,
        ),
        Peer("openlit", ("openlit==1.45.0",), _openlit),
        Peer("agentops", ("agentops==0.4.21",), _agentops, first=("autogen",)),
        Peer("own", OTEL, _own, own=True),
    ),
    "metagpt": (Peer("mast-trace", OTEL, _mast_trace),),
}
FRAMEWORKS = {
    "langgraph": LANGGRAPH,
    "crewai": CREWAI,
    "ag2": AG2,
    "autogen": AUTOGEN,
    "metagpt": METAGPT,
}
