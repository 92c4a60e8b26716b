"""A store with two judged runs and one that is not, and the command line on it."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from failing_run import failing_run
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from stored_spans import spans_of

import mast_trace
from mast_trace.testing import capture_spans
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.batch import trajectory_of
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.verdicts import save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = {"invoices": "aa01" + "0" * 28, "trip": "aa02" + "0" * 28, "unjudged": "bb03" + "0" * 28}


@dataclass
class Recorded:
    """The folder of the runs, and their ids by name."""

    url: str
    ids: dict[str, str]


@dataclass
class CLI:
    """Runs command lines in this process on the recorded runs, whose engine each would start anew without `kept`."""

    recorded: Recorded
    capture: pytest.CaptureFixture[str]
    kept: ExitStack

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Return exit status, output and errors."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        status = run([*arguments[:end], "--url", self.recorded.url, *arguments[end:]])
        captured = self.capture.readouterr()
        return status, captured.out, captured.err

    def out(self, *arguments: str, status: int = 0) -> str:
        """The output of a command line that ends with this status."""
        ended, out, err = self(*arguments)
        assert ended == status, err
        return out

    def err(self, *arguments: str, status: int) -> str:
        """The errors of a command line that ends with this status, in one line."""
        ended, _, err = self(*arguments)
        assert ended == status, err
        return " ".join(err.split())

    def json(self, *arguments: str) -> Any:
        """Return the output of a command line that succeeds, as JSON."""
        status, out, err = self(*arguments, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    def record(
        self,
        program: Callable[[], None],
        change: Callable[[ExportTraceServiceRequest], None] = lambda _: None,
    ) -> str:
        """Run a program of one run, store and judge that, changed before if so asked, and return its id."""
        with capture_spans(frameworks=[]) as spans:
            program()
            request = encode_spans(spans.spans)
            change(request)
            trace_id = spans.trajectory().trace_id
        with Store.open(self.recorded.url) as store:
            SpanWriter(store).write([request.SerializeToString()], token=trace_id)
            asyncio.run(_judge(store, [trace_id]))
        return trace_id


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Runs that all tests read; a test that changes them takes `own_cli`."""
    return _record(f"chdb://{tmp_path_factory.mktemp('store')}")


@pytest.fixture
def kept() -> Iterator[ExitStack]:
    """Stores that are open during a test; one that opens another folder, or reads by another process, closes them."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def cli(recorded: Recorded, capsys: pytest.CaptureFixture[str], kept: ExitStack) -> CLI:
    kept.enter_context(Store.open(recorded.url))
    return CLI(recorded, capsys, kept)


@pytest.fixture
def own_cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: ExitStack) -> CLI:
    """The command line on runs of one test alone."""
    url = f"chdb://{tmp_path}/store"
    kept.enter_context(Store.open(url))
    return CLI(_record(url), capsys, kept)


@pytest.fixture
def empty(tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: ExitStack) -> CLI:
    """A store without runs."""
    url = f"chdb://{tmp_path / 'store'}"
    migrate(kept.enter_context(Store.open(url)))
    return CLI(Recorded(url, {}), capsys, kept)


@pytest.fixture
def no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which nothing is."""
    monkeypatch.delenv("MAST_TRACE_DATABASE_URL", raising=False)
    monkeypatch.setenv("MAST_TRACE_DATA_DIR", str(tmp_path / "none"))
    return tmp_path / "none"


def _record(url: str) -> Recorded:
    with capture_spans(frameworks=[]) as spans:
        failing_run()
        _good_run()
        _silent_run()
        request = encode_spans(spans.spans)
        recorded_ids = {each.trace_id: each.name for each in spans.trajectories()}
    _rename(request, {id_: IDS[name] for id_, name in recorded_ids.items()})
    with Store.open(url) as store:
        migrate(store)
        SpanWriter(store).write([request.SerializeToString()], token="test")
        asyncio.run(_judge(store, [IDS["invoices"], IDS["trip"]]))
    return Recorded(url, IDS)


def _rename(request: ExportTraceServiceRequest, ids: dict[str, str]) -> None:
    """Give the runs ids that the tests know."""
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                span.trace_id = bytes.fromhex(ids[span.trace_id.hex()])


async def _judge(store: Store, trace_ids: list[str]) -> None:
    judge = Judge(JudgeConfig.load(judge_model=""))
    for trace_id in trace_ids:
        summary = run_summary(store, trace_id)
        assert summary is not None
        trajectory = trajectory_of(summary, spans_of(store, trace_id))
        save(store, [await judge.judge(summary, trajectory)])


def _good_run() -> None:
    with mast_trace.run("trip", input="Book a trip", conversation_id="talk-7"):
        with mast_trace.agent("planner"):
            mast_trace.message("planner", "user", "Booked.")
        mast_trace.record_outcome(True)


def _silent_run() -> None:
    with mast_trace.run("unjudged"), mast_trace.agent("planner"):
        mast_trace.message("planner", "user", "Hello.")
