"""Files that are broken, hostile or unusual: each gives runs, or says what is wrong and where."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge.formats.read_files import CHAT, LINE, OTHER, read

from mast_trace_judge.transfer.formats import FORMATS, format_of_messages, format_of_record
from mast_trace_judge.transfer.formats.kinds import StoredRun, Transcript, nanoseconds_of
from mast_trace_judge.transfer.json_values import Value, rows_of, values_of
from mast_trace_judge.transfer.reading import Piece, files_in
from mast_trace_judge.transfer.spans import to_request, to_spans

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLES = Path(__file__).parent / "samples"


def texts_of(pieces: Iterable[Piece]) -> list[list[str]]:
    return [
        [step.text for step in piece.read.trajectory.steps]
        for piece in pieces
        if isinstance(piece.read, Transcript)
    ]


# -- forms of files
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        LINE.encode(),
        codecs.BOM_UTF8 + LINE.encode(),
        LINE.encode("utf-16"),
        LINE.encode("utf-16-le"),
        LINE.encode("utf-16-be"),
        LINE.encode("utf-32"),
        LINE.replace(" ", "\r\n").encode(),
        b"\n\n  " + LINE.encode() + b"\r\n\r\n",
        gzip.compress(LINE.encode()),
        zstandard.compress(LINE.encode()),
        gzip.compress(codecs.BOM_UTF8 + LINE.encode()),
    ],
    ids=lambda data: data[:4].hex(),
)
def test_compression_encoding_and_line_ends_do_not_matter(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "chat").write_bytes(data)
    pieces, refused = read(tmp_path / "chat")
    assert (texts_of(pieces), refused) == ([["Häufig?", "Yes."]], [])


def test_a_pipe_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as writer:
        writer.submit((tmp_path / "pipe").write_text, LINE, "utf-8")
        assert texts_of(read(tmp_path / "pipe")[0]) == [["Häufig?", "Yes."]]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (f"{LINE}\n{OTHER}\n", 2),
        (f"{LINE}{OTHER}", 2),
        (json.dumps([json.loads(LINE), json.loads(OTHER)]), 2),
        (json.dumps([json.loads(LINE), json.loads(OTHER)], indent=2), 2),
        (f"[\n{LINE},\n{OTHER}\n]", 2),
        (json.dumps(json.loads(LINE), indent=2) + json.dumps(json.loads(OTHER), indent=4), 2),
        (json.dumps([CHAT, CHAT[:1]]), 2),
        (json.dumps({"data": [json.loads(LINE)], "meta": {}}), 1),
        ("\n".join(map(json.dumps, CHAT)), 1),
        ("\n".join(json.dumps(each, indent=1) for each in CHAT), 1),
    ],
)
def test_values_may_stand_on_lines_or_in_lists(tmp_path: Path, text: str, runs: int) -> None:
    (tmp_path / "chat.json").write_text(text, encoding="utf-8")
    pieces, refused = read(tmp_path / "chat.json")
    assert (len(pieces), refused) == (runs, [])
    assert texts_of(pieces)[0] == ["Häufig?", "Yes."]


def test_what_a_program_printed_in_between_is_named(tmp_path: Path) -> None:
    """The console exporter shares its output with the program."""
    printed = (SAMPLES / "otel-console.txt").read_text("utf-8").replace("\n{\n", "\nhello\n{\n", 1)
    begin = "[2026-11-24 10:00] Starting {\n\x1b[31m[INFO] red {\n"
    (tmp_path / "out.txt").write_text(begin + printed + "{\n  'cut': [\n", encoding="utf-8")
    pieces, refused = read(tmp_path / "out.txt")
    assert len(pieces) == 4
    assert [each.split(": ", 1)[1] for each in refused] == [
        "it is no JSON: '[2026-11-24 10:00] Starting {'",
        "it is no JSON: '\\x1b[31m[INFO] red {'",
        "it is no JSON: 'hello'",
        "the file ends within the value that begins here",
    ]


# -- broken values
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ('{"messages": [', "it is no JSON at column 15: it ends there"),
        ('{"messages": "cut', "it is no JSON"),
        ("plain text", "it is no JSON: 'plain text'"),
        ("42", "it is neither an object nor a list: '42'"),
        ("null", "it is neither an object nor a list: 'null'"),
        ('"said"', "it is neither an object nor a list: '\"said\"'"),
        ("{}", "an empty object is of no known format"),
        ('{"a": 1, "b": 2}', "an object with the keys a, b is of no known format"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice in one object"),
        ("[" * 10**6, "it nests too deeply"),
        ("[" * 200 + "]" * 200, "it nests too deeply"),
        ('{"a":' * 300 + "1" + "}" * 300, "it nests too deeply"),
        (json.dumps({"n": 1}).replace("1", "9" * 5000), "thousands of digits"),
        ('{"messages": [{"role": "user", "content": "a"}, 7]}', "entry 1 is no message: expected"),
        ('{"messages": [{"role": "user"}]}', "entry 0 is no message: it has no content"),
        ('{"messages": [{"role": "x", "content": "a"}]}', "no known format"),
        ('{"messages": []}', "no known format"),
        ("[]", "it holds no messages"),
        ('{"history": 7}', "an object with the key history is of no known format"),
        (('{"history": [{"role": "human", "content": "a"}, {"role": "Lead (-> Web)", "content": "b"}]}'),
         "entry 1 is no message: its role is 'Lead (-> Web)'"),
        ('{"traj": [{"role": "user", "content": "a"}], "reward": 1}', "the keys traj, reward is of no"),
        ('{"data": [{"traceID": "a", "spans": []}]}', "it holds no spans"),
        ('{"id": 1, "run_type": "llm", "start_time": "now"}', "start_time is no time: 'now'"),
        (('{"context": {"trace_id": "0x0", "span_id": "0x1"}, "kind": "SpanKind.X", '
         '"start_time": "2026-01-01"}'), "a span has no trace id"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_others_are_read(tmp_path: Path, bad: str, problem: str) -> None:
    (tmp_path / "runs.jsonl").write_text(f"{LINE}\n{bad}\n{OTHER}\n", encoding="utf-8")
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert len(pieces) == 2
    (problem_text,) = refused
    assert problem_text.startswith(":2: ")
    assert problem in problem_text


@pytest.mark.parametrize("after", ["", "\n", "\r\n\n"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f'{LINE}\n{{"messages": [{{"role": "user" 7}}]}}', ":2: it is no JSON at column 31"),
        (f'{LINE}\n{{"messages": [{{"role": "user"', ":2: it is no JSON at column 30"),
        (f'{LINE}\n\n{{"messages": [', ":3: it is no JSON at column 15"),
        ('{\n\n"messages": [\n7,\n\n"a" 8]}', ":6: it is no JSON at column 5"),
    ],
)
def test_broken_json_has_one_place(tmp_path: Path, text: str, place: str, after: str) -> None:
    """A line that the file has, also where empty lines stand in a value, and its column."""
    (tmp_path / "runs.jsonl").write_text(text + after, encoding="utf-8", newline="")
    _, refused = read(tmp_path / "runs.jsonl")
    assert [each.rpartition(": ")[0] for each in refused] == [place]


def test_a_line_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    line = b'{"messages": [{"role": "user", "content": "\xe9"}]}\n'
    (tmp_path / "runs.jsonl").write_bytes(LINE.encode() + b"\n" + line)
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert (len(pieces), refused) == (1, [":2: it is no UTF-8"])


@pytest.mark.parametrize("begin", ['{"messages": [', '{"messages": [{"role": "us', "{"])
def test_a_broken_first_line_takes_no_other_along(tmp_path: Path, begin: str) -> None:
    (tmp_path / "runs.jsonl").write_text(f"{begin}\n{LINE}\n{OTHER}\n", encoding="utf-8")
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert len(pieces) == 2
    assert [problem_text[:4] for problem_text in refused] == [":1: "]


def test_one_bad_message_among_lines_is_named(tmp_path: Path) -> None:
    lines = [*map(json.dumps, CHAT), '{"role": "assistant"}', json.dumps(CHAT[0])]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pieces, refused = read(tmp_path / "chat.jsonl")
    assert texts_of(pieces) == [["Häufig?", "Yes.", "Häufig?"]]
    (problem_text,) = refused
    assert problem_text == ":3: no message of chat messages that can be read: it has no content"


def test_numbers_that_json_lacks_are_texts(tmp_path: Path) -> None:
    call = '{"name": "add", "arguments": {"a": NaN, "b": -Infinity}}'
    asks = '{"role": "assistant", "content": null, "tool_calls": [{"function": ' + call + "}]}"
    (tmp_path / "chat.json").write_text(f"[{json.dumps(CHAT[0])}, {asks}]", encoding="utf-8")
    (piece,), refused = read(tmp_path / "chat.json")
    assert refused == []
    assert isinstance(piece.read, Transcript)
    assert "NaN" in piece.read.trajectory.steps[1].arguments


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("empty", b"", "it is empty"),
        ("space", b" \n\n", "it holds no runs"),
        ("cut.gz", gzip.compress(LINE.encode() * 999)[:-4], "its compression is broken"),
        ("cut.zst", zstandard.compress(LINE.encode() * 999)[:-9], "its compression is broken"),
        ("bad.gz", b"\x1f\x8b" + b"\0" * 30, "its compression is broken"),
        ("bad.parquet", b"PAR1" + b"\0" * 30, "the Parquet file cannot be read"),
        ("bytes", bytes(range(256)), "binary data, which no trace format reads"),
        ("zip", b"PK\x03\x04" + b"\0" * 30, "the archive cannot be read"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, data: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(data)
    pieces, refused = read(tmp_path / name)
    assert texts_of(pieces) in ([], [["Häufig?", "Yes."]] * 998)
    assert any(problem in problem_text for problem_text in refused)


_OF_A_PARSER = re.compile(
    r"Expecting|Unterminated|delimiter|literal for|DecodeError|Traceback|protobuf|codec|0x[0-9a-f]+"
)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        *(
            (data, "which no trace format reads")
            for data in (b"\0" * 3000, b"\x7fELF\0", b"%PDF-1.7\n\0", b"\x80\x04\x95}\x94.")
        ),
        *(
            (data, "it is text without any JSON (3 lines)")
            for data in (
                b"[tool]\nname = 'x'\n[other]\n",
                b"[2026-01-01 10:00:00] INFO\n" * 3,
                b"2026-01-01 INFO {'a': 1}\n" * 3,
                b"{'role': 'user'}\n" * 3,
                "a\nb\nc\n".encode("utf-16"),
            )
        ),
        (b"\n<!DOCTYPE html>\n<p>\n</p>", "it is a page in HTML, which no trace format reads"),
        (b"<?xml version='1.0'?>\n<a/>", "it is XML"),
        (b"a: 1\nb:\n  - c\n", "it is YAML (3 lines)"),
        (b"messages:\n  - role: a\n", "it is YAML (2 lines)"),
        (b'data: {"a": 1}\n\ndata: [DONE]\n', "it is text without any JSON (2 lines)"),
        (b'{"messages": []}', "chat messages, but its `messages` hold none"),
        (b'{"a": ' + b"9" * 5000 + b"}", ":1: a number in it has thousands of digits"),
        (b"id,name\n1,a\n2,b\n", "it is a table with the columns id, name, which no trace format has"),
        (b"id\ttype\tstartTime\nx\ty\tz\n", "Langfuse traces and observations, but it lacks traceId"),
        (b'[{"id": "o", "type": "TOOL", "trace_id": "t", "start_time": ""}]', "Langfuse traces and observations, but it lacks startTime"),
        (b'[{"id": "o", "type": "llm", "trace_id": "t", "input": "a"}]', "Opik spans, but it lacks start_time"),
        (b'[{"type": "TOOL", "traceId": "t", "startTime": "2026-03-04T10:00:00Z"}]', "it lacks 'id'"),
        (b'{"a": 1}\n{"b": 2}\n', "an object with the key a is of no known format"),
        (b'{"data": [{"a": 1}], "error": null}', "a list of objects with the key a"),
        (b'{"resourceLogs": []}\n' * 3, "it holds logs of OTLP"),
        (b'{"spanId": "a", "spanType": "LLM", "traceId": "b"}', "Laminar, and is nearest to OTLP"),
        (b'{"custom_id": "a", "response": {"body": {}}}', "model's API, but it lacks request"),
        (b'{"request": {"input": "a"}, "response": {"output": []}}', "with `messages`, and `response` with"),
        (b'{"request": {"contents": []}, "response": {"candidates": []}}', "lacks what tells that: `request`"),
        (b"# aider\n#### fix it\nDone.\n", "chat messages, but it lacks role, content; spans"),
        (b'{"prompt": "a", "completion": "b"}', "chat messages, but it lacks role, content"),
        (b'{"data": {"sessionId": "s"}, "id": "e"}', "an object with the keys data, id"),
        (b'[{"role": "user", "content": "Hi"},{"role": "ass', "has no end"),
        (b'{"a": 1, "b" 2}', "it is no JSON at column 14: '2}'"),
        (b'{"a": nil}', "it is no JSON at column 7: 'nil}'"),
        (b"x" * 3_000_000, "it is no JSON: 'xxxx"),
        (b"42", "it is neither an object nor a list"),
        (b'[{"id": "r", "run_type": "llm"}]', "LangSmith runs, but it lacks start_time"),
        (b'{"eval": {}, "status": "success"}', "inspect_ai log, but it lacks samples"),
        (b'{"resourceSpans": 7}', "resourceSpans must be an array"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"kind": "x"}]}]}]}', "'x' is no integer"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}', "an id is neither"),
    ],
    ids=lambda value: repr(value[:20]),
)  # fmt: skip
def test_a_strange_file_is_explained_once_in_words_of_ours(
    tmp_path: Path, data: bytes, told: str
) -> None:
    (tmp_path / "strange").write_bytes(data)
    pieces, (problem,) = read(tmp_path / "strange")
    assert (pieces, told in problem, _OF_A_PARSER.search(problem)) == ([], True, None)


def test_the_rows_of_parquet_are_numbered_from_one(tmp_path: Path) -> None:
    """Also over several groups of rows that are decoded at a time."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    texts = [None if number % 3 else f"é{number}" for number in range(130)]
    pq.write_table(pa.table({"t": texts, "n": range(130)}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        rows = [each for each in rows_of(file) if isinstance(each, Value)]
    assert [(each.line, each.value) for each in rows] == [
        (n + 1, {"n": n} if text is None else {"t": text, "n": n}) for n, text in enumerate(texts)
    ]


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read(SAMPLES / "phoenix.parquet") == (
        [],
        [": Parquet needs pyarrow: pip install pyarrow"],
    )


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ({"annotator": "ann", "decisive_step": "1"}, "decisive_step is no whole number"),
        ({"annotator": "ann", "decisive_step": 2**31}, "decisive_step is no step"),
        ({"annotator": "ann", "decisive_step": -1}, "decisive_step is no step"),
        ({"annotator": "ann", "decisive_step": True}, "decisive_step is no whole number"),
        ({"annotator": "ann", "decisive_step": 2**31 - 1, "decisive_steps": [0, 2**31 - 1]}, ""),
        ({"annotator": "ann", "decisive_steps": [2**31]}, "decisive_steps are no steps"),
        ({"annotator": "ann", "decisive_steps": [1, "2"]}, "decisive_steps are no steps"),
        ({"annotator": "ann", "decisive_steps": 3}, "decisive_steps are no steps"),
        ({"annotator": "ann", "note": 7}, "note is no text"),
        ({"annotator": ""}, "needs the name of who gives it"),
        ({"annotator": "ann", "modes": ["9.9"]}, "no failure mode 9.9"),
        ({"annotator": "ann", "modes": [{}]}, "a label cannot be read"),
    ],
)
def test_an_impossible_label_is_named(tmp_path: Path, label: dict[str, Any], problem: str) -> None:
    line = json.loads((SAMPLES / "mast-trace.jsonl").read_text("utf-8"))
    line["labels"] = [{"trace_id": line["trace_id"], **label}]
    (tmp_path / "runs.jsonl").write_text(json.dumps(line), encoding="utf-8")
    pieces, refused = read(tmp_path / "runs.jsonl")
    assert (len(pieces), len(refused)) == (int(not problem), int(bool(problem)))
    assert all(problem in each for each in refused)


# -- any bytes ------------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        """
    2026-01-01T00:00:00Z GENERATION OrchestrationEvent SPAN SpanKind.X TOOL TextMessage
    ToolCallRequestEvent action ai arguments assistant attributes call_id chain child_runs
    content context data events extra from function function_call history human id input inputs
    kind labels lc llm logs message messages metadata modes name observations output outputs
    parent_id processes prompt references resourceSpans role run_type source span_kind
    spans startTime start_time steps system text timestamp tool tool_calls tool_result tool_use
    traceID traceId trace_id trajectory type user value verdict
    LLMCall agent_id ag2_recipient ag2_sender channel_values chat_completions chatdev_heading checkpoint
    checkpoint_id choices message node request response session_id source_name speaker thread_id writes
    Items Role author author_name blocks bubbleId chat_messages contents current_node history info item items
    logRecords mapping message_type model_output parent parts projectHash resourceLogs role_at_backend scopeLogs
    sender state toolCall toolFormerData toolResult tool_call tool_call_result tool_return
    """,
    )
)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _WORDS
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=6),
    max_leaves=25,
)


@st.composite
def _changed_samples(draw: st.DrawFn) -> bytes:
    """A sample with a few of its bytes taken out, put in or replaced."""
    path = draw(st.sampled_from(sorted(SAMPLES.iterdir())))
    data = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(data)


OF_PYTHON = re.compile(r"object (is not|has no)|indices must|unsupported operand|argument must be")


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.binary(max_size=200)
    | _VALUES.map(lambda value: json.dumps(value).encode())
    | st.lists(_VALUES, max_size=4).map(lambda values: "\n".join(map(json.dumps, values)).encode())
    | _changed_samples()
)
def test_any_bytes_give_runs_or_say_why_not(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        pieces, refused = read(Path(file.name))
    assert pieces or refused
    for piece in pieces:
        if isinstance(piece.read, Transcript):
            to_request(piece.read.trajectory, name=piece.read.name, start=10**18)
        elif isinstance(piece.read, StoredRun):
            with suppress(ValueError):  # an id is missing, which is said as well
                to_spans(piece.read)
    assert all(len(problem_text) < 2_000 for problem_text in refused)
    assert [each for each in refused if OF_PYTHON.search(each)] == []


@settings(max_examples=300, deadline=None)
@given(_VALUES)
def test_to_recognise_a_value_never_fails(value: Any) -> None:
    format_of_record(value)
    format_of_messages(value if isinstance(value, list) else [value])
    for row in FORMATS:
        row.record(value)
        row.message(value)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:\\\n a1', max_size=60))
def test_any_text_gives_values_or_says_why_not(text: str) -> None:
    found = list(values_of(io.StringIO(text)))
    assert bool(found) == bool(text.strip())


@pytest.mark.parametrize(
    ("given_time", "nanoseconds"),
    [
        ("2026-11-24T10:00:00.123456789Z", 1_795_514_400_123_456_789),
        ("2026-11-24 10:00:00", 1_795_514_400_000_000_000),
        ("2026-11-24T11:00:00.5+01:00", 1_795_514_400_500_000_000),
        (1_795_514_400, 1_795_514_400_000_000_000),
        (1_795_514_400_123, 1_795_514_400_123_000_000),
        (1_795_514_400_123_456, 1_795_514_400_123_456_000),
        (1_795_514_400_123_456_789, 1_795_514_400_123_456_789),
        ("1795514400", 1_795_514_400_000_000_000),
        # The last second that a column holds; of a larger number the unit is a smaller one.
        (9_223_372_036, 9_223_372_036_000_000_000),
        (10**10, 10**16),
        (10**13 - 1, None),
        (10**13, 10**16),
        (10**16 - 1, None),
        (10**16, 10**16),
        (9_223_372_037, None),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        *((value, None) for value in (None, "", "now", True, [], {}, -5, 10**40, 1e300)),
        (float("nan"), None),
    ],
)
def test_times_are_read_in_every_unit(given_time: Any, nanoseconds: int | None) -> None:
    if nanoseconds is not None:
        assert nanoseconds_of(given_time) == nanoseconds
        return
    with pytest.raises(ValueError, match="start_time is no time"):
        nanoseconds_of(given_time, "start_time")


def test_only_files_that_may_hold_runs_are_taken_from_a_folder(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/c.json.gz", "README.md", "LICENSE", ".hidden.json", "d.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [str(path.relative_to(tmp_path)) for path in files_in(tmp_path)]
    assert found == ["a/c.json.gz", "b.jsonl", "d.parquet"]
