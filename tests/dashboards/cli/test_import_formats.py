"""`import` of every format into a real store, `show` of what it became, and the way back from `export`."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run as run_line
from mast_trace_judge.store.labels import labels_of
from mast_trace_judge.transfer.formats import FORMATS

if TYPE_CHECKING:
    from conftest import CLI

HERE = Path(__file__).parents[3]
SAMPLES = HERE / "tests" / "judge" / "formats" / "samples"
FILES = sorted(path.name for path in SAMPLES.iterdir() if path.name != "README.md")
QUESTION = "How many blue pens are left?"


def _other(cli: CLI, folder: Path) -> CLI:
    """Return the command line on a second, empty store."""
    cli.kept.close()
    url = f"chdb://{folder / 'other'}"
    with Store.open(url) as store:
        migrate(store)
    return replace(cli, recorded=type(cli.recorded)(url, {}))


def test_every_sample_is_imported_once_and_shown(empty: CLI) -> None:
    files = [str(SAMPLES / name) for name in FILES]
    found = empty.json("import", *files)
    titles = {row.title for row in FORMATS}
    assert {each["format"] for each in found["files"]} == titles
    assert [each["file"] for each in found["files"]] == files
    assert found["refused"] == []
    again = empty.json("import", *files)
    assert (again["runs"], again["spans"]) == (found["runs"], 0)
    listed = {row["TraceId"] for row in empty.json("runs", "--limit", "100")}
    assert listed == set(found["runs"])
    for run in found["runs"]:
        status, out, _ = empty("show", run)
        assert (status, "12 blue pens" in out or "Hello!" in out) == (0, True)


def test_it_is_said_what_a_file_was_taken_for(empty: CLI, tmp_path: Path) -> None:
    chat, jaeger, equal = SAMPLES / "chat-finetune.jsonl", SAMPLES / "jaeger.json", tmp_path / "e"
    equal.write_text(2 * chat.read_text("utf-8").splitlines(keepends=True)[1], encoding="utf-8")
    status, out, err = empty("import", str(chat), str(jaeger), str(equal))
    assert (status, err) == (0, "")
    said, _, listed = out.partition("\n\n")
    assert said.splitlines() == [
        f"read {chat} as chat messages: 2 runs, 5 steps, 1 tool call, no tokens reported",
        f"read {jaeger} as Jaeger traces: 1 run, 4 spans, 1 tool call, 20 tokens",
        f"read {equal} as chat messages: 1 run, 4 steps, no tokens reported (1 equal to another run of the file)",
        "3 runs read, 11 new spans and 0 labels stored.",
        "3 runs judged.",
    ]
    assert "Next: mast-trace show" in listed.splitlines()[-1]


def test_ids_that_begin_alike_are_shown_until_they_differ(empty: CLI, tmp_path: Path) -> None:
    """As other tools give them that count from one: each shown id, and the next command, names one run."""
    at = str(1_700_000_000 * 10**9)
    ids = [f"{number:032x}" for number in (1, 2, 0x20)]
    span = {"spanId": "1" * 16, "name": "chat", "startTimeUnixNano": at, "endTimeUnixNano": at}
    spans = [{**span, "traceId": trace_id} for trace_id in ids]
    file = tmp_path / "counted.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    _, out, _ = empty("import", str(file))
    command = out.splitlines()[-1].partition("mast-trace show ")[2]
    assert empty("show", command.split()[0])[0] == 0
    assert sorted(line.split()[0] for line in empty("runs")[1].splitlines()[1:4]) == ids


@pytest.mark.parametrize("inner", ["outer", "other"])
def test_the_tokens_of_a_call_that_two_spans_recorded_are_told_once(
    empty: CLI, tmp_path: Path, inner: str
) -> None:
    """Two tools', or a tool's inside of another of its own."""
    at = str(1_700_000_000 * 10**9)
    call: dict[str, Any] = {"traceId": "a" * 32, "name": "chat"}
    call |= {"startTimeUnixNano": at, "endTimeUnixNano": at}
    told = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "10"}
    call["attributes"] = [{"key": k, "value": {"stringValue": v}} for k, v in told.items()]
    spans = [{**call, "spanId": "1" * 16}, {**call, "spanId": "2" * 16, "parentSpanId": "1" * 16}]
    names = zip(("outer", inner), spans, strict=True)
    scopes = [{"scope": {"name": name}, "spans": [each]} for name, each in names]
    file = tmp_path / "twice.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}))
    ((row,), (run,)) = (empty.json("import", str(file))["files"], empty.json("runs"))
    total = empty.json("cost")["total"]
    assert row["tokens"] == run["InputTokens"] == total["InputTokens"] == 10
    assert (run["Totals"], total["Calls"]) == ("exact", 1)


@pytest.mark.parametrize("place", ["--data-dir", "--url"])
def test_the_first_command_makes_the_store_judges_and_lists(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern names the files; a second import judges nothing again."""
    monkeypatch.delenv("MAST_TRACE_DATABASE_URL", raising=False)
    new = tmp_path / "new"
    where = (place, str(new) if place == "--data-dir" else f"chdb://{new}")

    def told(*arguments: str) -> Any:
        assert run_line([*arguments, *where, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    pattern = str(SAMPLES / "c[ro][ed]*[ix].json*")  # CrewAI's and Codex's
    found = told("import", pattern)
    assert (len(found["runs"]), found["judged"], found["refused"]) == (2, 2, [])
    assert {each["tokens"] for each in found["files"]} == {None, 52}
    assert {row["State"] for row in told("runs")} == {"judged"}
    assert told("import", pattern)["judged"] == 0


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"10:00 INFO started\n10:01 INFO done\n", "text without any JSON (2 lines)"),
        (b'{"id": "r", "run_type": "llm"}', "LangSmith runs, but it lacks start_time"),
        (b"SQLite format 3\x00rest", "a SQLite database"),
    ],
)
def test_a_file_that_nothing_reads_is_explained_once(
    empty: CLI, tmp_path: Path, data: bytes, told: str
) -> None:
    (tmp_path / "file.txt").write_bytes(data)
    status, _, err = empty("import", str(tmp_path / "file.txt"))
    assert (status, told in err, len(err.splitlines())) == (1, True, 1)


def test_standard_input_is_read(empty: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (SAMPLES / "chat-messages.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    (run,) = empty.json("import", "-")["runs"]
    assert empty.json("show", run)["task"] == QUESTION


def test_a_folder_of_files_is_read(empty: CLI, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for name in ("chat.json", "of/autogen.json", "of/otel-console.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((SAMPLES / Path(name).name).read_bytes())
    (folder / "notes.md").write_text("no runs")
    assert len(empty.json("import", str(folder))["runs"]) == 3
    assert len(empty.json("import", str(folder / "**" / "[!n]*"))["files"]) == 3
    (folder / "empty").mkdir()
    assert "it holds no files of runs" in empty.err("import", str(folder / "empty"), status=1)


def test_the_formats_are_listed_and_can_be_named(empty: CLI, tmp_path: Path) -> None:
    out = empty.out("import", "--formats")
    assert [line.split()[0] for line in out.splitlines()] == [row.name for row in FORMATS]
    assert empty.json("import", "--formats")[0]["name"] == FORMATS[0].name
    file = str(SAMPLES / "anthropic.json")
    status, _, err = empty("import", "--format", "jaeger", file)
    assert (status, "no Jaeger traces that can be read" in err) == (1, True)
    assert empty.json("import", "--format", "chat", file)["files"][0]["format"] == "chat messages"


def test_many_refused_lines_are_counted(empty: CLI, tmp_path: Path) -> None:
    other = "".join(json.dumps({f"key{number}": 1}) + "\n" for number in range(49))
    good = '{"messages": [{"role": "user", "content": "Hi"}]}\n'
    (tmp_path / "bad.jsonl").write_text(good + other + "{}\n" * 50)
    status, _, err = empty("import", str(tmp_path / "bad.jsonl"))
    assert status == 1
    assert len(err.splitlines()) == 21
    assert "... and 79 more that cannot be read" in err
    (tmp_path / "bad.jsonl").write_text(good + '{"a": 1}\n' + "{}\n" * 5000)
    err = empty("import", str(tmp_path / "bad.jsonl"))[2]
    assert err.splitlines()[2:] == ["mast-trace: ... and 4,999 more after it likewise"]
    (tmp_path / "bad.jsonl").write_text(other)
    (told,) = empty("import", str(tmp_path / "bad.jsonl"))[2].splitlines()
    assert "(48 more likewise)" in told


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_was_exported_is_imported_as_it_was(cli: CLI, tmp_path: Path, kind: str) -> None:
    """Steps, turns, texts, outcome and labels are equal in the other store, which judges by itself."""
    run = cli.recorded.ids["invoices"]
    cli("label", run, "--annotator", "mover", "--outcome", "failure", "--step", "1")
    out = tmp_path / f"runs.{kind}"
    cli("export", "--format", kind, "--out", str(out))
    other = _other(cli, tmp_path)
    status, printed, err = other("import", str(out))
    assert (status, err) == (0, "")
    assert "as mast-trace export: 3 runs" in printed
    assert "2 verdicts left out: the runs are judged here" in printed
    assert "3 runs read, 0 new spans" in other("import", str(out))[1]
    before, after = (_exported(each, tmp_path) for each in (cli, other))
    assert set(before) == set(after) == set(cli.recorded.ids.values())
    for trace_id, exported in before.items():
        assert after[trace_id]["trajectory"] == exported["trajectory"]
        assert after[trace_id]["labels"] == exported["labels"]
        for name in ("name", "service", "framework", "outcome", "start", "end", "project"):
            assert after[trace_id][name] == exported[name]
        taken = exported["verdict"] and exported["verdict"]["judged_at"]
        assert after[trace_id]["verdict"]["judged_at"] != taken
    # In the store that they come from nothing is new.
    assert cli.json("import", str(out))["spans"] == 0
    with Store.open(cli.recorded.url) as store:
        assert len([each for each in labels_of(store, run) if each.annotator == "mover"]) == 1


def _exported(cli: CLI, folder: Path) -> dict[str, Any]:
    out = folder / "again.jsonl"
    cli("export", "--out", str(out))
    lines = map(json.loads, out.read_text("utf-8").splitlines())
    return {line["trace_id"]: line for line in lines}


@pytest.mark.parametrize(
    "name", ["langsmith.jsonl", "phoenix.parquet", "otlp.jsonl", "autogen.json"]
)
def test_a_run_of_another_tool_goes_the_way_back_too(empty: CLI, tmp_path: Path, name: str) -> None:
    empty.json("import", str(SAMPLES / name))
    first = _exported(empty, tmp_path)
    other = _other(empty, tmp_path)
    other.json("import", str(tmp_path / "again.jsonl"))
    second = _exported(other, tmp_path)
    for trace_id, exported in first.items():
        steps = exported["trajectory"]["steps"]
        assert second[trace_id]["trajectory"]["steps"] == steps
        assert second[trace_id]["trajectory"]["task"] == exported["trajectory"]["task"]
        assert second[trace_id]["outcome"] == exported["outcome"]


def test_the_page_lists_what_is_read() -> None:
    """Rows of the table in docs/how-to/import.md are those of the formats, in their order."""
    lines = (HERE / "docs" / "how-to" / "import.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert rows[1:] == [f"| `{row.name}` | {row.title} |" for row in FORMATS]
