"""The OpenAI client recorded by us and by others at the same time: each call counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from client_peers import Elsewhere, another_provider, both
from openai_peers import NAMES, instrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.framework("openai")


def ask(options: dict[str, Any], *, stream: bool) -> int:
    """Make a call; return its input tokens."""
    create = openai.OpenAI(**options).chat.completions.create
    asked = [{"role": "user", "content": "Hello"}]
    if not stream:
        return int(create(model="scripted", messages=asked).usage.prompt_tokens)
    chunks = create(
        model="scripted", messages=asked, stream=True, stream_options={"include_usage": True}
    )
    (usage,) = [chunk.usage for chunk in chunks if chunk.usage]
    return int(usage.prompt_tokens)


@pytest.fixture(params=NAMES)
def theirs(request) -> Any:
    return instrumentor(request.param)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """A provider of theirs."""
    with another_provider() as provider:
        yield provider


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", ["ours first", "theirs first"])
@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
def test_each_call_counts_once(
    recorded, options, theirs, elsewhere, order: str, shared: bool, stream: bool
) -> None:
    """One model call with its tokens, in our trace; theirs goes on as it would without us."""
    provider, exporter = (recorded.provider, recorded.exporter) if shared else elsewhere
    with both(recorded, theirs, provider, order):
        telemetry = recorded.instrumentor.telemetry
        run = telemetry.run("work")
        agent = telemetry.agent("worker", parent=run.context)
        with agent.attached():
            tokens = ask(options, stream=stream)
        agent.end()
        run.finish("completed")
    recorded.check_shape()
    trajectory = recorded.trajectory()
    models = [i for i in trajectory.invocations if i.kind == "model"]
    assert [model.agent for model in models] == ["worker"]
    assert trajectory.input_tokens == tokens
    assert len(trajectory.steps) == 1
    own = [s for s in exporter.get_finished_spans() if "mast.framework" not in s.attributes]
    assert len(own) == 1


@pytest.mark.parametrize("order", ["ours first", "theirs first"])
def test_what_is_in_no_run_is_theirs_alone(recorded, options, theirs, order: str) -> None:
    with both(recorded, theirs, recorded.provider, order):
        ask(options, stream=False)
    assert [s.name for s in recorded.all if "mast.framework" in s.attributes] == []
    assert len(recorded.all) == 1
