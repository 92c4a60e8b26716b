# the contract annotates its attributes
"""The Google Gen AI client keeps the facts of every client."""

from __future__ import annotations

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from contract.clients import ClientContract
from test_google_genai_client import WAYS, aask, ask

from mast_trace_instrumentations.google_genai import GoogleGenAIInstrumentor

pytestmark = pytest.mark.framework("google_genai")


class TestContract(ClientContract):
    """Whole or streamed, alone or in a chat."""

    instrumentor = GoogleGenAIInstrumentor
    ways = WAYS
    peer_ways = ("whole", "stream")
    ask = staticmethod(ask)
    aask = staticmethod(aask)
    tokens = len('[{"parts": [{"text": "Hello"}], "role": "user"}]') // 4 + 1
    peers = (("openinference.instrumentation.google_genai", "GoogleGenAIInstrumentor"),)
