"""The teams under ``examples/foreign``: what their frameworks send is stored, read and judged right.

Each framework's own telemetry was recorded from the program as it stands (see ``record.py``), once with
all going well and once with a tool that fails. The recordings go through a collector into a store.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from expected_examples import ANSWER, CALLS, GUESS, STEPS, TASK, TOKENS, told
from record import EXAMPLES, OLDEST
from rich.console import Console
from test_foreign import RECORDED, largest_trace

from mast_trace.trajectory import (
    SpanRecord,
    StepKind,
    Trajectory,
    read_trajectory,
    vocabulary,
)
from mast_trace.trajectory.foreign import translate
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage import Store, migrate, runs
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_dashboards.cli.render import load, run_view
from mast_trace_dashboards.senders import held
from mast_trace_dashboards.web.loaded_run import LoadedRun
from mast_trace_judge.batch import judge_chunk, read_alone
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.local.long_runs import outline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.verdict import Verdict

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "foreign"
SCENARIOS = ("posted", "no-tariff")
NAMES = [f"{name}-{scenario}" for name in EXAMPLES for scenario in SCENARIOS]


def recorded(name: str) -> Path:
    return RECORDED / "examples" / f"{name}.json"


@dataclass(frozen=True)
class Stored:
    """The run of agents of each example, in a store that holds all recordings."""

    store: Store
    summaries: dict[str, RunSummary]
    runs: dict[str, Trajectory]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("examples")
    with Store.open(f"chdb://{folder / 'store'}") as store:
        migrate(store)
        asyncio.run(_send(store, folder))
        found = {name: runs.run_summary(store, sent(name)[0].trace_id) for name in NAMES}
        summaries = {name: summary for name, summary in found.items() if summary}
        assert set(summaries) == set(NAMES)
        read = {name: read_alone(store, summary) for name, summary in summaries.items()}
        yield Stored(store, summaries, read)


def sent(name: str) -> list[SpanRecord]:
    return largest_trace(f"examples/{name}")


async def _send(store: Store, folder: Path) -> None:
    config = CollectorConfig(data_dir=folder / "data", http_port=0, grpc_port=0)
    collector = Collector(config, store)
    await collector.start()
    try:
        async with httpx.AsyncClient(base_url=collector.http_address) as client:
            for path in RECORDED.rglob("*.json"):
                headers = {"content-type": "application/json"}
                body = path.read_bytes()
                answer = await client.post("/v1/traces", content=body, headers=headers)
                assert answer.status_code == 200, answer.text
    finally:
        await collector.stop(drain=True)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def summary(stored: Stored, name: str) -> RunSummary:
    return stored.summaries[name]


@pytest.fixture
def run(stored: Stored, name: str) -> Trajectory:
    return stored.runs[name]


def framework(name: str) -> str:
    return next(known for known in EXAMPLES if name.startswith(known))


def test_every_program_is_recorded() -> None:
    assert {path.stem for path in recorded("x").parent.glob("*.json")} == set(NAMES) == set(STEPS)
    programs = {path.stem.removesuffix("_parcel") for path in PROGRAMS.glob("*_parcel.*")}
    assert programs == {known.replace("-", "_") for known in EXAMPLES}


def test_the_steps_are_what_happened_each_once(name: str, run: Trajectory) -> None:
    assert told(run) == STEPS[name]
    assert tuple(map(str.lower, run.agents)) == ("desk", "shipper")
    assert run.task == TASK
    assert run.final_answer == (ANSWER if name.endswith("posted") else GUESS)
    assert run.finished
    assert run.error is None


@pytest.mark.parametrize("name", OLDEST)
def test_old_releases_are_read_alike(name: str) -> None:
    run = read_trajectory(largest_trace(f"oldest/{name}"))
    steps = [
        (*step[:4], step[4].replace("Handed off", "Handing off"), *step[5:]) for step in told(run)
    ]
    assert steps == STEPS[f"{name}-posted"]
    assert (run.task, run.final_answer) == (TASK, ANSWER)
    assert run.input_tokens
    assert {fact for fact, is_held in held(run).items() if not is_held} == set()


def test_the_calls_of_models_are_counted_once_with_what_they_saw(
    name: str, run: Trajectory, summary: RunSummary
) -> None:
    made = [call for call in run.invocations if call.kind == "model"]
    shown = [run.seen_by(call) for call in made]
    roles = ["".join(message.role[0] for message in given) for given in shown]
    expected = CALLS[framework(name)]
    if name == "smolagents-no-tariff":  # shows what failed, and not the call of it
        expected = [
            (agent, "sut") if at == 3 else (agent, r) for at, (agent, r) in enumerate(expected)
        ]
    assert list(zip([call.agent.lower() for call in made], roles, strict=True)) == expected
    for call, given in zip(made, shown, strict=True):
        assert call.model.endswith("gpt-5-mini")
        assert len(given) == len(call.input_ids)
        assert all(message.content for message in given if message.role != "assistant")
    assert (run.input_tokens, run.output_tokens) == (summary.input_tokens, summary.output_tokens)
    if name.endswith("posted"):
        assert (run.input_tokens, run.output_tokens) == TOKENS[framework(name)]


def test_the_turns_are_those_of_the_agents(name: str, run: Trajectory) -> None:
    turns = [call.agent.lower() for call in run.invocations if call.kind == "agent"]
    assert list(dict.fromkeys(turns)) == ["desk", "shipper"]


@pytest.mark.parametrize(
    "recording", [str(p.relative_to(RECORDED).with_suffix("")) for p in RECORDED.rglob("*.json")]
)
def test_lists_of_runs_name_the_agents_that_the_run_names(stored: Stored, recording: str) -> None:
    spans = largest_trace(recording)
    read = {span.span_id: vocabulary.agent(span.attributes) for span in translate(spans)}
    rows = stored.store.query(
        "SELECT SpanId, AgentName FROM otel_traces WHERE TraceId = {trace:String}",
        {"trace": spans[0].trace_id},
    )
    assert {row["AgentName"] for row in rows if row["SpanId"] in read} == set(read.values())


def test_what_is_stored_reads_as_what_was_sent(name: str, run: Trajectory) -> None:
    assert told(read_trajectory(sent(name))) == told(run)


def test_it_says_which_instrumentation_sent_it(
    name: str, stored: Stored, summary: RunSummary
) -> None:
    run = load(stored.store, summary.trace_id)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(*itertools.islice(run_view(run), 1))
    shown = console.export_text()
    page = LoadedRun(run.row, run.stored, run.verdict).telemetry
    assert page.lacks == ()
    for sender in page.senders:
        assert f" {sender}" in shown
    scopes = {span.scope for span in sent(name) if span.operation}
    assert {sender.partition(" ")[0] for sender in page.senders} == scopes


def test_its_outline_numbers_the_same_steps(
    run: Trajectory, summary: RunSummary, stored: Stored
) -> None:
    """A run that is too long to be read whole is read by its outline."""
    spans = RunSpans(stored.store, summary.trace_id, project=summary.project, page_bytes=2**21)
    outline = outline_of(spans)
    assert list(outline.span_ids) == [step.span_id for step in run.steps]
    assert [outline.actor(n) for n in range(len(outline))] == [step.agent for step in run.steps]
    read = list(outline.steps(range(len(outline)), spans.of))
    assert sorted(read, key=lambda step: step.index) == list(run.steps)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(JudgeConfig())


def judged(judge: Judge, store: Store, run: RunSummary) -> Verdict:
    (found,) = judge_chunk(store, judge, [run])
    assert found.error is None
    assert found.verdict is not None
    return found.verdict


@pytest.mark.parametrize("outcome", ["", "success"])
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("posted")])
def test_the_judge_finds_nothing_in_a_healthy_run(
    outcome: str, judge: Judge, stored: Stored, summary: RunSummary
) -> None:
    verdict = judged(judge, stored.store, dataclasses.replace(summary, outcome=outcome))
    assert verdict.status == "ok"
    assert [mode for mode in verdict.modes if mode.probability >= 0.5] == []
    assert verdict.decisive is None


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("no-tariff")])
def test_the_judge_sees_whose_tool_failed(
    judge: Judge,
    stored: Stored,
    summary: RunSummary,
    run: Trajectory,
) -> None:
    (failed,) = (step for step in run.steps if step.error)
    assert failed.kind is StepKind.TOOL
    verdict = judged(judge, stored.store, dataclasses.replace(summary, outcome="failure"))
    first = verdict.candidates[0]
    assert (first.step, first.agent.lower()) == (failed.index, "shipper")
    assert first.rule == "the first failed tool run, or the act before it"


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("posted")])
def test_a_run_of_ours_around_it_changes_nothing_but_the_name(name: str, run: Trajectory) -> None:
    """As `mast_trace.run` gives with the framework's own provider."""
    around = SpanRecord(
        *(run.trace_id, "f" * 16, "", "invoke_workflow ours", run.start - 1, run.end + 1),
        {"gen_ai.operation.name": "invoke_workflow", "mast.run.outcome": "success"},
        scope="mast_trace",
    )
    below = [
        span if span.parent_span_id else dataclasses.replace(span, parent_span_id=around.span_id)
        for span in sent(name)
    ]
    whole = read_trajectory([around, *below])
    assert told(whole) == told(run)
    assert (whole.task, whole.outcome) == (TASK, "success")
