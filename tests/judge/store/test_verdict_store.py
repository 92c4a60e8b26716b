"""Verdicts come back as they were stored, one for each run, content and judge version."""

from datetime import timedelta

from judge.store.verdicts import NOON, verdict

from mast_trace_judge.store.verdicts import load, load_latest, load_version, save


def test_a_verdict_comes_back_as_it_was(store):
    stored = verdict()
    save(store, [stored])
    assert load(store, stored.trace_id) == [stored]


def test_descriptions_of_earlier_judges_come_back_without_a_corrected_step(store):
    for number, text in enumerate(
        ("say 118", "", '{"prompt": 3, "text": "118"}', "one\ntwo", "x\n{}")
    ):
        error = verdict().decisive.model_copy(update={"minimal_fix": text, "corrected": None})
        save(store, [verdict(number, decisive=error)])
        assert load_latest(store, f"{number:032x}").decisive == error


def test_empty_parts_come_back_empty(store):
    stored = verdict(
        status="unscored",
        status_reason="nobody can read it: \u2603",
        outcome="unknown",
        modes=(),
        decisive=None,
        candidates=(),
        abstained=True,
    )
    save(store, [stored])
    assert load_latest(store, stored.trace_id) == stored


def test_the_same_key_replaces(store):
    save(store, [verdict(outcome="unknown")])
    save(store, [verdict(hours=1)])
    assert load(store, f"{1:032x}") == [verdict(hours=1)]
    assert store.query("SELECT count() AS n FROM mast_verdicts FINAL")[0]["n"] == 1


def test_other_content_or_another_judge_is_another_verdict(store):
    save(store, [verdict(), verdict(version="v2", hours=1), verdict(fingerprint="f2", hours=2)])
    found = load(store, f"{1:032x}")
    assert [(v.judge_version, v.fingerprint) for v in found] == [
        ("v1", "f2"),
        ("v2", "f1"),
        ("v1", "f1"),
    ]
    assert load_latest(store, f"{1:032x}").fingerprint == "f2"
    assert [v.judge_version for v in load(store, f"{1:032x}", judge_version="v2")] == ["v2"]


def test_projects_are_apart(store):
    save(store, [verdict(), verdict(project="other", hours=1)])
    assert load_latest(store, f"{1:032x}", project="shop").project == "shop"
    assert load(store, f"{1:032x}", project="none") == []


def test_storing_nothing_is_nothing(store):
    save(store, [])
    assert load_latest(store, f"{1:032x}") is None


def test_a_versions_verdicts_by_time(store):
    old = verdict(1, run_end=NOON - timedelta(days=3))
    newer = verdict(2, fingerprint="f2", hours=1)
    bank = verdict(2, project="bank", run_end=NOON - timedelta(days=1))
    save(store, [old, verdict(2), newer, verdict(3, version="v2"), bank])
    assert load_version(store, "v1") == [old, bank, newer]
    assert load_version(store, "v1", since=bank.run_end) == [bank, newer]
    late = bank.run_end + timedelta(milliseconds=1)
    assert load_version(store, "v1", since=late) == [newer]
