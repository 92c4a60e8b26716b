"""Runs GRPO: model, adapters, checkpoints, resume, held-out curve. Needs the extra `train`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import RepeatSampler

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.examples import Division, Example, Reward, named_step
from mast_trace_lab.train.memory import MemoryPlan, check, fitted, shape_of
from mast_trace_lab.train.report import CurvePoint, point_of, read_curve, write_curve
from mast_trace_lab.train.settings import CHECKPOINTS, Training, last_checkpoint

MODEL = "model"


class Passes(RepeatSampler):  # type: ignore[misc]  # untyped
    """As many passes over the prompts as a training takes, each in an order of its own.

    To the trainer all passes are one epoch: TRL's sampler would begin every resumed epoch with the
    order of the first.
    """

    def __init__(self, passes: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._passes = passes

    def __iter__(self) -> Iterator[int]:
        """Yield places of prompts."""
        self.generator.manual_seed(self.seed)
        for _ in range(self._passes):
            yield from super().__iter__()

    def __len__(self) -> int:
        """Return the number of places."""
        return self._passes * int(super().__len__())


def answers(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    *,
    tokens: int,
    at_once: int,
    template: dict[str, Any],
    tick: Callable[[int], None],
) -> list[str]:
    """Return the model's likeliest answers; nothing is drawn, and no state of a generator changes.

    Args:
        model: answers; it is left in training or evaluation, as it was.
        tokenizer: of the model.
        examples: with the prompts.
        tokens: longest answer.
        at_once: prompts that pass through the model at a time.
        template: arguments of the chat template.
        tick: is called after each batch with the number of its prompts.
    """
    was_training, side = model.training, tokenizer.padding_side
    model.eval()
    tokenizer.padding_side = "left"
    found: list[str] = []
    try:
        for begin in range(0, len(examples), at_once):
            batch = examples[begin : begin + at_once]
            given = tokenizer.apply_chat_template(
                [list(each.prompt) for each in batch],
                add_generation_prompt=True,
                tokenize=True,
                padding=True,
                return_tensors="pt",
                return_dict=True,
                **template,
            ).to(model.device)
            with torch.inference_mode(), torch.random.fork_rng(enabled=True):
                made = model.generate(
                    **given,
                    do_sample=False,
                    max_new_tokens=tokens,
                    pad_token_id=tokenizer.pad_token_id,
                )
            new = made[:, given["input_ids"].shape[1] :]
            found += tokenizer.batch_decode(new, skip_special_tokens=True)
            tick(len(batch))
    finally:
        tokenizer.padding_side = side
        model.train(was_training)
    return found


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        model: folder of the trained model, adapters merged into it.
        resumed_at: step of the checkpoint from which it went on; None for a new training.
        curve: all looks at the held-out examples.
    """

    model: Path
    resumed_at: int | None
    curve: tuple[CurvePoint, ...]


def train(
    division: Division,
    training: Training,
    folder: Path,
    *,
    told: Callable[[CurvePoint], None] = lambda _: None,
    planned: Callable[[MemoryPlan], None] = lambda _: None,
    bars: bool = False,
) -> Trained:
    """Train a model, from its last checkpoint on if there is one.

    Args:
        division: the examples.
        training: the settings.
        folder: of the training.
        told: is called after each look at the held-out examples.
        planned: is called with the memory that an accelerator needs, before the model is loaded.
        bars: show progress bars on standard error.

    Raises:
        ConfigurationError: the model cannot be loaded, has no chat template, its context is too
            short for the examples, or the accelerator too small.
    """
    reward = Reward(training.step_weight, training.sigma)
    tokenizer = _tokenizer(training.model)
    template = _template(training)
    longest = _longest(division.train + division.held_out, tokenizer, template)
    training = _sized(training, longest, planned)
    config = _config(training, folder, bars=bars)
    rows = _rows(division.train, training)
    model = _model(training)
    context = getattr(model.config, "max_position_embeddings", None) or math.inf
    _check_length(longest, training, context)
    checkpoint = last_checkpoint(folder / CHECKPOINTS)
    resumed_at = None if checkpoint is None else int(checkpoint.name.rpartition("-")[2])
    by_id = {each.id: each for each in division.train}

    def rewarded(completions: Sequence[Any], id: Sequence[str], **_: Any) -> list[float]:  # noqa: A002
        texts = (each[0]["content"] for each in completions)
        return [reward.of_text(text, by_id[name]) for text, name in zip(texts, id, strict=True)]

    looks = _Looks(division.held_out, training, folder, reward, tokenizer, template, told)
    looks.points = [each for each in read_curve(folder) if each.at <= (resumed_at or 0)]
    trainer = _Trainer(
        model=model,
        reward_funcs=rewarded,
        args=config,
        train_dataset=rows,
        processing_class=tokenizer,
        callbacks=[looks],
        peft_config=_adapters(training),
    )
    # Standard output belongs to the caller; the figures of each step are in the checkpoints.
    trainer.remove_callback(PrinterCallback)
    if resumed_at is None:
        looks.look(trainer.model, 0)
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if not any(each.at == trainer.state.global_step for each in looks.points):
        looks.look(trainer.model, trainer.state.global_step)
    trained = trainer.accelerator.unwrap_model(trainer.model)
    whole = trained.merge_and_unload() if training.lora_rank else trained
    whole.save_pretrained(folder / MODEL)
    tokenizer.save_pretrained(folder / MODEL)
    return Trained(folder / MODEL, resumed_at, tuple(looks.points))


class _Trainer(GRPOTrainer):  # type: ignore[misc]  # untyped
    def _get_train_sampler(self, dataset: Any = None) -> Any:
        rows = self.train_dataset if dataset is None else dataset
        prompts = self.args.generation_batch_size // self.num_generations
        # A pass leaves out prompts that fill no step of their own.
        whole = len(rows) // prompts
        drawings = self.args.gradient_accumulation_steps / self.args.steps_per_generation
        return Passes(
            passes=math.ceil(self.args.max_steps * drawings / whole),
            data_source=rows,
            mini_repeat_count=self.num_generations,
            batch_size=prompts,
            repeat_count=self.num_iterations * self.args.steps_per_generation,
            shuffle=True,
            seed=self.args.seed,
        )


class _Looks(TrainerCallback):  # type: ignore[misc]  # untyped
    """Looks at the held-out examples while a training goes on."""

    def __init__(
        self,
        examples: Sequence[Example],
        training: Training,
        folder: Path,
        reward: Reward,
        tokenizer: Any,
        template: Mapping[str, Any],
        told: Callable[[CurvePoint], None],
    ) -> None:
        self.points: list[CurvePoint] = []
        self._examples, self._training, self._folder = examples, training, folder
        self._reward, self._tokenizer, self._template = reward, tokenizer, dict(template)
        self._told = told

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:  # noqa: ARG002
        """Look at the examples where it is time to."""
        if state.global_step % self._training.evaluate_every == 0:
            self.look(more["model"], state.global_step)

    def look(self, model: Any, at: int) -> None:
        """Let the model answer, score the answers, and write the curve."""
        texts = answers(
            model,
            self._tokenizer,
            self._examples,
            tokens=self._training.answer_tokens,
            at_once=self._training.micro_batch,
            template=self._template,
            tick=lambda _: None,
        )
        named = [named_step(text, each) for text, each in zip(texts, self._examples, strict=True)]
        point = point_of(at, self._examples, named, self._reward)
        self.points.append(point)
        write_curve(self._folder, self.points)
        self._told(point)


def _config(training: Training, folder: Path, *, bars: bool) -> Any:
    cuda = torch.cuda.is_available() and not training.cpu
    own = {
        "output_dir": str(folder / CHECKPOINTS),
        "max_steps": training.steps,
        "num_generations": training.generations,
        "per_device_train_batch_size": training.micro_batch,
        "gradient_accumulation_steps": training.prompts
        * training.generations
        // training.micro_batch,
        "learning_rate": training.learning_rate,
        "beta": training.beta,
        "temperature": training.temperature,
        "max_completion_length": training.answer_tokens,
        "save_strategy": "steps",
        "save_steps": training.save_every,
        "seed": training.seed,
        "use_cpu": training.cpu,
        # Columns beside the prompt go to the reward.
        "remove_unused_columns": False,
    }
    default: dict[str, Any] = {
        "bf16": cuda and torch.cuda.is_bf16_supported(),
        # A training that is continued with more steps has to be the longer training's beginning.
        "lr_scheduler_type": "constant",
        "logging_steps": 1,
        "disable_tqdm": not bars,
        "report_to": [],
        "save_total_limit": 3,
    }
    try:
        return GRPOConfig(**{**default, **training.more, **own})
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"TRL's GRPOConfig refuses these settings: {error}") from error


def _tokenizer(name: str) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(_unloadable(name, error)) from error
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"{name} has no chat template: take a model that was tuned to chat"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _model(training: Training) -> Any:
    cuda = torch.cuda.is_available() and not training.cpu
    kind = torch.bfloat16 if cuda and training.lora_rank else torch.float32
    try:
        return AutoModelForCausalLM.from_pretrained(
            training.model, dtype=kind, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(_unloadable(training.model, error)) from error


def _unloadable(name: str, error: Exception) -> str:
    told = " ".join(str(error).split())[:300]
    return (
        f"the model {name} cannot be loaded: {told}. Name a folder, or a model that was downloaded"
    )


def _adapters(training: Training) -> Any:
    if not training.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=training.lora_rank,
        lora_alpha=2 * training.lora_rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _template(training: Training) -> dict[str, Any]:
    given = training.more.get("chat_template_kwargs") or {}
    if not isinstance(given, dict):
        raise ConfigurationError("--set chat_template_kwargs takes a JSON object")
    return given


def _rows(examples: Sequence[Example], training: Training) -> Any:
    if len(examples) < training.prompts:
        raise ConfigurationError(
            f"{len(examples)} examples to train on are fewer than the {training.prompts} prompts of a "
            "step: label more failures, or lower --prompts"
        )
    rows = [{"prompt": list(each.prompt), "id": each.id} for each in examples]
    return Dataset.from_list(rows)


def _longest(examples: Sequence[Example], tokenizer: Any, template: Mapping[str, Any]) -> int:
    return max(
        len(
            tokenizer.apply_chat_template(
                list(each.prompt), add_generation_prompt=True, return_dict=True, **template
            )["input_ids"]
        )
        for each in examples
    )


def _sized(training: Training, longest: int, planned: Callable[[MemoryPlan], None]) -> Training:
    """Return the settings that fit the accelerator; without one, or for a model of another kind, the usual ones."""
    shape = shape_of(Path(training.model))
    if training.cpu or not torch.cuda.is_available() or shape is None:
        return replace(training, micro_batch=training.micro_batch or math.gcd(4, training.answers))
    card = torch.cuda.get_device_properties(0).total_memory / 1e9
    plan = fitted(training, shape, longest, card)
    planned(plan)
    check(plan)
    return plan.training


def _check_length(longest: int, training: Training, context: float) -> None:
    if longest + training.answer_tokens > context:
        raise ConfigurationError(
            f"the longest prompt has {longest} tokens, and with {training.answer_tokens} for the answer "
            f"exceeds the model's context of {context}: export with a lower judge_window_tokens, or "
            "lower --answer-tokens"
        )
