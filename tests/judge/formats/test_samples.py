"""Each tool's file is recognised, and its steps are read exactly.

The samples are of one run: a user asks, an agent calls a tool and answers. `samples/README.md` says
how each was recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from judge.formats.span_records import records_of, value_of
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from mast_trace.trajectory import StepKind, read_trajectory
from mast_trace_judge.transfer.formats import FORMATS, format_named
from mast_trace_judge.transfer.formats.foreign_spans import id_of, put_all
from mast_trace_judge.transfer.formats.kinds import StoredRun, Transcript
from mast_trace_judge.transfer.importing import Taken
from mast_trace_judge.transfer.json_values import Value
from mast_trace_judge.transfer.reading import Piece, Refused, read_source, values_in
from mast_trace_judge.transfer.source import source_of
from mast_trace_judge.transfer.spans import to_request, to_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from mast_trace.trajectory import Step, Trajectory

SAMPLES = Path(__file__).parent / "samples"
QUESTION = "How many blue pens are left?"
ANSWER = "There are 12 blue pens left."
CALL = ("tool", "stock_keeper", "12 in stock", "count_stock", {"item": "blue pen"})
ASKED = ("message", "user", QUESTION)


def _of(agent: str) -> list[tuple[Any, ...]]:
    """Return the steps of the run, whose agent has that name."""
    return [ASKED, (CALL[0], agent, *CALL[2:]), ("message", agent, ANSWER)]


ANONYMOUS = _of("assistant")
SPOKEN = _of("stock_keeper")[1:]
"""Spans say what the user asked as the task, not as a step."""
REPORTED = [*_of("stock_keeper"), ("message", "writer", "Report: 12 blue pens.")]
EXPECTED: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "mast-trace.jsonl": ("mast-trace", _of("stock_keeper")),
    "mast-trace.parquet": ("mast-trace", _of("stock_keeper")),
    "otlp.jsonl": ("otlp", SPOKEN),
    "otel-console.txt": ("otel-console", SPOKEN),
    "jaeger.json": ("jaeger", SPOKEN),
    "phoenix.parquet": ("phoenix", SPOKEN),
    "phoenix.jsonl": ("phoenix", SPOKEN),
    "phoenix-api.json": ("phoenix", SPOKEN),
    # The graph runs tools in a node of its own: they are run for whoever called them.
    "langsmith.jsonl": ("langsmith", [CALL, SPOKEN[1]]),
    "openai-agents.jsonl": ("openai-agents", SPOKEN),
    "openai-calls.jsonl": ("openai-calls", ANONYMOUS),
    "langfuse-api.json": ("langfuse", SPOKEN),
    "langfuse-trace.json": ("langfuse", SPOKEN),
    "magentic.jsonl": (
        "magentic",
        [
            ("message", "UserProxy", QUESTION),
            ("message", "Orchestrator", "Next speaker Counter"),
            ("message", "Orchestrator", "Count the blue pens."),
            ("message", "Counter", ANSWER),
            (
                "tool",
                "WebSurfer",
                "I visited the page.",
                "visit_page",
                {"url": "https://example.com"},
            ),
        ],
    ),
    "autogen.json": (
        "autogen",
        REPORTED,
    ),
    "autogen-messages.jsonl": (
        "autogen",
        REPORTED,
    ),
    "responses.json": ("responses", ANONYMOUS),
    "anthropic.json": ("anthropic", ANONYMOUS),
    "sharegpt.json": ("sharegpt", ANONYMOUS),
    "langchain.json": ("langchain", _of("stock_keeper")),
    "langchain-serialized.json": ("langchain", _of("stock_keeper")),
    "chat.json": ("chat", ANONYMOUS),
    "chat-list.json": ("chat", ANONYMOUS),
    "chat-messages.jsonl": ("chat", ANONYMOUS),
    "chat-finetune.jsonl": ("chat", ANONYMOUS),
    "claude-code.jsonl": (
        "claude-code",
        [
            ASKED,
            ("tool", "claude", ANSWER, "Task", {"subagent_type": "stock_keeper"}),
            ("message", "claude", "Count them."),
            CALL,
            ("message", "claude", ANSWER),
        ],
    ),
    "codex.jsonl": ("codex", _of("codex")),
    # An event of a tool tells nothing of its result.
    "claude-events.json": (
        "claude-code-events",
        [ASKED, ("tool", "stock_keeper", "", *CALL[3:]), SPOKEN[1]],
    ),
    "codex-exec.jsonl": ("codex", _of("codex")[1:]),
    "chatgpt.json": ("chatgpt", ANONYMOUS),
    "browser-use.json": ("browser-use", _of("browser-use")[1:]),
    "metagpt.json": ("metagpt", [ASKED, SPOKEN[1]]),
    "crewai.json": ("crewai", [("message", "crew", QUESTION), SPOKEN[1]]),
    "crewai.txt": ("crewai", [("message", "crew", QUESTION), SPOKEN[1]]),
    "chatdev.log": (
        "chatdev",
        [
            ASKED,
            ("message", "Chief Officer", "Count the pens."),
            ("message", "Stock Keeper", ANSWER),
            ("tool", "ChatDev", "12 in stock", "test", {}),
        ],
    ),
    "autogen-events.jsonl": ("autogen-events", REPORTED),
    "autogen-events.log": ("autogen-events", REPORTED),
    "autogen-console.txt": ("autogen", REPORTED),
    "ag2-logging.db": ("ag2-logging", _of("stock_keeper")),
    "ag2-console.txt": ("ag2-console", _of("stock_keeper")),
    "langgraph.sqlite": ("langgraph", _of("stock_keeper")),
    "google-adk.json": ("google-adk", _of("stock_keeper")),
    "inspect.json": ("inspect", ANONYMOUS),
    "inspect.eval": ("inspect", ANONYMOUS),
    "swe-agent.traj": ("swe-agent", _of("main")),
    "tau-bench.json": ("tau-bench", ANONYMOUS),
    "atif.json": ("atif", _of("stock_keeper")),
    "openhands.json": ("openhands", _of("agent")),
    "tempo.json": ("tempo", SPOKEN),
    "mlflow.json": ("mlflow", SPOKEN),
    "phoenix.csv": ("phoenix", SPOKEN),
    "autogen-state.json": (
        "autogen",
        REPORTED,
    ),
    "weave.jsonl": ("weave", SPOKEN),
    "braintrust.json": ("braintrust", SPOKEN),
    "opik.json": ("opik", _of("")[1:]),
    "zipkin.json": ("zipkin", SPOKEN),
    "pydantic-ai.json": ("pydantic-ai", ANONYMOUS),
    "smolagents.json": ("smolagents", ANONYMOUS),
    "gemini-cli.json": ("gemini-cli", ANONYMOUS),
    "transcript.json": (
        "transcript",
        [("message", "Planner", QUESTION), ("message", "Counter", ANSWER)],
    ),
}
"""File -> its row, and the steps of its first run."""
TASKLESS = {"transcript.json", "codex-exec.jsonl", "browser-use.json"}


def pieces_of(path: Path, row: str = "") -> list[Piece]:
    """Return what a file holds, all of which can be read."""
    with source_of(path) as source:
        found = list(read_source(source, format_named(row) if row else None))
    assert [str(each) for each in found if isinstance(each, Refused)] == []
    return [each for each in found if isinstance(each, Piece)]


def requests_of(pieces: list[Piece]) -> list[ExportTraceServiceRequest]:
    """Return the spans that are stored."""
    requests = []
    for piece in pieces:
        read = piece.read
        if isinstance(read, Transcript):
            requests.append(
                to_request(read.trajectory, name=read.name, start=10**18, model=read.model)
            )
        elif isinstance(read, StoredRun):
            requests.append(to_spans(read))
        else:
            requests.append(read)
    return requests


def trajectories_of(pieces: list[Piece]) -> list[Trajectory]:
    """Return the runs as the store would give them."""
    runs: dict[str, list[Any]] = {}
    for record in records_of(requests_of(pieces)):
        runs.setdefault(record.trace_id, []).append(record)
    return [read_trajectory(spans) for spans in runs.values()]


def brief(step: Step) -> tuple[Any, ...]:
    """Return what a step is, without ids and times."""
    if step.kind is StepKind.TOOL:
        return (
            step.kind.value,
            step.agent,
            step.text,
            step.tool,
            json.loads(step.arguments or "{}"),
        )
    return (step.kind.value, step.agent, step.text)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_taken_for_what_it_is_and_its_steps_are_read_exactly(name: str) -> None:
    """Agents, kinds, texts, tools, arguments and results; the task as well; `--format` changes nothing."""
    row, steps = EXPECTED[name]
    pieces = pieces_of(SAMPLES / name)
    assert {piece.row.name for piece in pieces} == {row}
    runs = trajectories_of(pieces)
    assert [brief(step) for step in runs[0].steps] == steps
    assert runs[0].task == ("" if name in TASKLESS else QUESTION)
    assert [run.steps for run in trajectories_of(pieces_of(SAMPLES / name, row))] == [
        run.steps for run in runs
    ]


def test_every_format_and_every_sample_is_expected() -> None:
    """A new row needs a sample, and a new sample an expectation."""
    assert {row for row, _ in EXPECTED.values()} == {row.name for row in FORMATS}
    files = {path.name for path in SAMPLES.iterdir()} - {"README.md"}
    assert files == set(EXPECTED)


def _claims(value: Any) -> list[str]:
    """Return the rows that recognise a value or any of its messages, the first in the table first."""
    messages = value if isinstance(value, list) else [value]
    return [row.name for row in FORMATS if row.record(value) or any(map(row.message, messages))]


ALSO = {
    "responses.json": {"responses", "chat", "transcript"},
    "anthropic.json": {"anthropic", "chat"},
    "langchain-serialized.json": {"langchain"},
    "chat-list.json": {"chat", "transcript"},
    "swe-agent.traj": {"swe-agent", "chat"},
    "chat-messages.jsonl": {"chat", "transcript"},
    "inspect.json": {"inspect", "chat"},
    "inspect.eval": {"inspect", "chat"},
    "autogen-events.jsonl": {"autogen-events", "openai-calls", "chat"},
    "autogen-events.log": {"autogen-events", "openai-calls", "chat"},
}
"""Samples that more general rows further down claim as well."""


LOOKALIKES: list[Any] = [
    {
        "session": "s",
        "history": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}],
    },
    {"model": "m", "info": {"a": 1}, "history": [{"role": "user", "content": "Hi"}]},
    {"is_correct": False, "mistake_step": "1", "history": [{"role": "user", "content": "Hi"}]},
    {"eval": "x", "status": "ok", "messages": [{"role": "user", "content": "Hi"}]},
    {"events": [], "app": "x", "messages": [{"role": "user", "content": "Hi"}]},
    {"reward": 0.0, "messages": [{"role": "user", "content": "Hi"}]},
    {"steps": [1], "messages": [{"role": "user", "content": "Hi"}]},
    {"type": "user", "role": "user", "content": "Hi", "timestamp": "2026-01-01"},
    {"id": "1", "source": "web", "timestamp": "2026-01-01", "role": "user", "content": "Hi"},
    {"mapping": {"a": "b"}, "current_node": "a", "messages": [{"role": "user", "content": "Hi"}]},
    {"history": [{"role": "user", "content": "Hi", "result": [], "state": {}}]},
    {"info": {"role": "build"}, "parts": [], "messages": [{"role": "user", "content": "Hi"}]},
    {"bubbleId": "b", "type": 2, "text": "No", "role": "user", "content": "Hi"},
    {"sender": "assistant", "text": "No", "role": "user", "content": "Hi"},
    {"type": "item.completed", "role": "user", "content": "Hi"},
    {"resourceLogs": [], "messages": [{"role": "user", "content": "Hi"}]},
    {
        "projectHash": "h",
        "startTime": "2026-01-01",
        "messages": [{"role": "user", "content": "Hi"}],
    },
    {"role": "user", "content": "Hi", "items": [{"type": "tool_call", "name": "t"}]},
]
"""Chats with keys of other formats beside them."""


@pytest.mark.parametrize("value", LOOKALIKES, ids=",".join)
def test_a_chat_with_keys_of_other_formats_is_a_chat_without_an_outcome(
    value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    pieces = pieces_of(file)
    assert [piece.row.name for piece in pieces] == ["chat"]
    (run,) = trajectories_of(pieces)
    assert (run.outcome, run.steps[0].text) == ("", "Hi")


@pytest.mark.parametrize("name", EXPECTED)
def test_only_more_general_rows_claim_a_sample_too(name: str) -> None:
    """Logs in plain text are told by their beginning, and no other row takes such a beginning for its own."""
    own = EXPECTED[name][0]
    with source_of(SAMPLES / name) as source, source.opened() as data:
        logged, given = values_in(data)
        values = [each.value for each in given or () if isinstance(each, Value)]
    assert logged is None or logged.name == own
    rows = [claims for value in values for claims in _claimed(value)]
    assert own in {claims[0] for claims in rows}
    assert {claim for claims in rows for claim in claims} <= ALSO.get(name, {own})


def _claimed(value: Any) -> Iterator[list[str]]:
    """Yield the rows that claim a value; of what an API's answer lists, those of each item."""
    if isinstance(value, list):
        listed: Any = None if _claims(value) else value
    else:
        keys = (
            ("data", "samples", "content", "events") if not _claims(value) else ("data", "samples")
        )
        listed = next((value[key] for key in keys if key in value), None)
    yield from (_claims(each) for each in (listed if isinstance(listed, list) else [value]))


READINGS = (Path(__file__).parent / "readings.jsonl").read_text("utf-8").splitlines()
"""Values on both sides of what decides: a tool has failed or not, what is no outcome."""


@pytest.mark.parametrize("line", READINGS, ids=lambda line: json.loads(line)["format"])
def test_failures_outcomes_and_places_are_read_on_both_sides(line: str) -> None:
    """The verdict follows from them: a failure that is lost makes a run look sound."""
    told = json.loads(line)
    row = format_named(told.pop("format"))
    value = told.pop("value")
    if "refused" in told:
        with pytest.raises(ValueError, match=told["refused"]):
            list(row.read(value, "n"))
        return
    pieces = [Piece(row, each) for each in row.read(value, "n")]
    (run,) = trajectories_of(pieces)
    found: dict[str, Any] = {"outcome": run.outcome}
    if "error" in told:
        (found["error"],) = [step.error for step in run.steps if step.tool == "t"]
    if "arguments" in told:
        (found["arguments"],) = [step.arguments for step in run.steps if step.tool == "t"]
    if "span" in told:
        ((span, *_),) = [list(records_of([piece.read])) for piece in pieces]
        found["span"] = span.name
    assert found | told == found


def facts_of(path: Path) -> dict[str, Any]:
    """Return what a reader learns of the first run of a file, and the number of values that nothing could read."""
    with source_of(path) as source:
        found = list(read_source(source))
    pieces = [each for each in found if isinstance(each, Piece)]
    run, taken = trajectories_of(pieces)[0], Taken("")
    for request in requests_of(pieces):
        taken.count(request)
    tools = [step for step in run.steps if step.kind is StepKind.TOOL]
    return {
        "format": pieces[0].row.name,
        "agents": sorted({step.agent for step in run.steps}),
        "tools": [[step.tool, step.arguments, step.text, step.error is not None] for step in tools],
        "tokens": taken.tokens and [run.input_tokens, run.output_tokens],
        "counted": [taken.tokens, taken.texts],
        "told": [run.task, run.outcome, run.termination_reason],
        "refused": len(found) - len(pieces),
    }


SHAPES = (Path(__file__).parent / "shapes.jsonl").read_text("utf-8").splitlines()
"""Small files in the shapes of other releases and exports than the samples', and what they tell."""


@pytest.mark.parametrize("line", SHAPES, ids=lambda line: json.loads(line)["name"])
def test_every_shape_of_a_format_is_read_whole(line: str, tmp_path: Path) -> None:
    told = json.loads(line)
    file = tmp_path / told["name"]
    written(file, told.pop("content"))
    assert facts_of(file) == {name: value for name, value in told.items() if name != "name"}


def written(file: Path, content: Any) -> None:
    """Write a shape into a file."""
    lines = [content] if isinstance(content, str) else map(json.dumps, content)
    file.write_text("\n".join(lines), encoding="utf-8")


GOLDEN = Path(__file__).with_name("stated.golden.json")
SHOWN = Path(__file__).parents[3] / "build" / "stated"


def test_what_a_file_states_is_kept_and_nothing_else(tmp_path: Path) -> None:
    """Tokens, outcome, the reason for the end, and a hash of all its spans: ids, times and every attribute.

    MAST_TRACE_WRITE_GOLDEN=1 writes the file anew; the spans are then in ``build/stated``, for people to compare.
    """
    files = {name: SAMPLES / name for name in EXPECTED}
    for line in SHAPES:
        told = json.loads(line)
        files[f"shape {told['name']}"] = tmp_path / told["name"]
        written(tmp_path / told["name"], told["content"])
    found = {}
    for name, file in files.items():
        with source_of(file) as source:
            pieces = [each for each in read_source(source) if isinstance(each, Piece)]
        run, requests = trajectories_of(pieces)[0], requests_of(pieces)
        kept = b"".join(each.SerializeToString(deterministic=True) for each in requests)
        found[name] = [
            *(run.input_tokens, run.output_tokens, run.outcome, run.termination_reason),
            hashlib.sha256(kept).hexdigest()[:12],
        ]
        if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
            SHOWN.mkdir(parents=True, exist_ok=True)
            (SHOWN / f"{name}.txt").write_text("\n".join(map(str, requests)), "utf-8")
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
        GOLDEN.write_text(f"{{\n{rows}\n}}\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))


def test_a_total_of_tokens_alone_stays_on_its_span_and_is_never_input() -> None:
    told = {"id": "o", "traceId": "t", "startTime": 1, "type": "GENERATION", "usage": {"total": 70}}
    row = format_named("langfuse")
    ((span,),) = [list(records_of([each])) for each in row.read(told, "n")]
    assert span.attributes["llm.token_count.total"] == 70
    assert not {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} & span.attributes.keys()


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        ("0x" + "AB" * 16, 16, "ab" * 16),
        ("abababab-abab-abab-abab-abababababab", 16, "ab" * 16),
        ("ab" * 8, 16, "00" * 8 + "ab" * 8),
        ("ab" * 8, 8, "ab" * 8),
        ("ab" * 7, 8, None),
        ("ab" * 9, 16, None),
        ("ab" * 17, 16, None),
        ("run-1", 8, None),
    ],
)
def test_an_id_is_kept_or_is_derived_from_its_text(text: str, size: int, found: str | None) -> None:
    derived = hashlib.sha256(text.encode()).hexdigest()[: 2 * size]
    assert id_of(text, size, "id").hex() == (derived if found is None else found)


def test_numbers_that_otlp_cannot_hold_are_texts() -> None:
    span = Span()
    given = {"least": -(2**63), "most": 2**63 - 1, "under": -(2**63) - 1, "over": 2**63}
    put_all(span.attributes, {**given, "truth": True, "none": None})
    values = {each.key: value_of(each.value) for each in span.attributes}
    beyond = {name: str(given[name]) for name in ("under", "over")}
    assert values == {**given, **beyond, "truth": True}


@pytest.mark.parametrize(
    ("times", "begins"),
    [
        ((5, 7, 9), (5_000_000_000, 7_000_000_000, 9_000_000_000)),
        ((5, 5, 3), (5_000_000_000, 5_000_000_001, 5_000_000_002)),
        ((5, None, 9), (5_000_000_000, 5_001_000_000, 9_000_000_000)),
        ((None, 7, 9), (7_000_000_000, 7_000_000_001, 9_000_000_000)),
        ((None, None, "soon"), (1_000_000, 2_000_000, 3_000_000)),
    ],
)
def test_steps_have_their_own_times_where_they_have_one(
    times: tuple[Any, ...], begins: tuple[int, ...]
) -> None:
    """The others follow one another from the time of the import, and none comes before the last."""
    begin = 1_700_000_000
    told = [
        {
            "role": "assistant",
            "content": str(at),
            "timestamp": begin + at if at in range(10) else at,
        }
        for at in times
    ]
    (transcript,) = format_named("chat").read(told, "n")
    assert isinstance(transcript, Transcript)
    request = to_request(transcript.trajectory, name="n", start=begin * 10**9)
    _, *steps = request.resource_spans[0].scope_spans[0].spans
    assert tuple(span.start_time_unix_nano - begin * 10**9 for span in steps) == begins


def test_a_run_without_times_of_messages_begins_when_its_file_says() -> None:
    said = [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}] * 2
    chat = {"messages": said, "created_at": 1_700_000_000}
    told = {
        "id": 1,
        "epoch": 1,
        "input": "Hi",
        "messages": said,
        "started_at": "2023-11-14T22:13:20Z",
    }
    for name, value in (("chat", chat), ("inspect", told), ("chat", {**chat, "created_at": 5})):
        (transcript,) = format_named(name).read(value, "n")
        assert isinstance(transcript, Transcript)
        begun = 0 if value.get("created_at") == 5 else 1_700_000_000 * 10**9
        assert transcript.trajectory.steps[0].start == begun


@pytest.mark.parametrize(
    "sent", [{}, {"gen_ai.operation.name": "chat"}, {"gen_ai.usage.output_tokens": "5"}]
)
def test_langfuses_own_fields_complete_what_the_program_sent(sent: dict[str, str]) -> None:
    """One attribute of the conventions beside them hides neither texts nor the tokens of reasoning."""
    told = {
        "id": "o",
        "traceId": "a" * 32,
        "startTime": "2026-01-01T00:00:01.000Z",
        "type": "GENERATION",
        "name": "chat",
        "model": "m",
        "input": [{"role": "user", "content": QUESTION}],
        "output": {"role": "assistant", "content": ANSWER},
        "usageDetails": {"input": 10, "output": 5, "output_reasoning": 7, "total": 22},
        "metadata": {"attributes": sent},
    }
    row = format_named("langfuse")
    (run,) = trajectories_of([Piece(row, each) for each in row.read(told, "n")])
    assert ([step.text for step in run.steps], run.task) == ([ANSWER], QUESTION)
    assert (run.input_tokens, run.output_tokens, run.invocations[0].model) == (10, 12, "m")
