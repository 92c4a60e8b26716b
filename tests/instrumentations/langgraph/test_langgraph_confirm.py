"""Confirmations of a real LangGraph team whose model errs at random, against known success rates.

The same code runs as in `mast-trace confirm`; replays run in this process. The rates that are asserted are
those of the simulation (`benchmarks/replay`), with room for twenty runs.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langchain_openai")
pytest.importorskip("clickhouse_connect", reason="needs a store")

import stock
from interventions import Failure, Stage
from judge.store.invented_replays import run
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted_llm import Reply, ScriptedLLM
from stores import new_store

from mast_trace.content import content_hash
from mast_trace_judge.arms import ArmResult, Fix
from mast_trace_judge.replay.confirm import Confirming
from mast_trace_judge.replay.setup import Budget, Setup
from mast_trace_judge.replay.statistics import Experiment
from mast_trace_judge.store.replays import plan_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.replay.allowance import Allowance
    from mast_trace_judge.replay.statistics import Trial

pytestmark = pytest.mark.framework("langgraph")

RUNS = 20
_TEXTS = 3
"""Answers of a run that may be wrong: each agent's report."""


class Erring:
    """A model that is wrong at random in each report; a wrong report cannot be repaired.

    Attributes:
        always: a planted error that is made in every replay, too.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self._wrong = 1 - rate ** (1 / _TEXTS)
        self._random = random.Random(seed)
        self.always: stock.Error | None = None

    def __call__(self, request: dict[str, Any]) -> Reply | str:
        """Answer a request."""
        planted = self.always
        if planted is not None and stock.agent_of(request) == planted.agent:
            wrong = planted.answer(request)
            if wrong is not None:
                return wrong
        right = stock.policy(request)
        if isinstance(right, str) and self._random.random() < self._wrong:
            # A number of its own, so that no two errors cancel each other.
            return right.translate(
                {ord(c): str(self._random.randrange(3, 10)) for c in "0123456789"}
            )
        return right


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedLLM]:
    """The model's server."""
    with ScriptedLLM(stock.policy) as made:
        yield made


@pytest.fixture(scope="module")
def stage(server: ScriptedLLM) -> Stage:
    """The team as a graph: one agent after the other, all on the same messages."""
    model = ChatOpenAI(model="gpt-small", base_url=server.url, api_key="scripted")
    tools = {
        "Storekeeper": [tool(stock.count_stock)],
        "Analyst": [tool(stock.weekly_sales)],
        "Buyer": [],
    }
    graph = StateGraph(MessagesState)
    for name in stock.AGENTS:
        prompt = f"You are {name}."
        agent = create_agent(model, tools=tools[name], name=name, system_prompt=prompt)
        graph.add_node(name, agent)
    order = [START, *stock.AGENTS, END]
    for one, other in itertools.pairwise(order):
        graph.add_edge(one, other)
    team = graph.compile(name="stock")

    def program() -> str:
        return team.invoke({"messages": [("user", stock.TASK)]})["messages"][-1].text

    return Stage(program, server)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with all tables."""
    with new_store(tmp_path_factory.mktemp("store")) as opened:
        yield opened


def confirm(
    store: Store, stage: Stage, failure: Failure, number: int, coin: random.Random | None = None
) -> Confirmation:
    """Confirm a failure; with a coin, the outcome does not depend on the run at all."""

    def execute(trial: Trial, allowance: Allowance) -> ArmResult:
        if trial.phase in {"verify", "score"}:
            return ArmResult(trial.arm, "ok", success=False)
        done = stage.replay(failure.run, trial.arm)
        assert len(done.live) <= allowance.calls
        asked = json.dumps([request["messages"] for request in done.live], default=str)
        return ArmResult(
            trial.arm,
            "ok",
            success=done.success if coin is None else coin.random() < 0.6,
            live_calls=len(done.live),
            calls_hash=content_hash(asked) if done.live else "",
            answer=done.answer,
            started_at=datetime.now(timezone.utc),
        )

    plan = plan_of(store, run(number), "{}")
    experiment = Experiment(
        failure.points,
        prior={},
        sources={point.step: (Fix("resample"),) for point in failure.points},
        seed=number,
        plan_id=plan.plan_id,
    )
    setup = Setup(("program",))
    work = Confirming(store, plan, experiment, failure.run, setup, execute, Budget(max_calls=400))
    work.resume()
    return work.run().confirmation


def endings(
    store: Store, stage: Stage, server: ScriptedLLM, kind: str, rate: float, runs: int
) -> Counter[str]:
    """Return how often an origin was right, wrong, or not proved."""
    found: Counter[str] = Counter()
    planted = [stock.ERRORS[1], stock.ERRORS[3], stock.ERRORS[4]]
    for number in range(runs):
        failure = stage.record(planted[number % len(planted)])
        model = Erring(rate, 1000 + number)
        model.always = planted[number % len(planted)] if kind == "systematic" else None
        server.script = model
        coin = random.Random(number) if kind == "nothing" else None
        identity = 10_000 * len(kind) + round(rate * 100) * 100 + number
        told = confirm(store, stage, failure, identity, coin)
        server.script = stage.model
        if told.origin is None:
            found[told.status] += 1
        elif kind == "single" and told.origin == failure.points[failure.planted].step:
            found["right"] += 1
        else:
            found["wrong"] += 1
    return found


def test_one_run_of_each_class(store: Store, stage: Stage, server: ScriptedLLM) -> None:
    """A small part of the long test: nothing false is confirmed, and a certain error is."""
    assert endings(store, stage, server, "single", 1.0, 1) == {"right": 1}
    assert endings(store, stage, server, "systematic", 1.0, 1) == {"systematic": 1}
    assert endings(store, stage, server, "nothing", 1.0, 1)["wrong"] == 0


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kind", "rate", "right", "wrong"),
    [
        ("single", 0.9, 15, 1),
        ("single", 0.6, 9, 1),
        ("systematic", 0.9, 0, 1),
        ("nothing", 0.9, 0, 2),
    ],
)
def test_a_team_that_errs_at_random(
    store: Store, stage: Stage, server: ScriptedLLM, kind: str, rate: float, right: int, wrong: int
) -> None:
    """Twenty runs of each class: the planted step is proved as often as expected, another hardly ever."""
    found = endings(store, stage, server, kind, rate, RUNS)
    assert found["right"] >= right, found
    assert found["wrong"] <= wrong, found
