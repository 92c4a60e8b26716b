"""Other tools' instrumentations of the OpenAI client."""

from __future__ import annotations

from typing import Any

import pytest

NAMES = ("openinference", "openllmetry")


def instrumentor(name: str) -> Any:
    """Make the instrumentor of a tool, or skip the test where it is not installed."""
    if name == "openinference":
        pytest.importorskip("openinference.instrumentation.openai", reason="not installed here")
        from openinference.instrumentation.openai import OpenAIInstrumentor
    else:
        pytest.importorskip("opentelemetry.instrumentation.openai", reason="not installed here")
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    return OpenAIInstrumentor()
