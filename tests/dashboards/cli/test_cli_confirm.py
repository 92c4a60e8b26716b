"""`mast-trace confirm` end to end: real processes on a model that reads its input."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from confirmations import REPORT, Failed, failed_shop

from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure of the shop."""
    with failed_shop(tmp_path_factory.mktemp("shop")) as made:
        yield made


def test_the_planted_error_is_confirmed(failed: Failed, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    status = run(failed.arguments("--json"))
    captured = capsys.readouterr()
    assert status == 0, captured.err
    told = json.loads(captured.out)["confirmation"]
    assert (told["status"], told["origin"], told["origin_agent"]) == (
        "confirmed",
        REPORT,
        "counter",
    )
    assert told["live_calls"] == len(failed.server.requests) - 4
    assert not failed.executed.exists()
    assert run(failed.arguments()) == 0
    assert "no replay is left to run" in capsys.readouterr().err
    assert told["live_calls"] == len(failed.server.requests) - 4


def test_a_program_whose_prompts_change_is_proved_in_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The masks that its replays need are kept with the run, so that later replays have them."""
    with failed_shop(tmp_path, "drawn") as failed:
        capsys.readouterr()
        _, *arguments = failed.arguments(way="drawn")
        assert run(["prove", *(each for each in arguments if each != "--yes")]) == 2
        asked = capsys.readouterr().err
        assert "mask 1: recorded '" in asked
        assert "live model calls" in asked
        assert run(["prove", *arguments]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"Confirmed by replay: step {REPORT} (counter)")
        assert run(["replay", *arguments]) == 0
        assert "identical except for 1 masked place:" in capsys.readouterr().out


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure of the shop, which all refusals share."""
    with failed_shop(tmp_path_factory.mktemp("shared")) as made:
        yield made


class TestRefusals:
    """A run that cannot be confirmed is refused before a model is asked, with a remedy."""

    @pytest.fixture
    def prices(self, tmp_path: Path) -> str:
        """A configuration file with the price of the model."""
        file = tmp_path / "prices.toml"
        file.write_text("[judge.judge_prices.small]\ninput = 1\noutput = 2\n")
        return str(file)

    @pytest.fixture
    def refused(self, shared: Failed, capsys: pytest.CaptureFixture[str]):
        """Runs the command, and asserts that no model was asked."""

        def call(*options: str, way: str = "", yes: bool = True) -> tuple[int, str, str]:
            capsys.readouterr()
            asked = len(shared.server.requests)
            arguments = shared.arguments(*options, way=way)
            status = run(arguments if yes else [each for each in arguments if each != "--yes"])
            assert len(shared.server.requests) == asked
            captured = capsys.readouterr()
            return status, captured.out, captured.err

        return call

    def test_nothing_runs_unasked(self, refused, prices: str) -> None:
        status, _, err = refused("--max-calls", "50", "--config", prices, yes=False)
        assert status == 2
        assert "About 50 live model calls, about 0.0" in err
        assert "It ends at 50 calls" in err
        assert "nothing restores them between replays" in err
        assert "Add --yes" in err

    @pytest.mark.parametrize("correction", [("--fix", "2=Order 210."), ("--result", "1=210")])
    def test_an_allowed_answer_is_not_tried_unasked(
        self, refused, correction: tuple[str, str]
    ) -> None:
        status, _, err = refused("--allow-answer", *correction, yes=False)
        assert status == 2
        assert "Add --yes" in err

    @pytest.mark.parametrize(
        ("options", "status", "said"),
        [
            (("--set", "oracle=true"), 1, "takes the answer of run"),
            (("--set", "oracle=/no-such-oracle"), 1, "cannot be started"),
            (("--set", "oracle=sh -c 'exit 3'"), 1, "the oracle ended with 3"),
            (("--set", "reset=sh -c 'echo locked; exit 4'"), 1, "the reset ended with 4: locked"),
            (("--set", "reset=true", "--set", "jobs=2"), 2, "jobs and reset exclude each other"),
            (("--set", "budget.usd=1"), 2, "needs the price of small"),
            (("--set", "budget.dollars=1"), 2, "--set.budget.dollars: there is no such key"),
            (("--set", "oracle"), 2, "--set takes KEY=VALUE"),
            (("--fix", "x"), 2, "--fix is STEP=TEXT"),
            (("--fix", "2=@/no-such-file"), 2, "cannot be read"),
            (("--fix", "2=a", "--fix", "2=b"), 2, "names step 2 twice"),
            (("--fix", "77=a"), 2, "There is no step 77"),
            (("--result", "2=7"), 2, "is not a tool call with a result"),
        ],
    )
    def test_refused(self, refused, options: tuple[str, ...], status: int, said: str) -> None:
        ended, out, err = refused(*options)
        assert (ended, out) == (status, "")
        assert said in err

    def test_live_tools_without_a_reset_are_not_isolated(self, refused) -> None:
        status, out, _ = refused("--set", "live_tools=count", "--json")
        assert status == 1
        told = json.loads(out)["confirmation"]
        assert (told["status"], told["replays"]) == ("not isolated", 0)
        assert "reset=COMMAND names a command" in told["text"]

    def test_an_oracle_that_changes_its_mind(self, refused, tmp_path: Path) -> None:
        """Its first opinions are "wrong", then "right": replays would be judged by chance."""
        oracle = tmp_path / "oracle.py"
        count = tmp_path / "count"
        oracle.write_text(
            "import sys\nfrom pathlib import Path\n"
            f"count = Path({str(count)!r})\n"
            "number = int(count.read_text()) if count.exists() else 0\n"
            "count.write_text(str(number + 1))\n"
            "sys.exit(number < 4)\n"
        )
        status, out, _ = refused("--set", f"oracle={sys.executable} {oracle}", "--json")
        assert status == 1
        assert json.loads(out)["confirmation"]["status"] == "unstable"

    def test_a_fix_that_gives_the_answer_away_is_refused_at_once(self, refused) -> None:
        expected = ("--set", "expected=Order 210 pieces.", "--set", "budget.runs=1")
        options = ("--fix", "2=Order 210.", *expected)
        status, out, err = refused(*options, yes=False)
        assert (status, out) == (2, "")
        assert "The fix of step 2: It holds '210'" in err
        assert "--allow-answer" in err
        assert "Add --yes" not in err
        assert refused("--allow-answer")[0] == 2


def test_a_proof_starts_nothing_for_a_fix_that_gives_the_answer_away(
    shared: Failed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    keys = (f"oracle=sh -c 'touch {asked}; exit 1'", "expected=Order 210 pieces.")
    options = [part for key in keys for part in ("--set", key)]
    arguments = shared.arguments(*options, "--fix", "2=Order 210.")
    assert run(["prove", *arguments[1:]]) == 2
    assert "The fix of step 2: It holds '210'" in capsys.readouterr().err
    assert not asked.exists()


def test_a_fix_that_holds_the_answer_is_tried_for_its_own_sake(
    failed: Failed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is stored of it, so that it can become no confirmation, label or lesson."""
    capsys.readouterr()
    options = ("--allow-answer", "--json", "--fix", "2=There are 130 pieces of kettle. (210)")
    assert run(failed.arguments(*options)) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["given_answer"], told["succeeded"], told["ended"]) == (True, 4, 4)
    with failed.store() as store:
        assert store.query("SELECT count() AS n FROM mast_replays") == [{"n": 0}]


def test_an_oracle_judges_in_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each replay is judged by the oracle, and so is the recorded answer, five times."""
    code = "import sys; sys.exit('210' not in sys.stdin.read())"
    with failed_shop(tmp_path, "no-outcome") as failed:
        capsys.readouterr()
        oracle = f'oracle={sys.executable} -c "{code}"'
        keys = (oracle, "budget.runs=5", "jobs=2", "preload=json")
        options = [part for key in keys for part in ("--set", key)]
        assert run(failed.arguments(*options, "--json", way="no-outcome")) == 1
        told = json.loads(capsys.readouterr().out)
        assert "5 of 5 replays" in told["stopped"]
        with failed.store() as store:
            rows = store.query(
                "SELECT Phase, Status, Outcome, count() AS Count FROM mast_replays FINAL "
                "GROUP BY Phase, Status, Outcome ORDER BY Phase"
            )
    assert rows == [
        {"Phase": "score", "Status": "ok", "Outcome": "failure", "Count": 5},
        {"Phase": "start", "Status": "ok", "Outcome": "success", "Count": 4},
        {"Phase": "verify", "Status": "ok", "Outcome": "failure", "Count": 1},
    ]
