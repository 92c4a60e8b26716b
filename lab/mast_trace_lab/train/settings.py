"""The settings of a training, and the file beside its checkpoints that holds them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from mast_trace.exceptions import ConfigurationError

RECORD: Final = "training.json"
CHECKPOINTS: Final = "checkpoints"
"""Folder of the checkpoints in that of a training."""
_MAY_CHANGE: Final = {"steps", "save_every", "evaluate_every", "cpu"}
"""Settings that another start of the same training may change: none decides on the weights of a step."""
_DECIDING: Final = ("torch", "transformers", "trl", "accelerate", "peft")


@dataclass(frozen=True)
class Training:
    """The settings of one training.

    Attributes:
        model: name or folder of the model.
        steps: optimiser steps in all.
        prompts: prompts a step.
        generations: answers to each prompt, which are compared with each other.
        micro_batch: answers that pass through the model at a time; 0: by the memory of the accelerator.
        learning_rate: constant.
        step_weight: lambda of the reward.
        sigma: of the reward, in steps of a run; None: by the length of the run.
        beta: weight of the distance from the untrained model; 0 spares its copy.
        temperature: at which answers are drawn.
        answer_tokens: longest answer in tokens.
        held_out: share of the examples to hold out.
        all_operators: train on operators too that are marked as held out.
        lora_rank: rank of the adapters; 0 trains all weights.
        evaluate_every: steps between two looks at the held-out examples.
        save_every: steps between two checkpoints.
        seed: of everything that is drawn.
        cpu: leave an accelerator alone.
        more: further fields of TRL's ``GRPOConfig``, by name.
    """

    model: str
    steps: int = 200
    prompts: int = 4
    generations: int = 8
    micro_batch: int = 0
    learning_rate: float = 1e-6
    step_weight: float = 0.5
    sigma: float | None = None
    beta: float = 0.0
    temperature: float = 1.0
    answer_tokens: int = 1024
    held_out: float = 0.2
    all_operators: bool = False
    lora_rank: int = 0
    evaluate_every: int = 50
    save_every: int = 50
    seed: int = 0
    cpu: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigurationError: some do not fit together; the text says which.
        """
        if self.generations < 2:
            raise ConfigurationError("GRPO compares answers: --generations is at least 2")
        answers = self.answers
        if self.micro_batch and answers % self.micro_batch:
            raise ConfigurationError(
                f"--micro-batch {self.micro_batch} does not divide the {answers} answers of a step "
                "(--prompts times --generations)"
            )
        if not self.learning_rate > 0.0:
            raise ConfigurationError(f"a learning rate is above 0, not {self.learning_rate:g}")
        if taken := sorted(set(self.more) & OWN_FIELDS):
            raise ConfigurationError(f"--set {taken[0]}: mast-trace sets this field itself")

    @property
    def answers(self) -> int:
        """Number of answers of a step."""
        return self.prompts * self.generations


OWN_FIELDS: Final = {
    "output_dir", "max_steps", "num_generations", "per_device_train_batch_size", "seed",
    "gradient_accumulation_steps", "learning_rate", "beta", "temperature", "save_steps", "use_cpu",
    "max_completion_length", "save_strategy", "remove_unused_columns", "generation_batch_size",
    "num_train_epochs", "data_seed", "push_to_hub", "eval_strategy",
    "load_best_model_at_end", "resume_from_checkpoint", "num_iterations", "ignore_data_skip",
}  # fmt: skip
"""Fields of ``GRPOConfig`` on which an exact resume, the held-out curve or the files depend."""


def setting(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; the value is JSON, else a text.

    Raises:
        ConfigurationError: there is no name.
    """
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise ConfigurationError(f"--set takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def begin(folder: Path, training: Training, data: Path) -> list[str]:
    """Record a new training in its folder, or check that this one continues the one there.

    A training without a checkpoint begins anew.

    Returns:
        What has changed since the training began and may make it come out differently.

    Raises:
        ConfigurationError: the folder has another training, or other files.
        OSError: the folder cannot be used.
    """
    record = folder / RECORD
    versions_now = {name: _version(name) for name in _DECIDING}
    now = {
        "settings": asdict(training),
        "data": hashlib.sha256(data.read_bytes()).hexdigest(),
        "versions": versions_now,
    }
    if not record.exists() or last_checkpoint(folder / CHECKPOINTS) is None:
        if not record.exists() and folder.exists() and any(folder.iterdir()):
            raise ConfigurationError(
                f"{folder} is not empty and holds no training: name a new folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
        return []
    try:
        before = json.loads(record.read_text("utf-8"))
        changed = [
            name
            for name, value in json.loads(json.dumps(now["settings"])).items()
            if before["settings"].get(name) != value and name not in _MAY_CHANGE
        ]
        same_data, versions = before["data"] == now["data"], before["versions"]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigurationError(f"{record} cannot be read: name a new folder") from error
    if changed or not same_data:
        what = ", ".join([*changed, *([] if same_data else ["the training set"])])
        raise ConfigurationError(
            f"{folder} holds a training with other settings ({what}): repeat them to continue it, or "
            "name a new folder"
        )
    return [
        f"{name} is {here}, and was {versions.get(name)}"
        for name, here in versions_now.items()
        if versions.get(name) != here
    ]


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last checkpoint that was written to its end; None if there is none."""
    found = [
        (int(path.name.rpartition("-")[2]), path)
        for path in folder.glob("checkpoint-*")
        if path.name.rpartition("-")[2].isdecimal()
    ]
    for step, path in sorted(found, reverse=True):
        try:
            # This file is the last that is written.
            state = json.loads((path / "trainer_state.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(state, dict) and state.get("global_step") == step:
            return path
    return None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
