"""LiteLLM recorded by us and by others at the same time: each call counts once."""

from __future__ import annotations

from typing import Any

import pytest

litellm = pytest.importorskip("litellm", reason="needs LiteLLM")

from client_peers import ORDERS, another_provider, both, check_counted_once, instrumentor
from recorded_calls import ANSWER, a_run
from test_litellm_calls import asking

pytestmark = pytest.mark.framework("litellm")


@pytest.fixture
def theirs() -> Any:
    return instrumentor("openinference.instrumentation.litellm", "LiteLLMInstrumentor")


def ask(route: dict[str, Any], *, stream: bool) -> str:
    result = litellm.completion(**route, messages=asking(), stream=stream)
    if stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in result if chunk.choices)
    return str(result.choices[0].message.content)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
def test_each_call_counts_once(recorded, routes, theirs, order, shared, stream) -> None:
    """One model call with its tokens, in our trace; theirs goes on as it would without us."""
    with another_provider() as (provider, exporter):
        used = (recorded.provider, recorded.exporter) if shared else (provider, exporter)
        with both(recorded, theirs, used[0], order), a_run(recorded):
            assert ask(routes["anthropic"], stream=stream) == ANSWER
        check_counted_once(recorded, 7)
        own = [s for s in used[1].get_finished_spans() if "mast.framework" not in s.attributes]
        assert len(own) == 1
