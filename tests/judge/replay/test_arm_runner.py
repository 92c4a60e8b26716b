"""Arms of an experiment on a hand-made team whose policy reads its input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from policies import Planted, shop
from replays import parents, record
from scripted_llm import Reply, ScriptedLLM, last_text

from mast_trace_judge.arms import START, Fix, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.llm.budget import Price
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arm_runner import run_arm
from mast_trace_lab.replay.changes import NoChange, NotAnArm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult

pytestmark = pytest.mark.end_to_end

SHOP = Path(__file__).parent / "shop.py"
CHOICE, COUNTED, REPORT, PLAN, ORDER = range(5)
"""Steps of the recorded run."""


def misread(request: dict) -> str:
    """Report another number than the tool's result."""
    return "There are 310 pieces of kettle." if "stock of" in last_text(request) else shop(request)


def fixed(first: int, *others: int) -> ReplayArm:
    """Return the arm that gives answers of these steps another text."""
    also = tuple((step, Fix("person", f"Answer {step}.")) for step in others)
    return ReplayArm("fix", first, Fix("person", f"Answer {first}."), also=also)


def prompt_tokens(request: dict) -> int:
    """Return the tokens of a request, as the scripted server counts them."""
    return sum(len(json.dumps(message)) for message in request["messages"]) // 4 + 1


def right_if(condition: str) -> tuple[str, ...]:
    """Return the command of an oracle."""
    return (
        sys.executable,
        "-c",
        f"import sys; answer = sys.stdin.read(); sys.exit(not ({condition}))",
    )


class Team:
    """A recorded failure of the team, and its model's server, which errs no more."""

    def __init__(self, recorded: Trajectory, server: ScriptedLLM, executed: Path) -> None:
        self.recorded = recorded
        self.server = server
        self.executed = executed

    def run(
        self, arm: ReplayArm, way: str = "", max_calls: int | None = None, **given
    ) -> ArmResult:
        """Replay an arm and assert that the number of live calls is the one that the server counts."""
        before = len(self.server.requests)
        command = (sys.executable, str(SHOP), *filter(None, [way]))
        setup = Setup(command, **{"timeout": 60.0, "parent": parents(), **given})
        done = run_arm(self.recorded, setup, arm, max_calls=max_calls)
        assert done.live_calls == len(self.server.requests) - before
        return done


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A run in which the counter misreads the stock, recorded with its outcome."""
    folder = tmp_path_factory.mktemp("shop")
    policy = Planted(shop, "counter", misread)
    with ScriptedLLM(policy) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("EXECUTED", str(folder / "executed"))
        recorded = record(SHOP, folder=folder, keep="OPENAI_")
        assert (recorded.outcome, recorded.final_answer) == ("failure", "Order 30 pieces.")
        policy.cured = True
        (folder / "executed").unlink()
        yield Team(recorded, server, folder / "executed")


@pytest.fixture
def team(failed: Team) -> Iterator[Team]:
    """The failed team; no replay of a test executes its tool."""
    yield failed
    assert not failed.executed.exists()


def test_decision_points_are_the_answers_of_models(team: Team) -> None:
    points = decision_points(team.recorded)
    assert [(each.step, each.agent) for each in points] == [
        (CHOICE, "chooser"),
        (REPORT, "counter"),
        (PLAN, "planner"),
        (ORDER, "buyer"),
    ]
    assert points[1].text == "There are 310 pieces of kettle."


def test_start_runs_everything_live_but_recorded_tools(team: Team) -> None:
    done = team.run(ReplayArm("start", START))
    assert (done.status, done.success, done.answer) == ("ok", True, "Order 210 pieces.")
    assert (done.served_calls, done.live_calls) == (0, 4)
    assert (done.served_tools, done.live_tools, done.models) == (1, 0, ("small",))
    assert done.input_tokens == sum(prompt_tokens(each) for each in team.server.requests[-4:])
    assert done.reason == "compared with the true need"


PRICES = {"small": Price(input=1.0, output=10.0)}


@pytest.fixture(scope="module")
def kept(failed: Team) -> dict[int, ArmResult]:
    """Replays that keep the run up to each step, priced."""
    steps = (CHOICE, REPORT, PLAN, ORDER)
    return {step: failed.run(ReplayArm("keep", step), prices=PRICES) for step in steps}


def test_keep_serves_all_up_to_the_step(kept: dict[int, ArmResult]) -> None:
    """Served calls cost nothing."""
    for served, (step, done) in enumerate(kept.items(), 1):
        assert (done.status, done.success) == ("ok", step == CHOICE)
        assert (done.served_calls, done.live_calls) == (served, 4 - served)
        cost = (done.input_tokens + 10 * done.output_tokens) / 1e6
        assert done.cost_usd == pytest.approx(cost if done.live_calls else 0.0)
        assert bool(done.cost_usd) == bool(done.live_calls)


RIGHT = Fix("person", "There are 130 pieces of kettle.")


@pytest.mark.parametrize(
    ("arm", "order", "served", "live"),
    [
        (ReplayArm("fix", REPORT, RIGHT), 210, 2, 2),
        (ReplayArm("resample", REPORT), 210, 1, 3),
        (ReplayArm("result", COUNTED, Fix("reference", "140")), 200, 1, 3),
        # With ``hold`` a kept run is served whole; a fix asks the agents downstream of it.
        (ReplayArm("keep", CHOICE, hold=True), 30, 4, 0),
        (ReplayArm("fix", REPORT, RIGHT, hold=True), 210, 2, 2),
    ],
    ids=["fix", "resample", "result", "held", "held fix"],
)
def test_a_change_propagates(
    team: Team, arm: ReplayArm, order: int, served: int, live: int
) -> None:
    done = team.run(arm)
    assert (done.status, done.success) == ("ok", order == 210)
    assert (done.answer, done.served_tools) == (f"Order {order} pieces.", 1)
    assert (done.served_calls, done.live_calls) == (served, live)


def test_another_model_is_asked_at_the_step_alone(team: Team) -> None:
    before = len(team.server.requests)
    done = team.run(ReplayArm("model", REPORT, Fix("stronger model", model="large")))
    assert done.success
    asked = [request["model"] for request in team.server.requests[before:]]
    assert asked == ["large", "small", "small"]
    assert set(done.models) == {"large", "small"}


def test_equal_replays_have_an_equal_hash_of_calls(team: Team, kept: dict[int, ArmResult]) -> None:
    """Without a price the cost is unknown."""
    again = team.run(ReplayArm("keep", PLAN))
    assert again.calls_hash == kept[PLAN].calls_hash != ""
    assert again.calls_hash != kept[REPORT].calls_hash
    assert (kept[ORDER].calls_hash, again.cost_usd) == ("", None)


def test_the_cost_of_live_embeddings_is_unknown(team: Team) -> None:
    """They are counted as live calls; no span tells their tokens, so that no sum is claimed."""
    prices = {"small": Price(input=1.0, output=2.0), "vectors": Price(input=1.0, output=0.0)}
    done = team.run(ReplayArm("keep", REPORT), way="embeds", prices=prices)
    assert (done.status, done.live_calls, done.cost_usd) == ("ok", 3, None)
    assert done.input_tokens > 0


def test_verifying_and_scoring(team: Team) -> None:
    done = team.run(ReplayArm("verify"))
    assert (done.status, done.success, done.served_calls) == ("ok", False, 4)
    scored = team.run(ReplayArm("score"), oracle=right_if("'30' in answer"))
    assert (scored.status, scored.success, scored.served_calls) == ("ok", True, 0)
    assert team.run(ReplayArm("score")).success is False


class Spoiled:
    """An origin of forked replays in which the program does something else."""

    is_unasked = True

    def give_up(self) -> None:
        """Fork no longer."""
        self.is_unasked = False

    def run(self, *_: object) -> int:
        """Run nothing."""
        return 0


def test_a_program_that_forks_otherwise_is_not_forked(team: Team) -> None:
    """A replay in a process of its own tells it, where nobody has asked for forks."""
    parent = Spoiled()
    assert team.run(ReplayArm("verify"), parent=parent).status == "ok"
    assert not parent.is_unasked
    assert team.run(ReplayArm("verify"), parent=parent).status == "error"


def test_an_oracle_judges_where_nothing_is_recorded(team: Team) -> None:
    """The oracle gets the final answer; an oracle that fails is an error, not a failure of the run."""
    arm = ReplayArm("keep", PLAN)
    # The recorded way of the program records an outcome, so its replay differs in no model call.
    done = team.run(arm, "no-outcome", oracle=right_if("answer == 'Order 30 pieces.'"))
    assert (done.status, done.success) == ("ok", True)
    assert team.run(arm, "no-outcome").status == "error"

    done = team.run(arm, "no-outcome", oracle=("/no-such-oracle",))
    assert (done.status, done.success) == ("error", None)
    assert "No such file" in done.reason


class TestCensored:
    """Replays without an outcome are censored with the reason."""

    def test_over_budget(self, team: Team) -> None:
        done = team.run(ReplayArm("keep", CHOICE), max_calls=1)
        assert (done.status, done.success, done.live_calls) == ("over budget", None, 1)

    def test_a_joint_fix_that_is_not_made_in_full(self, team: Team) -> None:
        done = team.run(fixed(REPORT, ORDER), way="no-buyer")
        assert (done.status, done.success) == ("diverged", None)
        assert "last step of a joint fix" in done.reason

    def test_no_live_call_at_all(self, team: Team) -> None:
        done = team.run(ReplayArm("keep", PLAN), max_calls=0)
        assert (done.status, done.live_calls) == ("over budget", 0)

    def test_timeout(self, team: Team) -> None:
        done = team.run(ReplayArm("keep", REPORT), "hangs", timeout=4)
        assert (done.status, done.success, done.live_calls) == ("timeout", None, 1)

    @pytest.mark.parametrize(("step", "status"), [(REPORT, "blocked"), (ORDER, "diverged")])
    def test_a_connection_of_its_own(self, team: Team, step: int, status: str) -> None:
        """The model's server is open to live calls alone, after the change and before it."""
        done = team.run(ReplayArm("keep", step), "connects")
        assert (done.status, done.success) == (status, None)
        assert done.live_calls == (step == REPORT)
        assert "127.0.0.1" in done.reason

    def test_crash(self, team: Team) -> None:
        done = team.run(ReplayArm("keep", PLAN), "crashes")
        assert (done.status, done.success) == ("crashed", None)

    def test_a_model_that_is_down(self, team: Team) -> None:
        policy, team.server.script = team.server.script, lambda _: Reply(status=503)
        try:
            done = team.run(ReplayArm("keep", PLAN))
        finally:
            team.server.script = policy
        assert (done.status, done.success, done.live_calls) == ("error", None, 2)
        assert "503" in done.reason

    def test_an_unrecorded_tool_call(self, team: Team) -> None:
        fix = ReplayArm("fix", CHOICE, Fix("person", "pot"))
        done = team.run(fix)
        assert (done.status, done.success) == ("blocked", None)
        assert "it was not executed" in done.reason
        assert not team.executed.exists()
        done = team.run(fix, live_tools=["count"])
        assert (done.status, done.live_tools) == ("ok", 1)
        team.executed.unlink()


class TestRefused:
    """Arms that cannot be run are refused before anything is started."""

    @pytest.mark.parametrize(
        ("arm", "words"),
        [
            (ReplayArm("fix", REPORT, Fix("person", "There are 310 pieces of kettle.")), "already"),
            (
                ReplayArm("fix", REPORT, Fix("person", " There are 310 pieces of kettle.\n")),
                "already",
            ),
            (ReplayArm("result", COUNTED, Fix("reference", "130")), "already"),
            (ReplayArm("drop", REPORT), "no tool call"),
            (ReplayArm("model", REPORT, Fix("stronger model", model="small")), "already"),
        ],
    )
    def test_no_change(self, team: Team, arm: ReplayArm, words: str) -> None:
        with pytest.raises(NoChange, match=words):
            run_arm(team.recorded, Setup(("/bin/false",)), arm)

    @pytest.mark.parametrize(
        ("arm", "words"),
        [
            (ReplayArm("keep", 9), "There is no step 9; the run has steps 0 to 4"),
            (ReplayArm("keep", -3), "There is no step -3"),
            (ReplayArm("keep", COUNTED), "counter calls count.*nearest is step 0"),
            (
                ReplayArm("result", REPORT, Fix("reference", "1")),
                "not a tool call.*nearest is step 1",
            ),
            (ReplayArm("arguments", COUNTED, Fix("person", "{}")), "not an answer of a model"),
            (ReplayArm("fix", REPORT), "needs a text"),
            (ReplayArm("fix", REPORT, Fix("person", "  ")), "empty"),
            (
                ReplayArm("fix", REPORT, Fix("person", '{"tool_calls": [1]}')),
                "`name` and `arguments`",
            ),
            (ReplayArm("model", REPORT, Fix("stronger model")), "name of a model"),
            (fixed(REPORT, REPORT), "each step once: 2, 2"),
            (fixed(REPORT, COUNTED), "counter calls count.*not an answer of a model"),
            (
                ReplayArm("keep", REPORT, also=fixed(REPORT, PLAN).also),
                "Only corrections of answers and tools' results",
            ),
        ],
    )
    def test_no_such_arm(self, team: Team, arm: ReplayArm, words: str) -> None:
        with pytest.raises(NotAnArm, match=words):
            run_arm(team.recorded, Setup(("/bin/false",)), arm)
