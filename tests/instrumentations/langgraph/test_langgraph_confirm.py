"""Confirmations of a real LangGraph team whose model errs at random, within the bounds of its simulation.

The same code runs as in `mast-trace confirm`; replays run in this process. Team, model, simulation and the stored
counts are those of ``benchmarks/replay``.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langchain_openai")
pytest.importorskip("clickhouse_connect", reason="needs a store")

from stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

pytestmark = pytest.mark.framework("langgraph")

FOLDER = Path(__file__).parents[3] / "benchmarks" / "replay"
RUNS = 20
NAMES = (
    "single error, V .9",
    "single error, V .6",
    "systematic, no fix helps",
    "nothing planted, V .6",
)


@pytest.fixture(scope="module")
def benchmark() -> dict[str, ModuleType]:
    """The modules of the benchmark, which import each other by their plain names."""
    sys.path.insert(0, str(FOLDER))
    try:
        return {
            name: importlib.import_module(name)
            for name in ("real_team", "team_bounds", "replay_page")
        }
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def bench(
    benchmark: dict[str, ModuleType], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The model's server, and a store with all tables."""
    with (
        new_store(tmp_path_factory.mktemp("store")) as store,
        benchmark["real_team"].Bench(store=store) as opened,
    ):
        yield opened


def class_of(benchmark: dict[str, ModuleType], name: str) -> Any:
    (found,) = [each for each in benchmark["team_bounds"].CLASSES if each.name == name]
    return found


def test_a_certain_error_is_proved_and_a_systematic_one_is_not_placed(
    benchmark: dict[str, ModuleType], bench: Any
) -> None:
    """A small part of the long test: the planted report is named, and nothing where all replays fail."""
    kind = class_of(benchmark, NAMES[2])
    assert bench.confirmed(kind, 1)[0] == "none"
    certain = type(kind)(kind.name, 1.0)
    ending, told = bench.confirmed(certain, 102)
    assert (ending, told.status) == ("right", "confirmed")
    assert "behaved alike" in told.text


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_a_team_that_errs_at_random(
    benchmark: dict[str, ModuleType], bench: Any, name: str
) -> None:
    """Twenty runs of each class: the planted step is proved as often as simulated, another hardly ever."""
    team = benchmark["team_bounds"]
    kind = class_of(benchmark, name)
    found = team.counts([bench.confirmed(kind, number) for number in range(RUNS)])
    simulated = json.loads(benchmark["replay_page"].TEAM.read_text())[name]["simulated"]
    least, most = team.bounds(simulated, RUNS)
    assert found["origin"].get("right", 0) >= least, found
    assert found["origin"].get("wrong", 0) <= most, found
