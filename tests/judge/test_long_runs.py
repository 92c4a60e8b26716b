"""Runs that are too long to be held are read in pages, judged in part, and given out whole."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from long_runs import SHAPES, at_once, calls, one_call_again, root, says, stored, team
from stored_spans import spans_of
from stores import new_store

from mast_trace.trajectory import read_trajectory, to_dict, trajectory_from_dict
from mast_trace_collector.storage import runs
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import judge_chunk
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.local import long_runs
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.transfer import exporting
from mast_trace_judge.transfer.exporting import LongRun
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fixture_types import Patch

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

BEGIN = time.time_ns() // 10**6 * 10**6 - 3600 * 10**9
TEAM, LOOP, MOMENT, THEIRS, AGAIN, GIANT, HURT = (letter * 32 for letter in "1234567")
PAGE = 20_000


def _theirs(spans: list[SpanRecord]) -> list[SpanRecord]:
    return [
        dataclasses.replace(
            each,
            scope="other",
            attributes={k: v for k, v in each.attributes.items() if k != "mast.framework"},
        )
        for each in spans
    ]


def _hurt(spans: int) -> list[SpanRecord]:
    """A run that says what it called, calls it after, and ends with an error."""
    made = team(spans)
    late = spans + 1
    broken = calls(late + 1, "worker", "never_before", 1, "boom")
    return [
        *made,
        says(late, "worker", "I called never_before and it said 118."),
        dataclasses.replace(broken, status="Error", status_message="boom"),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("long")) as opened:
        for trace_id, spans in (
            (TEAM, team(600)),
            (LOOP, one_call_again(900)),
            (MOMENT, at_once(200)),
            (THEIRS, _theirs(SHAPES["many_agents"](300))),
            (HURT, _hurt(600)),
            (GIANT, [root(4), says(2, "a", "x" * 3_000_000), says(3, "b", "Done.")]),
        ):
            opened.insert("otel_traces", stored(spans, trace_id, BEGIN))
        again = team(100)
        late = dataclasses.replace(
            again[7], start=again[7].start + 3_000_000, end=again[7].end + 3_000_000
        )
        opened.insert("otel_traces", stored(again, AGAIN, BEGIN))
        opened.insert("otel_traces", stored([again[3], late], AGAIN, BEGIN))
        yield opened


@pytest.mark.parametrize("trace_id", [TEAM, LOOP, MOMENT, THEIRS, AGAIN, GIANT])
def test_pages_hold_every_span_once(store: Store, trace_id: str) -> None:
    """Duplicate spans, and spans that came again with another time, are on one page."""
    spans = RunSpans(store, trace_id, page_bytes=PAGE)
    pages = list(spans.read())
    read = [each for page in pages for each in page]
    whole = spans_of(store, trace_id)
    assert len(read) == len(whole)
    assert {each.span_id: each for each in read} == {each.span_id: each for each in whole}
    assert len(pages) > 1
    for page in pages:  # beside one span, which may be of any size
        sizes = [sum(map(len, span.attributes.values())) for span in page]
        assert sum(sizes) - max(sizes) <= PAGE


@pytest.mark.parametrize("trace_id", [TEAM, LOOP, MOMENT, THEIRS, AGAIN, GIANT])
def test_a_run_is_given_out_whole(store: Store, trace_id: str) -> None:
    whole = read_trajectory(spans_of(store, trace_id))
    run = LongRun(RunSpans(store, trace_id, page_bytes=PAGE))
    shape = json.loads("".join(run.json()))
    assert trajectory_from_dict(shape) == whole
    assert shape == {"invocations": [], **json.loads(json.dumps(to_dict(whole)))}
    parts = [json.loads(part) for part in run.parts(5000)]
    assert all(trajectory_from_dict(part).trace_id == trace_id for part in parts)
    joined: dict[str, Any] = {**parts[0], "steps": [], "invocations": [], "texts": {}}
    for part in parts:
        joined["steps"] += part["steps"]
        joined["invocations"] += part["invocations"]
        joined["texts"] |= part["texts"]
    assert trajectory_from_dict(joined) == whole
    assert len(parts) > 1


def test_texts_are_cut_where_no_more_is_asked_for(store: Store) -> None:
    spans = RunSpans(store, GIANT)
    (long,) = spans.of([f"{2:016x}"], clip=100)
    assert long.attributes["mast.message.content"] == "x" * 100
    (whole,) = spans.of([f"{2:016x}"])
    assert len(whole.attributes["mast.message.content"]) == 3_000_000


@pytest.fixture
def short_sighted(monkeypatch: Patch) -> None:
    """A judge that takes little for long."""
    monkeypatch.setattr(long_runs, "MOST_SPANS", 200)
    monkeypatch.setattr("mast_trace_judge.batch.MOST_SPANS", 200)
    monkeypatch.setattr("mast_trace_judge.batch.PAGE_BYTES", PAGE)


def judged(store: Store, trace_id: str) -> Verdict:
    summary = run_summary(store, trace_id)
    assert summary is not None
    (one,) = judge_chunk(store, Judge(JudgeConfig()), [summary])
    assert one.error is None
    assert one.verdict is not None
    return one.verdict


@pytest.mark.usefixtures("short_sighted")
def test_a_verdict_says_what_was_not_read(store: Store) -> None:
    verdict = judged(store, TEAM)
    whole = read_trajectory(spans_of(store, TEAM))
    assert verdict.steps == len(whole.steps)
    assert f"of its {len(whole.steps)} steps the judge read the first " in verdict.status_reason
    assert "and not steps " in verdict.status_reason
    verdict_store.save(store, [verdict])
    found = verdict_store.load_latest(store, TEAM)
    assert found is not None
    assert found.status_reason == verdict.status_reason


@pytest.mark.usefixtures("short_sighted")
def test_steps_keep_their_numbers(store: Store) -> None:
    """Steps that are read equal those of the whole run; the others have their place, and no text."""
    whole = read_trajectory(spans_of(store, TEAM))
    partial = long_runs.read_run(RunSpans(store, TEAM, page_bytes=PAGE))
    begin, end = partial.unread_from, partial.unread_to
    assert 0 < begin < end < len(whole.steps)
    assert partial.steps[:begin] == whole.steps[:begin]
    assert partial.steps[end:] == whole.steps[end:]
    for step in partial.steps[begin:end]:
        told = whole.steps[step.index]
        assert (step.kind, step.agent, step.span_id) == (told.kind, told.agent, told.span_id)
        assert (step.text, step.synthetic) == ("", True)
    assert set(partial.invocations) < set(whole.invocations)
    assert len(partial.texts) < len(whole.texts)
    assert trajectory_from_dict(json.loads(json.dumps(to_dict(partial)))) == partial


@pytest.mark.usefixtures("short_sighted")
def test_nothing_is_exact_that_an_unread_step_might_take_back(store: Store) -> None:
    """A call that was named before it was made may have been made in between."""
    verdict = judged(store, HURT)
    evidence = {mode.code: mode.evidence for mode in verdict.modes}
    assert evidence.get("2.6") is not Evidence.EXACT
    assert Evidence.EXACT in {m.evidence for m in judged_whole(store, HURT) if m.code == "2.6"}


def judged_whole(store: Store, trace_id: str) -> tuple[Any, ...]:
    from mast_trace_judge.local.rules import find_modes

    return find_modes(read_trajectory(spans_of(store, trace_id)))


@pytest.mark.usefixtures("short_sighted")
def test_a_loop_is_exact_where_it_was_read(store: Store) -> None:
    verdict = judged(store, LOOP)
    (mode,) = [mode for mode in verdict.modes if mode.code == "1.3"]
    assert mode.evidence is Evidence.EXACT
    assert len(mode.steps) < 400


def test_a_finding_lists_so_many_steps_and_says_so(store: Store, monkeypatch: Patch) -> None:
    monkeypatch.setattr("mast_trace_judge.local.rules._MOST_STEPS", 50)
    verdict = judged(store, LOOP)
    (mode,) = [mode for mode in verdict.modes if mode.code == "1.3"]
    assert len(mode.steps) == 50
    assert "The first 50 of 899 such steps are listed." in mode.reason


def test_runs_that_do_not_fit_together_are_read_alone(store: Store, monkeypatch: Patch) -> None:
    """A chunk whose texts are too long for one look is judged all the same."""
    steps = len(read_trajectory(spans_of(store, TEAM)).steps)
    monkeypatch.setattr(runs, "_SPANS", runs._SPANS.replace(str(runs._MOST_BYTES), "100000"))
    summaries = [run_summary(store, trace_id) for trace_id in (TEAM, GIANT)]
    one, other = judge_chunk(store, Judge(JudgeConfig()), [s for s in summaries if s])
    assert one.error is other.error is None
    assert one.verdict is not None
    assert one.verdict.steps == steps


def test_an_export_streams_what_is_long(store: Store, tmp_path: Path, monkeypatch: Patch) -> None:
    """The streamed lines, and the joined rows, equal the usual ones, however little is held."""
    pq = pytest.importorskip("pyarrow.parquet")
    exporting.write_jsonl(tmp_path / "whole.jsonl", exporting.export_runs(store))
    monkeypatch.setattr(exporting, "MOST_SPANS", 100)
    monkeypatch.setattr(exporting, "_PART", 50_000)
    monkeypatch.setattr(exporting, "_ROW_GROUP", 120_000)
    exporting.write_jsonl(tmp_path / "parts.jsonl", exporting.export_runs(store))
    whole, parts = (
        [json.loads(line) for line in (tmp_path / name).read_text("utf-8").splitlines()]
        for name in ("whole.jsonl", "parts.jsonl")
    )
    assert len(whole) == len(parts) == 7
    for one, other in zip(whole, parts, strict=True):
        assert list(one) == list(other)
        assert trajectory_from_dict(one.pop("trajectory")) == trajectory_from_dict(
            other.pop("trajectory")
        )
        assert one == other
    assert exporting.write_parquet(tmp_path / "p", exporting.export_runs(store)) == 7
    rows = [row for row in pq.read_table(tmp_path / "p").to_pylist() if row["trace_id"] == TEAM]
    assert [row["part"] for row in rows] == list(range(len(rows)))
    assert len(rows) > 2
    steps = [step for row in rows for step in json.loads(row["trajectory"])["steps"]]
    assert [step["index"] for step in steps] == list(range(len(steps)))
    assert len(steps) == len(read_trajectory(spans_of(store, TEAM)).steps)
