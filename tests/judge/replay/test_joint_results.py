"""Wrong results of tools, replayed in the test's own process: changed alone, together, and proved by pairs.

The clerk counts the stock before any model is asked, the pricer reads the price afterwards. An order is
right only if both results are.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import openai
import pytest
from interventions import playing
from scripted_llm import ScriptedLLM, last_text, system_text

import mast_trace
from mast_trace.replay.live import LiveCalls
from mast_trace.replay.player import Player
from mast_trace.replay.recording import tape_of
from mast_trace.testing import capture_spans
from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.confirm.fixes import Sources, planned_fixes
from mast_trace_lab.confirm.statistics import Experiment, ExperimentLimits
from mast_trace_lab.replay.arm_runner import calls_hash
from mast_trace_lab.replay.changes import NotAnArm, intervention_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.player import ReplayReport
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.confirmation import Confirmation

COUNTED, REPORTED, PRICED, RATED, OFFERED, ORDERED = range(6)
"""Steps of the recorded run: two tools in turn, each reported, a third one that does not matter, an order."""
RIGHT = "Order 210 kettles at 79 EUR."


@mast_trace.tool
def stock(item: str) -> str:
    """Return a wrong number of pieces."""
    return "310"


@mast_trace.tool
def price(item: str) -> str:
    """Return a wrong price."""
    return "97 EUR"


@mast_trace.tool
def rating(item: str) -> str:
    """Return what nobody needs."""
    return "4 stars"


def model(request: dict) -> str:
    """Report what was said, and order what is missing of 340."""
    said = last_text(request)
    if "You are buyer." not in system_text(request):
        return said
    found = re.search(r"(\d+) are left\. It costs (\d+)", said)
    assert found is not None
    stars = " 1 star." if "1 star" in said else ""
    return f"Order {340 - int(found[1])} kettles at {found[2]} EUR.{stars}"


def ask(who: str, said: str) -> str:
    """Ask the model in the name of an agent."""
    messages = [{"role": "system", "content": f"You are {who}."}, {"role": "user", "content": said}]
    client = openai.OpenAI(max_retries=0)
    answer = client.chat.completions.create(model="m", messages=messages)  # type: ignore[arg-type]
    return answer.choices[0].message.content or ""


def shop() -> str:
    """Write an order."""
    with mast_trace.run("shop"):
        with mast_trace.agent("clerk"):
            left = stock("kettle")
        with mast_trace.agent("reporter") as reporter:
            report = ask("reporter", f"{left} are left.")
            reporter.reply(report)
        with mast_trace.agent("caller"), ThreadPoolExecutor() as pool:
            asked = [pool.submit(mast_trace.in_context(each), "kettle") for each in (price, rating)]
            cost, stars = (each.result() for each in asked)
        with mast_trace.agent("pricer") as pricer:
            offer = ask("pricer", f"It costs {cost} ({stars}).")
            pricer.reply(offer)
        with mast_trace.agent("buyer") as buyer:
            order = ask("buyer", f"{report} {offer}")
            buyer.reply(order)
    return order


class Shop:
    """The recorded failure, and its model's server."""

    def __init__(self, server: ScriptedLLM, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self.right = RIGHT
        self._known: dict[ReplayArm, tuple[str, Sequence[LiveCall]]] = {}
        self._number = 0
        self.run = self._recorded()
        while self.run.steps[PRICED].tool != "price":  # either of two threads may begin first
            self.run = self._recorded()

    def _recorded(self) -> Trajectory:
        with capture_spans() as captured:
            assert shop() == "Order 30 kettles at 97 EUR."
        return captured.trajectory()

    def replay(self, arm: ReplayArm) -> tuple[str, ReplayReport, LiveCalls]:
        """Replay an arm."""
        tape = tape_of(self.run)
        self._number += 1
        live = LiveCalls(self._folder / f"{self._number}.jsonl")
        player = Player(tape, intervention=intervention_of(self.run, tape, arm), live=live)
        with playing(player):
            answer = shop()
        report = player.report()
        assert report.divergence is None
        return answer, report, live

    @contextmanager
    def needing(self, order: str) -> Iterator[None]:
        """Take another order for the right one."""
        self.right, before = order, self.right
        yield
        self.right = before

    def confirm(self, sources: Sources, **limits: int) -> Confirmation:
        """Conduct an experiment on the shop."""
        points = decision_points(self.run)
        fixes, refused = planned_fixes(self.run, points, sources)
        assert refused == ()
        agents = {each.index: each.agent for each in self.run.steps if each.tool}
        sizes = ExperimentLimits(verifications=0, scores=0, **limits)
        experiment = Experiment(points, prior={}, sources=fixes, limits=sizes, agents=agents)
        while (trial := experiment.ask()) is not None:
            # The shop and its model do the same each time, so that one replay of an arm is enough.
            if trial.arm not in self._known:
                answer, _, live = self.replay(trial.arm)
                self._known[trial.arm] = answer, live.calls()
            answer, calls = self._known[trial.arm]
            done = ArmResult(
                trial.arm,
                "ok",
                answer == self.right,
                phase=trial.phase,
                pair=trial.pair,
                live_calls=len(calls),
                calls_hash=calls_hash(calls),
                answer=answer,
            )
            experiment.tell(done)
        return experiment.conclusion()


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The recorded failure of the shop."""
    with ScriptedLLM(model) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        made = Shop(server, tmp_path_factory.mktemp("shop"))
        assert [each.tool for each in made.run.steps] == ["stock", "", "price", "rating", "", ""]
        yield made


def result(text: str) -> Fix:
    """Return a person's right result of a tool."""
    return Fix("person", text, result=True)


def test_a_result_before_any_answer_of_a_model_can_be_changed(failed: Shop) -> None:
    """The first request is a new one and goes to the model, as all later ones do."""
    answer, report, _ = failed.replay(ReplayArm("result", COUNTED, result("130")))
    assert answer == "Order 210 kettles at 97 EUR."
    assert (report.served_exchanges, report.live_exchanges, report.served_executions) == (0, 3, 3)


@pytest.mark.parametrize(
    ("arm", "live"),
    [
        (ReplayArm("result", COUNTED, result("130"), also=((PRICED, result("79 EUR")),)), 3),
        (
            ReplayArm(
                "result", COUNTED, result("130"), also=((OFFERED, Fix("person", "It costs 79")),)
            ),
            2,
        ),
        (
            ReplayArm(
                "fix", REPORTED, Fix("person", "130 are left."), also=((PRICED, result("79 EUR")),)
            ),
            2,
        ),
        (
            ReplayArm(
                "result",
                COUNTED,
                result("130"),
                also=((PRICED, result("79 EUR")), (RATED, result("5 stars"))),
            ),
            3,
        ),
    ],
)
def test_results_and_answers_are_changed_together(failed: Shop, arm: ReplayArm, live: int) -> None:
    """Each of them alone leaves the other one wrong."""
    answer, report, _ = failed.replay(arm)
    assert (answer, report.unmade_changes, report.live_exchanges) == (RIGHT, 0, live)


def test_the_results_of_parallel_tools_may_come_in_any_order(failed: Shop) -> None:
    """The first of them that is asked for begins the change."""
    answer, report, _ = failed.replay(
        ReplayArm("result", PRICED, result("79 EUR"), also=((RATED, result("1 star")),))
    )
    assert (answer, report.unmade_changes) == ("Order 30 kettles at 79 EUR. 1 star.", 0)
    assert (report.served_exchanges, report.live_exchanges) == (1, 2)


def test_parts_may_be_named_in_any_order_and_each_once(failed: Shop) -> None:
    answer, _, _ = failed.replay(
        ReplayArm("result", PRICED, result("79 EUR"), also=((COUNTED, result("130")),))
    )
    assert answer == RIGHT
    with pytest.raises(NotAnArm, match="each step once: 2, 2"):
        failed.replay(ReplayArm("result", PRICED, result("1"), also=((PRICED, result("2")),)))


def test_two_wrong_results_are_proved_together_without_a_needless_third(failed: Shop) -> None:
    """No single result helps; of the three that were tried, two do, each named with its own agent."""
    results = {COUNTED: "130", PRICED: "79 EUR", RATED: "5 stars"}
    found = failed.confirm(Sources({}, resample=False, results=results))
    assert found.status == "overdetermined", found.text
    assert "those of step 0 (clerk) and step 2 (caller) together do: 2 of 2" in found.text
    joint = [each for each in found.contrasts if each.also]
    assert {each.steps: each.fix_successes for each in joint} == {
        (COUNTED, PRICED, RATED): 2,
        (COUNTED, PRICED): 2,
    }
    assert all(part.result for each in joint for part in each.parts)
    assert found.planned_contrasts == 4


def test_one_wrong_result_before_any_answer_is_proved(failed: Shop) -> None:
    """It is compared with the whole program, which fails from the start."""
    with failed.needing("Order 210 kettles at 97 EUR."):
        found = failed.confirm(Sources({}, results={COUNTED: "130"}))
    assert (found.status, found.origin, found.origin_agent) == ("systematic", COUNTED, "clerk")
    assert "correcting step 0 (clerk) helps: 2 of 2" in found.text
    assert found.refuted == ()


def test_results_of_one_answer_are_tried_together(failed: Shop) -> None:
    with failed.needing("Order 30 kettles at 79 EUR. 1 star."):
        found = failed.confirm(
            Sources({}, resample=False, results={PRICED: "79 EUR", RATED: "1 star"})
        )
    assert found.status == "overdetermined", found.text
    assert "step 2 (caller) and step 3 (caller)" in found.text
