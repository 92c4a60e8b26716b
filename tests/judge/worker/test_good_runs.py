"""A failed run is compared with good runs of its program and version, which the record or a person calls good."""

import json

import pytest
from judge.worker.stored_runs import StoredRun, write

from mast_trace_judge.store.good_runs import GoodRuns
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import load_latest

FAILED = 99


def _bought(number, *, outcome="success", price=True, name="shop", **given):
    """A buyer who asks for the price before ordering."""
    run = StoredRun(number, outcome=outcome, workflow=name, **given)
    amount = 100 + 37 * number
    run.says(
        "user", f"Order {amount + 5} screws of type K-{200 + number}.", to="buyer", role="user"
    )
    if price:
        run.calls(
            "buyer", "get_price", {"type": f"K-{200 + number}"}, json.dumps({"price": amount})
        )
    run.calls("buyer", "place_order", {"type": f"K-{200 + number}"}, '{"status": "ordered"}')
    return run.says("buyer", f"Ordered K-{200 + number}.", to="user")


def _failed(**given):
    return _bought(FAILED, **({"outcome": "failure", "price": False} | given))


async def _places(store, worker):
    await worker().drain_once()
    verdict = load_latest(store, f"{FAILED:032x}")
    return [each for each in verdict.look_first if each.basis == "contrast"], verdict


@pytest.mark.parametrize("days_ago", [0, 9])
async def test_the_first_difference_is_stored_with_the_good_run_that_shows_it(
    store, worker, days_ago
):
    write(store, *(_bought(number, days_ago=days_ago) for number in range(1, 6)), _failed())
    (place,), verdict = await _places(store, worker)
    assert (place.step, place.agent, verdict.decisive) == (1, "buyer", None)
    assert "in 5 of 5 good runs" in place.why
    assert "get_price" in place.why
    assert (int(place.good_run, 16) in range(1, 6), place.good_step) == (True, 1)
    good = load_latest(store, place.good_run)
    assert (good.look_first, good.outcome) == ((), "success")


@pytest.mark.parametrize(
    "others",
    [
        {"service": "sales"},
        {"mast.run.kind": "replay"},
        {"name": "another program"},
        {"outcome": ""},
        {"outcome": "failure"},
    ],
    ids=lambda given: next(iter(given)),
)
async def test_other_programs_and_unknown_outcomes_are_no_good_runs(store, worker, others):
    write(store, *(_bought(number, **others) for number in range(1, 6)), _failed())
    assert (await _places(store, worker))[0] == []


def test_a_run_is_not_beside_itself_and_the_nearest_task_comes_first(store):
    one, *others = (f"{number:032x}" for number in (1, 2, 3))
    program = ("", "billing", "shop")
    write(store, _bought(1))
    assert not GoodRuns(store).any_beside(one, *program)
    write(store, _bought(2), _bought(3))
    good = GoodRuns(store)
    assert good.any_beside(one, *program)
    for nearest in others:
        task = f"Buy K-{200 + int(nearest, 16)}."
        found = [run.trace_id for run in good.nearest(one, task, *program)]
        assert found == sorted(others, key=lambda each, near=nearest: each != near)


def test_runs_of_another_project_with_the_same_ids_change_nothing(store):
    def found():
        return GoodRuns(store).nearest(f"{FAILED:032x}", "", "", "billing", "shop")

    write(store, *(_bought(number) for number in range(1, 6)))
    before = found()
    other = {"project": "other", "version": "9", "price": False}
    write(store, *(_bought(n, **other).says("spy", "Mine.") for n in range(1, 7)))
    assert (len(before), found()) == (5, before)


async def test_where_all_good_runs_are_of_other_versions_the_sentence_says_so(store, worker):
    write(store, *(_bought(number, version="1") for number in range(1, 6)), _failed(version="2"))
    (place,), _ = await _places(store, worker)
    assert place.why.startswith("All good runs are of another version (1, this run of 2): ")
    assert "get_price" in place.why
    write(store, *(_bought(number, version="2") for number in range(6, 9)))
    relations = GoodRuns(store).nearest(place.good_run, "", "", "billing", "shop")
    assert {each.versions for each in relations} == {("1", "1")}


async def test_a_persons_word_counts(store, worker):
    """Five runs without a recorded outcome are good as people say so; two of five that succeeded are not."""
    write(store, *(_bought(number, outcome="") for number in range(1, 6)), _failed())
    write(store, *(_bought(number) for number in (6, 7)))
    labels = [(number, "success") for number in range(1, 6)] + [(6, "failure"), (7, "failure")]
    theirs = [HumanLabel(f"{n:032x}", "bob", "failure", project="other") for n in range(1, 6)]
    save_labels(store, [*theirs, *(HumanLabel(f"{n:032x}", "ann", said) for n, said in labels)])
    (place,), _ = await _places(store, worker)
    assert "in 5 of 5 good runs" in place.why


async def test_a_healthy_run_is_not_compared(store, worker, monkeypatch):
    asked = []
    monkeypatch.setattr(GoodRuns, "nearest", lambda _self, run, *_: asked.append(run) or [])
    write(store, *(_bought(number) for number in range(1, 4)), _bought(4, outcome=""), _failed())
    await worker().drain_once()
    assert asked == [f"{FAILED:032x}"]
