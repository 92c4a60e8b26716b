"""`import` stores runs of other programs once, `export` writes runs with verdicts and labels."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from google.protobuf.json_format import MessageToDict
from invented_records import labelled_export
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from pattern_runs import add_run

import mast_trace
from mast_trace.testing import capture_spans
from mast_trace.trajectory import trajectory_from_dict
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.removal import erasure
from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    from conftest import CLI
    from fixture_types import Patch

SAMPLES = Path(__file__).parents[2] / "judge" / "formats" / "samples"
PROJECTS = ("", "one", "two")
_PARTS = {"trace_id", "steps", "invocations", "texts"}
"""All that a part of a long run has, but for the first one."""
CHAT = [
    {"role": "user", "content": "Add 2 and 3."},
    {"role": "assistant", "name": "adder", "content": "It is 6."},
    {"role": "assistant", "name": "checker", "content": "Fine."},
]


def otlp_json(*spans: Any) -> Any:
    """Return spans as an OTLP request in JSON, whose ids are hexadecimal."""
    request = MessageToDict(encode_spans(spans))
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = b64decode(span[name]).hex()
    return request


def _write(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_a_chat_becomes_a_run_once(empty: CLI, tmp_path: Path) -> None:
    file = _write(tmp_path / "chat.json", CHAT)
    first = empty.json("import", file)
    assert first["spans"] == 4
    again = empty.json("import", file)
    assert (again["runs"], again["spans"]) == (first["runs"], 0)
    shown = empty.json("show", first["runs"][0])
    assert shown["task"] == "Add 2 and 3."
    assert [step["agent"] for step in shown["steps"]] == ["user", "adder", "checker"]
    assert [step["text"] for step in shown["steps"]] == [entry["content"] for entry in CHAT]
    assert empty.json("judge", "run", "last")["verdict"]["status"] == "ok"


def test_a_label_is_stored_once(empty: CLI, tmp_path: Path) -> None:
    """One that the store has is not stored anew; one that was changed since then is."""
    shape = json.loads(labelled_export(tmp_path / "own.jsonl", 1).read_text("utf-8"))
    out = _write(tmp_path / "own.jsonl", {**shape, "project": "shop"})
    found = empty.json("import", out)
    assert found["labels"] == 1
    with Store.open(empty.recorded.url) as store:
        (label,) = labels_of(store)
    assert (label.project, label.annotator, label.decisive_step) == ("shop", "ada", 1)
    assert (label.trace_id, label.outcome) == (found["runs"][0], "failure")
    _, told, _ = empty("import", out)
    assert "1 run read, 0 new spans and 0 labels stored. 1 label was there already." in told
    empty("label", found["runs"][0], "--annotator", "ada", "--outcome", "success")
    again = empty.json("import", out)
    assert (again["labels"], again["known_labels"]) == (1, 0)


@pytest.mark.parametrize("kind", ["chat", "OTLP", "export", "label"])
def test_an_erased_run_alone_is_refused(empty: CLI, tmp_path: Path, kind: str) -> None:
    other = [*CHAT[:2], {"role": "assistant", "name": "checker", "content": "No, 5."}]
    if kind == "OTLP":
        spans = []
        for text in "ab":
            with capture_spans(frameworks=[]) as captured, mast_trace.run(f"run {text}"):
                mast_trace.message("a", "b", f"text {text}")
            spans.append(captured.spans)
        files = [_write(tmp_path / f"{n}.json", otlp_json(*each)) for n, each in enumerate(spans)]
        both = _write(tmp_path / "both.json", otlp_json(*spans[0], *spans[1]))
    elif kind == "label":
        both = str(labelled_export(tmp_path / "both.jsonl", 2))
        lines = [json.loads(line) for line in Path(both).read_text("utf-8").splitlines()]
        files = [_write(tmp_path / f"{n}.json", each) for n, each in enumerate(lines)]
    else:
        files = [_write(tmp_path / f"{n}.json", each) for n, each in enumerate((CHAT, other))]
        lines = tmp_path / "both.jsonl"
        lines.write_text("".join(f"{json.dumps(each)}\n" for each in (CHAT, other)))
        both = str(lines)
    ids = [empty.json("import", each)["runs"][0] for each in files]
    if kind == "export":
        assert empty.json("export", "--out", both)["runs"] == 2
    assert ids[0] != ids[1]
    empty.json("erase", ids[0], "--yes")
    status, out, _ = empty("import", both, "--json")
    told = json.loads(out)
    assert (status, told["runs"]) == (1, [ids[1]])
    (refused,) = told["refused"]
    assert f"run {ids[0]} was erased at" in refused["problem"]
    with Store.open(empty.recorded.url) as store:
        for table in ("otel_traces", "mast_human_labels"):
            rows = store.query(f"SELECT DISTINCT TraceId FROM {table}")
            assert ids[0] not in {row["TraceId"] for row in rows}


@pytest.mark.parametrize("kind", ["OTLP", "export"])
def test_an_id_of_another_project_is_another_run(empty: CLI, tmp_path: Path, kind: str) -> None:
    """As a trace has them that goes through programs of several teams: none takes the place of another."""
    if kind == "OTLP":
        with capture_spans(frameworks=[]) as captured, mast_trace.run("run"):
            mast_trace.message("a", "b", "text")
        values = [otlp_json(*captured.spans) for _ in range(3)]
    else:
        values = [json.loads((SAMPLES / "mast-trace.jsonl").read_text("utf-8")) for _ in range(3)]
    for value, project in zip(values, PROJECTS, strict=True):
        if kind == "export":
            value["project"] = project
        elif project:
            named = {"key": "mast.project", "value": {"stringValue": project}}
            value["resourceSpans"][0]["resource"].setdefault("attributes", []).append(named)
    first, whole = _write(tmp_path / "first.json", values[1]), tmp_path / "all.jsonl"
    whole.write_text("".join(f"{json.dumps(each)}\n" for each in values))
    (run,) = empty.json("import", first)["runs"]
    spans = empty.json("import", str(whole))["spans"]

    def stored() -> dict[str, int]:
        with Store.open(empty.recorded.url) as store:
            rows = store.query("SELECT Project, uniqExact(SpanId) AS n FROM otel_traces GROUP BY 1")
        return {row["Project"]: row["n"] for row in rows}

    assert stored() == dict.fromkeys(PROJECTS, spans // 2)
    assert empty.json("import", str(whole), first)["spans"] == 0
    with Store.open(empty.recorded.url) as store:
        erasure.erase(store, *erasure.of_runs(store, [run], project="one"))
    _, out, _ = empty("import", str(whole), "--json")
    assert (json.loads(out)["runs"], json.loads(out)["spans"]) == ([run], 0)
    assert stored() == dict.fromkeys(("", "two"), spans // 2)


def test_half_a_character_is_no_obstacle(empty: CLI, tmp_path: Path) -> None:
    r"""Tools that cut texts write ``\ud83d``, which JSON can hold and UTF-8 cannot."""
    half = "half \ud83d"
    chat = [{"role": "user", "content": half}, {"role": "assistant", "name": half, "content": half}]
    logged = {"history": [{"name": half, "role": "user", "content": half}]}
    for name, value in (("chat.json", chat), ("7.json", logged)):
        (run,) = empty.json("import", _write(tmp_path / name, value))["runs"]
        assert {step["text"] for step in empty.json("show", run)["steps"]} == {"half ?"}


def test_otlp_protobuf_is_stored_as_it_is(empty: CLI, tmp_path: Path) -> None:
    with capture_spans(frameworks=[]) as spans:
        with mast_trace.run("job"), mast_trace.agent("planner"):
            mast_trace.message("planner", "user", "Hello.")
        (tmp_path / "job.pb").write_bytes(encode_spans(spans.spans).SerializeToString())
        (trace_id,) = [each.trace_id for each in spans.trajectories()]
    found = empty.json("import", str(tmp_path / "job.pb"))
    assert (found["runs"], found["spans"], found["labels"]) == ([trace_id], 3, 0)
    (file,) = found["files"]
    assert (file["format"], file["runs"], file["spans"]) == ("OTLP", 1, 3)


def test_otlp_json_is_read_from_one_request_and_from_lines(empty: CLI, tmp_path: Path) -> None:
    with capture_spans(frameworks=[]) as spans:
        for name in ("first", "second"):
            with mast_trace.run(name), mast_trace.agent("planner"):
                mast_trace.message("planner", "user", f"Hello from {name}.")
        requests = [
            otlp_json(each) for each in spans.spans if each.name.startswith("invoke_workflow")
        ]
        (tmp_path / "all.json").write_text(json.dumps(otlp_json(*spans.spans)), encoding="utf-8")
    lines = tmp_path / "lines.jsonl"
    again = [*requests, requests[0]]  # as a sender writes it that was not sure
    lines.write_text("\n".join(map(json.dumps, again)) + "\n", encoding="utf-8")
    from_lines = empty.json("import", str(lines))
    assert (len(from_lines["runs"]), from_lines["spans"]) == (2, 2)
    whole = empty.json("import", str(tmp_path / "all.json"))
    assert set(whole["runs"]) == set(from_lines["runs"])
    assert whole["spans"] == 4  # the roots are there already
    names = {empty.json("show", each)["run"]["Name"] for each in whole["runs"]}
    assert names == {"first", "second"}


BAD = {
    "[{]": "the file ends within the value that begins here",
    "[{]}": "it is no JSON at column 3",
    '{"resourceSpans": [{"scopeSpans": 7}]}': "scopeSpans",
    '{"resourceSpans": []}': "no spans",
    '{"history": []}': "an object with the key history is of no known format",
    '[{"role": "user"}]': "entry 0",
    "[]": "no messages",
    '{"a": 1}': "an object with the key a is of no known format",
    "what is this": "it is no JSON: 'what is this'",
    "": "it is empty",
    None: "No such file",
}
"""Text of a file that cannot be read, or None for a file that is not there -> the reason."""


def test_each_bad_file_is_named_and_strict_stores_nothing(empty: CLI, tmp_path: Path) -> None:
    bad = [tmp_path / f"bad {number}.json" for number in range(len(BAD))]
    for path, text in zip(bad, BAD, strict=True):
        if text is not None:
            path.write_text(text, encoding="utf-8")
    good = _write(tmp_path / "chat.json", CHAT)
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(f'{json.dumps({"messages": CHAT})}\n{{"messages": [\n')
    for path in (bad[0], bad[-1], mixed):
        assert empty("import", "--strict", good, str(path))[0] == 1
    assert empty.json("runs") == []
    status, out, _ = empty("import", "--json", *map(str, bad), good, str(mixed))
    told = json.loads(out)
    assert (status, len(told["runs"])) == (1, 1)
    assert (told["refused"].pop()["line"], told["files"][-1]["runs"]) == (2, 1)
    assert [each["file"] for each in told["refused"]] == list(map(str, bad))
    for refused, reason in zip(told["refused"], BAD.values(), strict=True):
        assert reason in refused["problem"]


def test_runs_are_exported_with_verdict_and_labels(cli: CLI, tmp_path: Path) -> None:
    run, out = cli.recorded.ids["invoices"], tmp_path / "runs.jsonl"
    cli("label", run, "--annotator", "exporter", "--outcome", "failure", "--step", "1")
    assert cli.json("export", "--out", str(out)) == {"file": str(out), "runs": 3}
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    found = {line["trace_id"]: line for line in lines}
    assert set(found) == set(cli.recorded.ids.values())
    steps = trajectory_from_dict(found[run]["trajectory"]).steps
    assert [step.tool for step in steps if step.tool] == ["list_invoices"] * 3
    assert found[run]["verdict"]["candidates"][0]["agent"] == "analyst"
    assert "1.3" in found[run]["verdict"]["examined"]
    assert "exporter" in {label["annotator"] for label in found[run]["labels"]}
    assert found[run]["start"].endswith("+00:00")


def test_parquet_holds_the_same(cli: CLI, tmp_path: Path) -> None:
    parquet, jsonl = tmp_path / "runs.parquet", tmp_path / "runs.jsonl"
    assert cli("export", "--format", "parquet", "--out", str(parquet))[0] == 0
    assert cli("export", "--out", str(jsonl))[0] == 0
    rows = pq.read_table(parquet).to_pylist()
    for row in rows:
        row.update({name: json.loads(row[name]) for name in ("trajectory", "verdict", "labels")})
        assert row.pop("part") == 0
    assert rows == [json.loads(line) for line in jsonl.read_text(encoding="utf-8").splitlines()]


def test_an_export_leaves_out_older_runs(cli: CLI, tmp_path: Path) -> None:
    out = tmp_path / "none.jsonl"
    assert cli.json("export", "--out", str(out), "--since", "2200-01-01")["runs"] == 0
    assert [each.name for each in tmp_path.iterdir()] == ["none.jsonl"]


def test_nothing_takes_the_place_of_a_pipe_or_of_a_link(cli: CLI, tmp_path: Path) -> None:
    """`--out /dev/stdout` would otherwise be a file from then on, where its user may make one."""
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    with ThreadPoolExecutor() as reader:
        came = reader.submit(pipe.read_text, encoding="utf-8")
        runs = cli.json("export", "--out", str(pipe))["runs"]
        assert len(came.result(60).splitlines()) == runs
    assert pipe.is_fifo()
    assert cli.json("export", "--out", str(link))["runs"] == runs
    assert link.is_symlink()
    assert len(file.read_text(encoding="utf-8").splitlines()) == runs
    assert {each.name for each in tmp_path.iterdir()} == {"pipe", "link", "file"}


@pytest.mark.parametrize(("page", "most"), [(1, 4000), (2, 0)], ids=["short", "long"])
def test_an_export_reads_page_by_page(
    empty: CLI, tmp_path: Path, monkeypatch: Patch, page: int, most: int
) -> None:
    """Each run once, with its own steps, also where projects share ids; the rows of a long one have its verdict once."""
    for name, value in (("_PAGE", page), ("MOST_SPANS", most), ("_PART", 1)):
        monkeypatch.setattr(f"mast_trace_judge.transfer.exporting.{name}", value)
    with Store.open(empty.recorded.url) as store:
        given = (("a", 2), ("b", 1), ("b", 2))
        runs = [(p, add_run(store, n, project=p, code="1.3", text=p)) for p, n in given]
    out, one = tmp_path / "runs.jsonl", tmp_path / "one.parquet"
    assert empty.json("export", "--out", str(out))["runs"] == 3
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(line["project"], line["trace_id"]) for line in lines] == runs
    for line in lines:
        assert [step["text"] for step in line["trajectory"]["steps"]] == [line["project"]]
    chosen = ("--project", "a", "--run", runs[0][1], "--format", "parquet")
    assert empty.json("export", "--out", str(one), *chosen)["runs"] == 1
    rows = pq.read_table(one).to_pylist()
    assert {(row["project"], row["trace_id"]) for row in rows} == {runs[0]}
    assert (len(rows) > 1) == (not most)
    heads = [json.loads(row["trajectory"]).keys() - _PARTS for row in rows]
    whole = [(row["verdict"] != "null", bool(head)) for row, head in zip(rows, heads, strict=True)]
    assert whole == [(True, True), *[(False, False)] * (len(rows) - 1)]
