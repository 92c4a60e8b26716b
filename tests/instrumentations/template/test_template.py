"""The template that newcomers copy works as it stands, and their copy does."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from instrumentations.template import toyteam
from recorded_spans import recording

from mast_trace_instrumentations.template import ToyTeamInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

TREE = """\
invoke_workflow toy team
  invoke_agent first
    execute_tool add
    chat toy-1
  send_message first
  invoke_agent second
    execute_tool add
    chat toy-1"""
HERE = Path(__file__).parent
INSTRUMENTATIONS = HERE.parents[2] / "instrumentations" / "mast_trace_instrumentations"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedSpans]:
    """The spans of ToyTeam programs."""
    monkeypatch.setitem(sys.modules, "toyteam", toyteam)
    with recording(ToyTeamInstrumentor()) as recorded:
        assert recorded.instrumentor.state.missing == []
        yield recorded


async def test_a_run_is_recorded_whole(spans: RecordedSpans) -> None:
    """One span for each run, turn, message, tool call and model call, under its parent."""
    assert await toyteam.Team().run("task") == "answer to answer to task (2) (2)"
    assert spans.tree() == TREE
    assert spans.trajectory().termination_reason == "completed"


async def test_a_stream_is_recorded_the_same(spans: RecordedSpans) -> None:
    """Asynchronous generators take the same kind of row."""
    heard = [text async for text in toyteam.Team().stream("task")]
    assert heard == ["answer to task (2)", "answer to answer to task (2) (2)"]
    assert spans.tree() == TREE


async def test_a_stream_that_is_left_early_was_cancelled(spans: RecordedSpans) -> None:
    """A consumer that leaves a stream early has cancelled the run; it has not failed."""
    stream = toyteam.Team().stream("task")
    assert await anext(stream) == "answer to task (2)"
    await stream.aclose()
    assert spans.trajectory().termination_reason == "cancelled"
    assert spans.named("invoke_workflow")[0].status.is_ok


async def test_a_task_that_is_cancelled_was_cancelled(spans: RecordedSpans) -> None:
    """Somebody stopped the run; it has not failed by itself."""
    waiting = asyncio.Event()

    class Slow(toyteam.Model):
        async def complete(self, messages: list[dict[str, str]]) -> dict[str, Any]:
            waiting.set()
            await asyncio.Event().wait()
            raise AssertionError

    team = toyteam.Team()
    team.first.model = Slow()
    task = asyncio.create_task(team.run("task"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert spans.trajectory().termination_reason == "cancelled"


def test_a_copy_of_it_works(tmp_path: Path) -> None:
    """The recipe: copy the folder, put the names of the framework in."""
    copy = tmp_path / "mast_trace_instrumentations"
    shutil.copytree(INSTRUMENTATIONS, copy)
    shutil.copytree(copy / "template", copy / "newteam")
    for file in (copy / "newteam").glob("*.py"):
        text = file.read_text()
        text = text.replace(
            "mast_trace_instrumentations.template", "mast_trace_instrumentations.newteam"
        )
        file.write_text(text.replace("ToyTeam", "NewTeam").replace("toyteam", "newteam"))
    shutil.copy(HERE / "toyteam.py", tmp_path / "newteam.py")
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "execute_tool newteam",
        "chat newteam",
        "invoke_agent newteam",
        "send_message newteam",
        "execute_tool newteam",
        "chat newteam",
        "invoke_agent newteam",
        "invoke_workflow newteam",
    ]


PROGRAM = """
import asyncio

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mast_trace import semconv
from mast_trace_instrumentations.newteam import NewTeamInstrumentor

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
NewTeamInstrumentor().instrument(provider)

import newteam

asyncio.run(newteam.Team().run("task"))
for span in exporter.get_finished_spans():
    print(span.attributes[semconv.OPERATION_NAME], span.attributes[semconv.FRAMEWORK])
"""
