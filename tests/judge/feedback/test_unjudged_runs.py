"""A program that waits for the lessons of its run is told to wait until there is a verdict on the whole run."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from judge.worker.stored_runs import StoredRun, write

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import save
from mast_trace_lab.feedback import answering
from mast_trace_lab.feedback.answering import NOT_JUDGED, Wanted, answer

if TYPE_CHECKING:
    import pytest

    from mast_trace_collector.storage import Store

RUN = f"{1:032x}"


def judge(store: Store, fingerprint: str = "", method: str = "local") -> None:
    summary = run_summary(store, RUN)
    assert summary is not None
    seen = dataclasses.replace(summary, fingerprint=fingerprint or summary.fingerprint)
    judged = Judge().judge(seen, read_alone(store, summary))
    save(store, [asyncio.run(judged).model_copy(update={"method": method})])


def misread(store: Store) -> None:
    run = StoredRun(1, outcome="failure").says("lead", "What does it cost?", to="clerk")
    run.calls("clerk", "price", {"item": "lamp"}, "The lamp costs 118 EUR.")
    write(store, run.says("clerk", "The lamp costs 181 EUR.", to="lead"))


def test_a_run_without_a_verdict_on_all_of_it_is_not_judged_yet(store: Store) -> None:
    misread(store)
    assert answer(store, Wanted(run=RUN)).reason == NOT_JUDGED
    judge(store, fingerprint="of its first half")
    assert answer(store, Wanted(run=RUN)).reason == NOT_JUDGED
    judge(store)
    assert answer(store, Wanted(run=RUN)).text


def test_a_run_that_a_model_is_reading_is_judged_once_there_is_a_lesson(store: Store) -> None:
    write(store, StoredRun(1, outcome="failure").says("lead", "What does it cost?", to="clerk"))
    judge(store, method="reading")
    assert answer(store, Wanted(run=RUN)).reason == NOT_JUDGED
    judge(store)
    assert answer(store, Wanted(run=RUN)).reason not in {"", NOT_JUDGED}
    misread(store)
    judge(store, method="reading")
    told = answer(store, Wanted(run=RUN))
    assert told.text
    # Labels of another project's run of this id teach nothing here.
    save_labels(store, [HumanLabel(RUN, "ann", decisive_step=0, project="other")])
    assert answer(store, Wanted(run=RUN)) == told


def test_a_verdict_that_comes_meanwhile_is_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    misread(store)

    def too_early(*_: object, **__: object) -> list[object]:
        judge(store)
        return []

    with monkeypatch.context() as during:
        during.setattr(answering, "taught", too_early)
        assert answer(store, Wanted(run=RUN)).reason == NOT_JUDGED
    assert answer(store, Wanted(run=RUN)).text
