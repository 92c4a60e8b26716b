"""`mast-trace cases` on stored runs, and the cases in tests."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from scripted_llm import Reply, ScriptedLLM

import mast_trace
from mast_trace.replay.run_files import masks_in
from mast_trace.testing import capture_spans, replayed
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.store.replay_plans import MASKS, plan_of
from mast_trace_judge.testing import assert_no_mode, assert_outcome, load_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import CLI

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cases"


@pytest.fixture
def cases(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the commands that need no store."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = run(["cases", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, " ".join(captured.err.split())

    return call


def asks(address: str) -> None:
    openai = pytest.importorskip("openai", reason="needs the openai client")
    with mast_trace.run("Capital / of .. France", input="Capital?"), mast_trace.agent("geographer"):
        client = openai.OpenAI(base_url=address, api_key="none", max_retries=0)
        for _ in range(2):
            client.chat.completions.create(
                model="scripted", messages=[{"role": "user", "content": "Capital?"}]
            )
        mast_trace.record_outcome(False, "it is not Lyon")


def test_a_failure_becomes_a_file_that_answers_its_program(own_cli: CLI, folder: Path) -> None:
    with ScriptedLLM(lambda _: Reply("Lyon.")) as serving, capture_spans(["openai"]) as spans:
        asks(serving.url)
    trace_id = spans.trajectory().trace_id
    with Store.open(own_cli.recorded.url) as store:
        request = encode_spans(spans.spans)
        SpanWriter(store).write([request.SerializeToString()], token=trace_id)
    status, out, err = own_cli("cases", "add", trace_id, "--note", "geography")
    assert status == 0, err
    path = folder / f"capital-of-france-{trace_id[:8]}.json.gz"
    assert "2 model calls" in " ".join(out.split())
    assert f'replayed("{path.relative_to(folder.parent)}")' in out
    assert "Look through it before you commit it" in " ".join(err.split())
    case = load_case(path)
    assert (case.task, case.outcome, case.note) == ("Capital?", "failure", "geography")
    with replayed(path, frameworks=["openai"]) as replay:
        asks(NOWHERE)
    replay.assert_identical()
    assert_outcome(replay, "failure")
    assert_outcome(case, "failure")
    # The same run gives the same bytes, apart from the time of adding.
    first = gzip.decompress(path.read_bytes())
    assert own_cli("cases", "add", trace_id, "--replace", "--note", "geography")[0] == 0
    before, after = json.loads(first), json.loads(gzip.decompress(path.read_bytes()))
    assert before.pop("case") | {"added": ""} == after.pop("case") | {"added": ""}
    assert before == after
    with Store.open(own_cli.recorded.url) as store:
        summary = run_summary(store, trace_id)
        assert summary is not None
        plan_of(store, summary, json.dumps([["Cap", "place"]]), name=f"{MASKS} 1")
    assert own_cli("cases", "add", trace_id, "--replace")[0] == 0
    assert masks_in(path) == [("Cap", "place")]


def test_a_run_without_replay_is_refused_or_kept_as_a_record(cli: CLI, folder: Path) -> None:
    status, _, err = cli("cases", "add", "aa01")
    assert (status, folder.exists()) == (1, False)
    assert "it has no model calls" in err
    assert "--no-replay" in err
    found = cli.json("cases", "add", "aa01", "--no-replay", "--name", "kept")
    assert found["replayable"] is False
    (case,) = load_cases(folder)
    assert "1.3" in case.modes
    with pytest.raises(AssertionError, match=r"1\.3 Step repetition"):
        assert_no_mode(case, "1.3")


def test_a_second_case_needs_another_name_and_says_so(cli: CLI, folder: Path) -> None:
    assert cli("cases", "add", "aa01", "--no-replay", "--name", "one")[0] == 0
    before = (folder / "one.json.gz").read_bytes()
    err = cli.err("cases", "add", "aa02", "--no-replay", "--name", "one", status=1)
    assert "there is a case" in err
    assert (folder / "one.json.gz").read_bytes() == before
    found = cli.json("cases", "add", "aa01", "--no-replay", "--name", "two")
    assert found["alike"] == ["one"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a" * 200, "a\x1b[2J", "..", "-x"])
def test_a_name_stays_in_the_folder(cli: CLI, folder: Path, name: str) -> None:
    status, _, err = cli("cases", "add", "aa01", "--no-replay", f"--name={name}")
    if name:
        assert (status, folder.exists()) == (1, False)
        assert "cannot name a case" in err
    else:  # no name is given
        assert status == 0


def test_an_unknown_run_and_an_unjudged_one(cli: CLI, folder: Path) -> None:
    assert cli("cases", "add", "ffff")[0] == 1
    assert not folder.exists()
    out = cli.out("cases", "add", "bb03", "--no-replay", "--name", "u")
    assert "not judged" in out


def test_listing_and_removing(cli: CLI, folder: Path, cases) -> None:
    assert cases("list")[0] == 0
    added = ("cases", "add", "aa01", "--no-replay", "--name", "one", "--note", "\x1b[31mred")
    assert cli(*added)[0] == 0
    status, out, _ = cases("list")
    assert status == 0
    assert "one" in out
    assert "1.3" in out
    assert "\x1b" not in out
    (folder / "broken.json.gz").write_bytes(b"nothing")
    status, out, err = cases("list", "--json")
    assert status == 1
    assert [case["name"] for case in json.loads(out)["cases"]] == ["one"]
    assert "broken.json.gz" in err
    assert cases("remove", "one", "missing")[0] == 1
    assert (folder / "one.json.gz").exists()
    assert cases("remove", "one")[0] == 0
    assert not (folder / "one.json.gz").exists()


def test_tests_over_an_empty_folder_are_no_pass(folder: Path) -> None:
    with pytest.raises(ValueError, match="has no cases"):
        load_cases(folder)


def test_an_export_is_no_case(cli: CLI, folder: Path, tmp_path: Path) -> None:
    assert cli("export", "--run", "aa01", "--out", "run.jsonl")[0] == 0
    with pytest.raises(ValueError, match="is no case"):
        load_case(tmp_path / "run.jsonl")
