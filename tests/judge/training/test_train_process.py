"""`mast-trace train run` as a process that is killed and started again. Needs the extra `train`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import toy_training

from mast_trace_lab.train.examples import write_examples

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("trl", reason="needs the extra train")
pytestmark = [pytest.mark.slow, pytest.mark.end_to_end, pytest.mark.timeout(600)]

OPTIONS = (
    *("--steps", "8", "--save-every", "2", "--evaluate-every", "4", "--learning-rate", "0.015"),
    *("--prompts", "4", "--generations", "8", "--micro-batch", "16", "--answer-tokens", "3"),
    *("--held-out", "0.25", "--cpu"),
)


def command(model: Path, data: Path, out: Path) -> list[str]:
    named = ("--model", str(model), "--data", str(data), "--out", str(out))
    return [sys.executable, "-m", "mast_trace_dashboards", "train", "run", *named, *OPTIONS]


def test_a_killed_training_is_continued_to_the_same_model(tmp_path: Path) -> None:
    model, data = toy_training.tiny_model(tmp_path / "tiny"), tmp_path / "train.jsonl"
    write_examples(toy_training.examples(12), data)
    own = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    straight = subprocess.run(
        [*command(model, data, whole), "--json"],
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert straight.returncode == 0, straight.stderr[-3000:]
    told = json.loads(straight.stdout)
    assert told["resumed_at"] is None
    methods = {each["method"] for each in told["scores"]}
    assert {"the model before", "the model after 8 steps", "random step"} <= methods
    assert "the model after 8 steps" in (whole / "report.md").read_text("utf-8")
    assert "Held out, after 4 steps: reward" in straight.stderr

    victim = subprocess.Popen(
        command(model, data, killed), env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list(killed.glob("checkpoints/checkpoint-*/trainer_state.json")):
        assert victim.poll() is None
        time.sleep(0.05)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not (killed / "model").exists()
    again = subprocess.run(
        [*command(model, data, killed), "--json"],
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr[-3000:]
    resumed = json.loads(again.stdout)
    assert resumed["resumed_at"] in {2, 4, 6}
    files = [folder / "model" / "model.safetensors" for folder in (whole, killed)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert resumed["scores"] == told["scores"]
    assert (killed / "curve.jsonl").read_text() == (whole / "curve.jsonl").read_text()
