"""Claims of experiments on simulated programs against their known truth, and the stored table of more."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[4] / "benchmarks" / "replay"
BOUNDED = {"single error, V .9": 0.85, "single error, V .6": 0.70}


@pytest.fixture(scope="module")
def benchmark() -> dict[str, ModuleType]:
    """The modules of the benchmark, which import each other by their plain names."""
    sys.path.insert(0, str(FOLDER))
    try:
        names = (
            *("random_programs", "run_classes", "one_experiment", "simpler_methods"),
            *("replay_page", "team_bounds"),
        )
        return {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(FOLDER))


def class_of(benchmark: dict[str, ModuleType], name: str) -> Any:
    (found,) = [each for each in benchmark["run_classes"].CLASSES if each.name == name]
    return found


def simulated(benchmark: dict[str, ModuleType], name: str, runs: int) -> list[Any]:
    kind = class_of(benchmark, name)
    return [
        benchmark["one_experiment"].simulate(kind, seed) for seed in range(10_000, 10_000 + runs)
    ]


@pytest.mark.parametrize(
    ("name", "runs", "least"),
    [
        ("single error, V .9", 20, 19),
        ("single error, V .6", 15, 9),
        ("guess floor .1, V .9", 5, 4),
        ("systematic, one fix helps", 12, 4),
        ("two sufficient errors", 15, 2),
    ],
)
def test_origins_are_proved(
    benchmark: dict[str, ModuleType], name: str, runs: int, least: int
) -> None:
    found = simulated(benchmark, name, runs)
    assert sum(each.origin == "right" for each in found) >= least
    assert sum(each.origin == "wrong" for each in found) <= 1
    assert max(each.replays for each in found) <= 6 + 64 + 40


@pytest.mark.parametrize(
    "name",
    [
        "systematic, no fix helps",
        "diffuse decline",
        "unstable oracle",
        "nothing planted, V .6",
        "nothing planted, four fix sources",
        "nothing planted, drift",
        "nothing planted, successes censored",
        "nothing planted, last call alone random",
        "nothing planted, killed and resumed",
        "nothing planted, an arm shares one draw",
    ],
)
def test_hardly_anything_false_is_confirmed(benchmark: dict[str, ModuleType], name: str) -> None:
    found = simulated(benchmark, name, 5)
    assert sum(each.origin == "wrong" for each in found) <= 1


def test_the_earliest_flip_is_nearly_always_too_early(benchmark: dict[str, ModuleType]) -> None:
    kind = class_of(benchmark, "single error, V .6")
    method = benchmark["simpler_methods"].earliest_flip
    found = [benchmark["one_experiment"].baseline(kind, seed, method).origin for seed in range(50)]
    assert found.count("wrong") >= 40


def test_a_killed_experiment_ends_as_one_that_is_not(benchmark: dict[str, ModuleType]) -> None:
    kind = class_of(benchmark, "nothing planted, killed and resumed")
    simulate = benchmark["one_experiment"].simulate
    whole = type(kind)(kind.name, kind.make)
    assert [simulate(kind, seed) for seed in range(2)] == [
        simulate(whole, seed) for seed in range(2)
    ]


@pytest.fixture(scope="module")
def stored() -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads((FOLDER / "results.json").read_text())
    return results


def test_the_stored_table_is_that_of_the_stored_results(
    benchmark: dict[str, ModuleType], stored: list[dict[str, Any]]
) -> None:
    page = benchmark["replay_page"]
    text = (FOLDER / "README.md").read_text()
    assert f"{page.BEGIN}\n{page.tables(stored)}\n{page.END}" in text
    assert [name for name in page.PARTS if page.part(name) not in text] == []


def test_promises_are_kept(benchmark: dict[str, ModuleType], stored: list[dict[str, Any]]) -> None:
    """Three hundred runs of a class, of which five in a hundred at most are confirmed where there is nothing."""
    page = benchmark["replay_page"]
    assert [each["name"] for each in stored] == [
        each.name for each in benchmark["run_classes"].CLASSES
    ]
    for each in stored:
        name, runs = each["name"], each["runs"]
        assert runs >= 300, name
        # Six replays check the record and the oracle before anything is searched.
        assert "nightly" in name or each["most replays"] <= 6 + 64 + 40, name
        assert each["something"] or page.upper(page.false(each), runs) <= 0.05, name
        assert page.lower(each["origin"].get("right", 0), runs) >= BOUNDED.get(name, 0), name
    assert sum(not each["something"] for each in stored) >= 12


def test_the_real_team_is_within_its_simulations_bounds(benchmark: dict[str, ModuleType]) -> None:
    team = benchmark["team_bounds"]
    stored = json.loads((FOLDER / "team.json").read_text())
    assert [*stored] == [kind.name for kind in team.CLASSES]
    for name, each in stored.items():
        real = each["real"]
        least, most = team.bounds(each["simulated"], real["runs"])
        assert real["runs"] == sum(real["origin"].values()) > 0, name
        assert real["origin"].get("right", 0) >= least, name
        assert real["origin"].get("wrong", 0) <= most, name


def test_bounds_hold_for_nearly_all_counts_of_right_code(benchmark: dict[str, ModuleType]) -> None:
    """Sixteen of 20 are the least for a rate of .966 in 1,000: fewer have a chance of .3 %."""
    bounds = benchmark["team_bounds"].bounds
    assert bounds({"runs": 1000, "origin": {"right": 966, "none": 34}}, 20) == (16, 1)
    assert bounds({"runs": 1000, "origin": {"none": 1000}}, 20) == (0, 1)
    assert bounds({"runs": 100, "origin": {"right": 50, "wrong": 50}}, 20) == (3, 17)


def test_the_simulated_team_is_confirmed_as_in_the_counts(benchmark: dict[str, ModuleType]) -> None:
    team = benchmark["team_bounds"]
    for kind, least in zip(team.CLASSES, (8, 4, 0, 0), strict=True):
        found = [team.simulate(kind, 10_000 + seed)[0] for seed in range(8)]
        assert found.count("right") >= least, kind
        assert found.count("wrong") <= 1, kind


def test_the_priced_runs_are_those_of_the_stored_table(
    benchmark: dict[str, ModuleType], stored: list[dict[str, Any]]
) -> None:
    """The same seeds make the same calls, so that the dollars belong to the table above them."""
    told = {each["name"]: each for each in stored}
    costs = json.loads((FOLDER / "costs.json").read_text())["classes"]
    assert len(costs) == 9
    for each in costs:
        same = told[each["name"]]
        assert (each["runs"], each["right"]) == (same["runs"], same["origin"]["right"])
        assert each["calls"] / each["runs"] == pytest.approx(same["calls"], abs=0.06)
        assert 0 < each["usd"] < each["whole_usd"]


def test_bounds_are_those_of_clopper_and_pearson(benchmark: dict[str, ModuleType]) -> None:
    page = benchmark["replay_page"]
    assert page.upper(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300), abs=1e-6)
    assert page.upper(8, 300) == pytest.approx(0.0476, abs=5e-4)
    assert page.lower(300, 300) == pytest.approx(0.05 ** (1 / 300), abs=1e-6)
    assert page.upper(300, 300) == 1.0


def test_fishers_test_is_exact(benchmark: dict[str, ModuleType]) -> None:
    fisher = benchmark["simpler_methods"].fisher
    assert fisher(4, 0, 4) == pytest.approx(1 / 70)
    assert fisher(3, 0, 3) == pytest.approx(0.05)
    assert fisher(2, 2, 4) > 0.5
