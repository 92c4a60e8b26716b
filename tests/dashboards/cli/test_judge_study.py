"""`judge agree` compares annotators, `judge diff` versions, and `judge run --since` judges many."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import mast_trace
from mast_trace.testing import capture_spans
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.ledger import JudgeCall, StoreLedger
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import DecisiveError, Evidence, ModeFinding, Verdict
from mast_trace_lab.selftest.store import ALL, Measured, SelfTest, save_selftest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conftest import CLI

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
RUNS = 12


def _verdict(number: int, version: str, *codes: str, step: int = 0) -> Verdict:
    return Verdict(
        trace_id=f"{number:032x}",
        fingerprint="f",
        judge_version=version,
        judged_at=NOW,
        run_start=NOW,
        run_end=NOW,
        steps=9,
        name="made",
        outcome="failure",
        modes=tuple(
            ModeFinding(code=code, probability=0.9, evidence=Evidence.EXACT) for code in codes
        ),
        decisive=DecisiveError(step=step, agent="b", probability=0.8),
    )


@pytest.fixture
def rated(empty: CLI) -> CLI:
    """Twelve runs with verdicts of two versions, all labelled by ada and three by bob."""
    with Store.open(empty.recorded.url) as store:
        save(store, [_verdict(n, "old111", "1.5") for n in range(RUNS)])
        newer = [
            _verdict(n, "new222", *(["1.3"] if n < 6 else []), step=n % 2) for n in range(RUNS)
        ]
        later = NOW.replace(hour=1)
        save(store, [each.model_copy(update={"judged_at": later}) for each in newer])
        labels = [
            HumanLabel(f"{n:032x}", "ada", *(("failure", ("1.3",)) if n < 7 else ("success", ())))
            for n in range(RUNS)
        ]
        labels += [HumanLabel(f"{n:032x}", "bob", "failure", ("1.3",), 1, "b") for n in range(3)]
        save_labels(store, labels)
    return empty


def test_agreement_is_given_for_every_pair_of_raters(rated: CLI) -> None:
    found = rated.json("judge", "agree")
    assert (found["labelled"], found["judged"]) == (RUNS, RUNS)
    rows = {(*row["annotators"], row["subject"]): row for row in found["modes"]}
    judged = rows["ada", "mast-trace judge", "1.3"]
    assert (judged["items"], judged["positives"], judged["both"]) == (12, [7, 6], 6)
    assert judged["kappa"] == pytest.approx(5 / 6)
    assert judged["kappa_interval"]["low"] <= 5 / 6 <= judged["kappa_interval"]["high"]
    assert rows["ada", "bob", "1.3"]["kappa"] is None
    assert rows["ada", "bob", "1.3"]["items"] == 3
    assert ("ada", "mast-trace judge", "Specification issues") in rows
    (steps,) = found["decisive"]
    assert (steps["annotators"], steps["runs"]) == (["bob", "mast-trace judge"], 3)
    assert steps["exact"] == pytest.approx(1 / 3)


def note(cli: CLI, calls: Iterable[tuple[int, str, str, str, int]]) -> None:
    """Write answers to the ledger: the number of the run, model, stage, answer and sample."""

    async def write(ledger: StoreLedger) -> None:
        for number, model, stage, answer, sample in calls:
            identity = {"project": "", "trace_id": f"{number:032x}", "judge_version": "new222"}
            ended = {"started_at": NOW, "duration_ms": 1, "status": "ok", "sample": sample}
            call = JudgeCall(**identity, **ended, stage=stage, model=model, answer=answer)
            await ledger.record(call)
        await ledger.flush()

    with Store.open(cli.recorded.url) as store:
        asyncio.run(write(StoreLedger(store)))


def test_a_panels_models_are_compared_with_each_other(rated: CLI) -> None:
    calls = [
        (number, model, "read", _read("failure", "3.2" if seen else "1.1"), 1)
        for number in range(RUNS)
        for model, seen in (("one", number < 6), ("two", number < 7))
    ]
    note(rated, calls)
    found = {each["subject"]: each for each in rated.json("judge", "agree")["panel"]}
    assert found["3.2"]["annotators"] == ["one", "two"]
    assert (found["3.2"]["items"], found["3.2"]["positives"]) == (RUNS, [6, 7])
    assert found["3.2"]["kappa"] == pytest.approx(5 / 6)
    assert "one and two" in rated("judge", "agree")[1]


def test_a_model_is_compared_with_itself(rated: CLI) -> None:
    assert rated.json("judge", "agree")["self_consistency"] == []
    for number in range(4):
        for sample in (1, 2):
            outcome = "success" if number == 0 and sample == 1 else "failure"
            note(rated, [(number, "one", "read", _read(outcome), sample)])
    (found,) = rated.json("judge", "agree")["self_consistency"]
    assert (found["model"], found["runs"], found["readings"]) == ("one", 4, 8)
    assert found["outcome"] == pytest.approx(3 / 4)
    assert (found["modes"], found["step"]) == (None, None)
    assert "models with themselves" in rated("judge", "agree")[1]


def _read(outcome: str, *codes: str) -> str:
    modes = [{"code": code, "probability": 0.9, "steps": [1], "quotes": ["q"]} for code in codes]
    told = {"solution": "s", "errors": [], "ranking": [], "confidence": 0.5}
    return json.dumps({**told, "outcome": outcome, "modes": modes})


def test_a_models_record_on_labelled_runs_is_given(rated: CLI) -> None:
    with Store.open(rated.recorded.url) as store:
        later = NOW.replace(hour=2)
        more = {"model": "m", "method": "fused", "judged_at": later, "model_step": 1}
        save(store, [_verdict(n, "new333").model_copy(update=more) for n in range(RUNS)])
    (known,) = rated.json("judge", "agree")["models"]
    assert (known["model"], known["cases"], known["hits"]) == ("m", {"beside": 3}, {"beside": 3})
    _, out, _ = rated("judge", "agree")
    assert "labels beside the verdict" in out
    assert "The model m has 0 of 20 blind labels" in out


def test_planted_faults_stand_beside(rated: CLI) -> None:
    shares = (Measured("step", "before", ALL, 7, 12, 0.32, 0.81),)
    test = SelfTest("a", "", "shop", "ag2", "new222", ("2.6-number",), 2, shares, NOW)
    with Store.open(rated.recorded.url) as store:
        save_selftest(store, test)
    (planted,) = rated.json("judge", "agree")["selftest"]
    assert "Planted faults of shop" in planted
    assert "7 of 12" in planted
    assert "7 of 12" in rated("judge", "agree")[1]
    assert rated.json("judge", "agree")["models"] == []


def test_agreement_for_people_says_where_kappa_is_not_given(rated: CLI) -> None:
    out = rated.out("judge", "agree")
    for text in ("12 labelled runs, 12 of them with a verdict.", "too few", "0.83"):
        assert text in out


def test_two_versions_are_compared_run_by_run(rated: CLI) -> None:
    found = rated.json("judge", "diff", "old", "new")
    assert (found["compared"], len(found["changed"])) == (RUNS, RUNS)
    assert (found["gained"], found["lost"]) == ({"1.3": 6}, {"1.5": RUNS})
    _, out, _ = rated("judge", "diff", "old", "new")
    assert "decisive step 0 to 1" in out


def test_an_unknown_version_is_not_found(rated: CLI) -> None:
    err = rated.err("judge", "diff", "old", "zzz", status=1)
    assert "new222, old111" in err


@pytest.fixture
def unjudged(empty: CLI) -> CLI:
    """A store of its own with one run and no verdict."""
    with capture_spans(frameworks=[]) as spans:
        with mast_trace.run("waiting"), mast_trace.agent("planner"):
            mast_trace.message("planner", "user", "Hello.")
        request = encode_spans(spans.spans)
    with Store.open(empty.recorded.url) as store:
        SpanWriter(store).write([request.SerializeToString()], token="test")
    return empty


def test_many_runs_are_judged_again_once(unjudged: CLI) -> None:
    first = unjudged.json("judge", "run", "--since", "1h")
    assert first["judged"] == first["ok"] == 1
    assert unjudged.json("judge", "run", "--since", "1h")["judged"] == 0
    assert unjudged.json("show", "last")["verdict"]["judge_version"] == first["version"]
