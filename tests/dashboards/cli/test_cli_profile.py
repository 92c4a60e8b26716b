"""`mast-trace profile` on stored teams of which it is known how multi-agent they are."""

from __future__ import annotations

import json

import pytest
import scripted_teams as teams

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"chdb://{tmp_path_factory.mktemp('data')}"
    with Store.open(url) as store:
        migrate(store)
        teams.stored(store, "hidden", teams.hidden_profile, 24)
        teams.stored(store, "stamps", teams.rubber_stamp, 24)
        teams.stored(store, "young", teams.relay, 3)
        arms = {"hidden": "crew", "stamps": "one", "young": "two"}
        store.insert(
            "mast_experiment_runs",
            [
                {
                    "TraceId": row["TraceId"],
                    "Experiment": "size",
                    "Arm": arms[row["ServiceName"]],
                    "Task": row["TraceId"],
                    "Start": row["Start"],
                }
                for row in store.query("SELECT TraceId, ServiceName, Start FROM mast_runs")
            ],
        )
    return url


def test_a_profile_has_values_and_chance(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "hidden", "--url", url]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "24 runs read, 24 of them of several agents" in told
    assert "Uptake of what is new" in told
    assert "By chance: the same messages with their authors shuffled within the run." in told
    assert "Price of talk: 0 of at least 20 runs of several agents with counted tokens" in told


def test_as_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "stamps", "--json", "--url", url]) == 0
    told = json.loads(capsys.readouterr().out)
    values = {each["question"]["code"]: each["value"] for each in told["profile"]["measures"]}
    assert values["review_yield"] == 0
    assert values["talk"] is None


def test_arms_are_compared_with_the_team(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "hidden", "--experiment", "size", "--url", url]) == 0
    told = capsys.readouterr().out
    assert "crew: 24 of 24 runs succeeded" in told
    assert "crew against one: +100 points of success (+80 to +100), 0.0 times the failures" in told
    assert "crew against two: not compared below 20 runs with an outcome on each side" in told
    options = ["--experiment", "size", "--team", "one", "--json", "--url", url]
    assert run(["profile", "hidden", *options]) == 0
    gaps = json.loads(capsys.readouterr().out)["gaps"]
    (found,) = [each for each in gaps if each["other"]["variant"] == "crew"]
    assert found["difference"] == -1
    assert found["amplification"] is None  # the other never fails


def test_few_runs_are_named_and_not_measured(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "young", "--url", url]) == 0
    told = capsys.readouterr().out
    assert "3 of at least 20 runs" in told
    assert "%" not in told


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nobody"], 1, "nobody has no such finished runs"),
        (["hidden", "--version", "9"], 1, "has no such finished runs"),
        ([], 2, "name one of the services: "),
        (["hidden", "--since", "yesterday-ish"], 2, "yesterday-ish"),
        (["hidden", "--experiment", "none"], 1, "there is no experiment none with runs yet"),
        (["hidden", "--experiment", "size", "--team", "x"], 1, "it has crew, one, two"),
        (["hidden", "--team", "x"], 2, "give both"),
    ],
)
def test_errors_say_what_to_do(
    url: str, arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", *arguments, "--url", url]) == status
    assert words in capsys.readouterr().err
