"""`mast_trace.assign`: the same arm for the same key everywhere, evenly spread, for keys of any type."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import itertools
import os
import pickle
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

import pytest

import mast_trace
from mast_trace.experiment.assignment import ARMS, arm_of, key_text


class Colour(enum.Enum):
    """A value of the program's own."""

    RED = 1


class Hostile:
    """It cannot be asked for its text."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class Plain:
    """Its text is an address in memory."""


_N, _P, _F = ARMS
RELEASED = [_N, _F, _P, _N, _N, _N, _F, _N, _N, _N, _F, _N]
RELEASED_PAIRS = [_P, _N, _F, _F, _P, _N]


def fresh() -> str:
    return uuid.uuid4().hex


def test_an_arm_is_its_name_and_knows_its_task() -> None:
    arm = mast_trace.assign("e1", key="task-7", repetition=2)
    assert arm in ARMS
    assert isinstance(arm, str)
    assert (arm.experiment, arm.task, arm.repetition, arm.design) == ("e1", "task-7", 2, "hash")
    for other in (pickle.loads(pickle.dumps(arm)), copy.copy(arm), copy.deepcopy(arm)):
        assert (other, other.task, other.repetition) == (arm, arm.task, 2)


def test_arms_are_as_released() -> None:
    """Another hash would move the tasks of running experiments to other arms."""
    given = [arm_of("lessons-1", f"task-{n}", ARMS) for n in range(12)]
    assert given == RELEASED
    paired = [arm_of("lessons-1", "task-0", ARMS, design="pairs", repetition=n) for n in range(6)]
    assert paired == RELEASED_PAIRS


def test_other_processes_give_the_same_arm() -> None:
    """The seed of Python's own hashes has no effect."""
    program = "import mast_trace\nprint(*(mast_trace.assign('e', key=n) for n in range(50)))"
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )
    assert told.stdout.split() == [str(mast_trace.assign("e", key=n)) for n in range(50)]


@pytest.mark.parametrize("arms", [ARMS, ("team", "single agent"), ("a", "b", "c", "d", "e")])
def test_arms_are_evenly_spread(arms: tuple[str, ...]) -> None:
    counts = Counter(arm_of("spread", str(n), arms) for n in range(6000))
    expected = 6000 / len(arms)
    for arm in arms:
        assert abs(counts[arm] - expected) < 4 * (expected * (1 - 1 / len(arms))) ** 0.5


def test_experiments_are_independent() -> None:
    """A task's arm in one says nothing about its arm in another."""
    both = Counter(
        (arm_of("one", str(n), ("a", "b")), arm_of("two", str(n), ("a", "b"))) for n in range(4000)
    )
    assert all(abs(count - 1000) < 120 for count in both.values())


def test_pairs_take_each_task_through_all_arms() -> None:
    name = fresh()
    for task in range(30):
        given = [mast_trace.assign(name, key=task, design="pairs") for _ in range(6)]
        assert set(given[:3]) == set(given[3:]) == set(ARMS)
        assert [arm.repetition for arm in given] == list(range(6))
    orders = Counter(
        tuple(arm_of("order", str(n), ARMS, design="pairs", repetition=r) for r in range(3))
        for n in range(3000)
    )
    assert set(orders) == set(itertools.permutations(ARMS))
    assert all(abs(count - 500) < 90 for count in orders.values())


def test_a_task_that_comes_often_keeps_its_arm() -> None:
    name = fresh()
    given = [mast_trace.assign(name, key="same") for _ in range(1000)]
    assert len(set(given)) == 1
    assert [arm.repetition for arm in given] == list(range(1000))


def test_threads_count_together() -> None:
    name, found = fresh(), []

    def work() -> None:
        found.extend(
            mast_trace.assign(name, key="t", design="pairs").repetition for _ in range(300)
        )

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(2400))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("x", "x"),
        (" x ", "x"),
        (7, "7"),
        (0, "0"),
        (False, "False"),
        (1.5, "1.5"),
        (b"bytes", "bytes"),
        (b"\xff", "\\xff"),
        (uuid.UUID(int=5), str(uuid.UUID(int=5))),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (decimal.Decimal("1.10"), "1.10"),
        (PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "Colour.RED"),
        ((1, "a"), '[1, "a"]'),
        ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
        (frozenset({"b", "a"}), '["a", "b"]'),
        ("\ud83d", "?"),
        (10**50, str(10**50)),
    ],
)
def test_keys_of_any_type_have_one_text(key: Any, text: str) -> None:
    assert key_text(key) == text
    assert mast_trace.assign(fresh(), key=key).task == text


@pytest.mark.parametrize("key", [None, "", "  ", Plain(), Hostile(), [Hostile()]])
def test_an_unusable_key_gets_the_control_and_no_task(key: Any) -> None:
    arm = mast_trace.assign(fresh(), key=key)
    assert (arm, arm.task) == ("none", "")


def test_a_long_key_is_replaced_by_its_hash() -> None:
    """It may be the task itself, with people's data in it."""
    text = key_text("please refund Ann Smith " * 20)
    assert text.startswith("sha256:")
    assert len(text) < 80
    assert text != key_text("please refund Bob Smith " * 20)


@pytest.mark.parametrize(
    "given",
    [
        {"arms": ()},
        {"arms": ("a",)},
        {"arms": ("a", "a")},
        {"arms": ("a", "")},
        {"arms": 5},
        {"arms": None},
        {"arms": "ab"},
        {"design": "latin square"},
        {"repetition": -1},
        {"repetition": "x"},
        {"repetition": 10**30},
    ],
)
def test_wrong_arguments_are_no_error(given: dict[str, Any]) -> None:
    arm = mast_trace.assign(fresh(), key="t", **given)
    assert arm in ARMS
    assert arm.repetition == 0


def test_variants_of_any_kind_have_names_of_their_own() -> None:
    arms = ["team", "single agent", "without the reviewer"]
    found = {mast_trace.assign("variants", key=n, arms=arms) for n in range(40)}
    assert found == set(arms)
