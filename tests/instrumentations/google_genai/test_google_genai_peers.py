"""The Google Gen AI client recorded by us and by others at the same time: each call counts once."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from client_peers import ORDERS, another_provider, both, check_counted_once, instrumentor
from recorded_calls import ANSWER, a_run
from test_google_genai_client import ask

pytestmark = pytest.mark.framework("google_genai")


@pytest.fixture
def theirs() -> Any:
    return instrumentor("openinference.instrumentation.google_genai", "GoogleGenAIInstrumentor")


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
def test_each_call_counts_once(recorded, options, server, theirs, order, shared, way) -> None:
    """One model call with its tokens, in our trace; theirs goes on as it would without us."""
    with another_provider() as (provider, exporter):
        used = (recorded.provider, recorded.exporter) if shared else (provider, exporter)
        with both(recorded, theirs, used[0], order), a_run(recorded):
            assert ask(options, way) == ANSWER
        tokens = len('[{"parts": [{"text": "Hello"}], "role": "user"}]') // 4 + 1
        check_counted_once(recorded, tokens)
        own = [s for s in used[1].get_finished_spans() if "mast.framework" not in s.attributes]
        assert len(own) == 1
