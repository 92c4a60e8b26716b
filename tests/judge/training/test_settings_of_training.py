"""A training is continued with its own settings alone, and from whole checkpoints alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.memory import CARDS, ModelShape, check, fitted, plan_of, shape_of
from mast_trace_lab.train.settings import Training, begin, last_checkpoint, setting

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = Training("tiny", steps=10)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("examples", "utf-8")
    return path


def checkpoint(folder: Path, step: int, *, whole: bool = True) -> Path:
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    (made / "model.safetensors").write_bytes(b"weights")
    if whole:
        (made / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return made


def test_the_same_settings_continue_and_others_do_not(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    assert begin(out, TRAINING, data) == []
    checkpoint(out / "checkpoints", 5)
    assert begin(out, TRAINING, data) == []
    assert begin(out, replace(TRAINING, steps=20, save_every=1, cpu=True), data) == []
    with pytest.raises(ConfigurationError, match=r"other settings \(learning_rate, step_weight\)"):
        begin(out, replace(TRAINING, learning_rate=0.1, step_weight=0.1), data)
    data.write_text("others", "utf-8")
    with pytest.raises(ConfigurationError, match="the training set"):
        begin(out, TRAINING, data)


def test_a_training_without_a_checkpoint_begins_anew(tmp_path: Path, data: Path) -> None:
    """A first start that failed binds nobody to its settings."""
    out = tmp_path / "out"
    begin(out, TRAINING, data)
    begin(out, replace(TRAINING, model="other"), data)
    checkpoint(out / "checkpoints", 5)
    begin(out, replace(TRAINING, model="other"), data)
    with pytest.raises(ConfigurationError, match="model"):
        begin(out, TRAINING, data)


def test_other_versions_are_told(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    begin(out, TRAINING, data)
    checkpoint(out / "checkpoints", 5)
    record = json.loads((out / "training.json").read_text())
    record["versions"]["torch"] = "0.1"
    (out / "training.json").write_text(json.dumps(record))
    told = begin(out, TRAINING, data)
    assert len(told) == 1
    assert told[0].startswith("torch is ")
    assert told[0].endswith("was 0.1")


def test_folders_of_others_are_left_alone(tmp_path: Path, data: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no training"):
        begin(tmp_path, TRAINING, data)
    out = tmp_path / "out"
    checkpoint(out / "checkpoints", 5)
    (out / "training.json").write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        begin(out, TRAINING, data)


def test_a_checkpoint_that_was_not_finished_is_passed_over(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "none") is None
    whole = checkpoint(tmp_path, 9)
    checkpoint(tmp_path, 10, whole=False)
    torn = checkpoint(tmp_path, 11)
    (torn / "trainer_state.json").write_text('{"global_st')
    (tmp_path / "checkpoint-best").mkdir()
    assert last_checkpoint(tmp_path) == whole


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"generations": 1}, "at least 2"),
        ({"micro_batch": 5}, "does not divide the 32 answers"),
        ({"learning_rate": 0.0}, "above 0"),
        ({"more": {"max_steps": 3}}, "max_steps"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Training("tiny", **given)  # type: ignore[arg-type]


def test_further_settings_are_json_or_text() -> None:
    assert setting("use_vllm=true") == ("use_vllm", True)
    assert setting("vllm_mode=colocate") == ("vllm_mode", "colocate")
    assert setting('chat_template_kwargs={"enable_thinking": false}') == (
        "chat_template_kwargs",
        {"enable_thinking": False},
    )
    for wrong in ("use_vllm", "=1", "a b=1"):
        with pytest.raises(ConfigurationError, match="NAME=VALUE"):
            setting(wrong)


QWEN = ModelShape(36, 4096, 12288, 32, 8, 128, 151_936)
"""Sizes of Qwen3-8B."""
LORA = Training("", lora_rank=16)


def test_the_cache_of_keys_and_values_counts() -> None:
    """32 answers to 25,000 tokens take 118 GB of cache beside 16 GB of weights: they do not fit 80 GB, and 8 do."""
    assert round(QWEN.parameters / 1e9, 1) == 8.2
    whole = replace(LORA, answer_tokens=1, micro_batch=1, more={"steps_per_generation": 32})
    plan = plan_of(whole, QWEN, 24_999, 80)
    read = 32 * 24_999 * 2 * (4 * 4096 + 2 * 12_288) / 1e9
    assert round(plan.drawing - read) == 118
    assert not plan.fits
    found = fitted(LORA, QWEN, 25_000, 80)
    assert (found.at_once, found.training.micro_batch, found.fits) == (8, 2, True)
    assert found.training.answers == LORA.answers
    assert [fitted(LORA, QWEN, 25_000, card).fits for card in CARDS] == [False, False, True, True]
    assert fitted(replace(LORA, generations=4), QWEN, 25_000, 48).fits
    with pytest.raises(ConfigurationError, match="lower --generations"):
        check(fitted(LORA, QWEN, 25_000, 48))


@pytest.mark.parametrize(
    ("mode", "share", "fits"),
    [
        ("colocate", 0.3, True),
        ("colocate", 0.5, False),
        ("colocate", 0.2, False),
        ("server", 0.5, True),
    ],
)
def test_the_share_of_vllm_counts(mode: str, share: float, fits: bool) -> None:
    """Half of the card leaves too little for the training, a fifth too little for vLLM's own copy of the weights."""
    more = {"use_vllm": True, "vllm_mode": mode, "vllm_gpu_memory_utilization": share}
    plan = fitted(replace(LORA, micro_batch=2, more=more), QWEN, 25_000, 80)
    assert plan.fits == fits
    assert plan.vllm == (80 * share if mode == "colocate" else 0)


def test_what_a_person_sets_stays() -> None:
    given = replace(LORA, micro_batch=1, more={"steps_per_generation": 8})
    assert fitted(given, QWEN, 1000, 141).training == given


@pytest.mark.parametrize("broken", ["{", "[]", "{}", '{"num_experts": 8}'])
def test_models_of_another_kind_have_no_plan(tmp_path: Path, broken: str) -> None:
    (tmp_path / "config.json").write_text(broken)
    assert shape_of(tmp_path) is None
    assert shape_of(tmp_path / "none") is None
