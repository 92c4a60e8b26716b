"""From people's labels to a trained judge whose agreement is measured: export, train, serve, judge, agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_training
from judge.training.test_reward import reading
from judge.worker.stored_runs import StoredRun, write

from mast_trace_collector.storage import Store, migrate
from mast_trace_judge.store.labels import HumanLabel, save_labels

pytest.importorskip("trl", reason="needs the extra train")
pytestmark = [pytest.mark.slow, pytest.mark.end_to_end, pytest.mark.timeout(600)]

RUNS, GUILTY = 12, 2
SERVER = Path(__file__).with_name("model_server.py")
SAYINGS = [
    reading({"step": step, "quotes": [f"of the {agent}."]})
    for step, agent in enumerate(toy_training.AGENTS)
]
"""Whole answers to the judge's question, each a word of the tiny model's, which has to learn the right one."""
OPTIONS = (
    *("--steps", "6", "--save-every", "6", "--evaluate-every", "6", "--learning-rate", "0.02"),
    *("--prompts", "4", "--generations", "8", "--micro-batch", "32", "--answer-tokens", "2"),
    *("--held-out", "0.25", "--cpu"),
)


def called(*command: str, **variables: str) -> dict[str, Any]:
    """Run a command of ours, and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "mast_trace_dashboards", *command, "--json"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


def test_labels_become_a_judge_that_agrees_with_them(tmp_path: Path) -> None:
    place = ("--url", f"chdb://{tmp_path / 'store'}")
    with Store.open(place[1]) as store:
        migrate(store)
        for number in range(1, RUNS + 1):
            run = StoredRun(number, outcome="failure")
            for agent in toy_training.AGENTS:
                run.says(agent, f"Part {number} of the {agent}.")
            write(store, run)
            save_labels(
                store,
                [HumanLabel(run.trace_id, "ada", decisive_step=GUILTY, decisive_agent="tester")],
            )
    data, out = tmp_path / "train.jsonl", tmp_path / "trained"
    exported = called("train", "export", "--out", str(data), *place)
    assert (exported["question"], exported["by_source"]) == ("read", {"person": RUNS})
    model = toy_training.tiny_model(tmp_path / "tiny", SAYINGS, context=8192)
    files = ("--model", str(model), "--data", str(data), "--out", str(out))
    trained = called("train", "run", *files, *OPTIONS)
    steps = {each["method"]: each["shares"]["step"]["value"] for each in trained["scores"]}
    assert (steps["the model before"], steps["the model after 6 steps"]) == (0.0, 1.0)
    with subprocess.Popen(
        [sys.executable, SERVER, trained["model"], "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        address = server.stdout.readline().strip()
        settings = {
            "MAST_TRACE_JUDGE_MODEL": "ours",
            "MAST_TRACE_JUDGE_BASE_URL": f"{address}/v1",
        }
        judged = called("judge", "run", "--since", "1d", *place, **settings)
        server.communicate()
    assert (judged["judged"], judged["ok"]) == (RUNS, RUNS)
    (found,) = called("judge", "agree", *place)["models"]
    assert (found["model"], found["hits"], found["cases"]) == (
        "ours",
        {"beside": RUNS},
        {"beside": RUNS},
    )
