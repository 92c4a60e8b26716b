"""The memory that a training takes on an accelerator, and the settings that follow from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_lab.train.settings import Training

CARDS: Final = (24, 48, 80, 141)
"""Gigabytes of usual accelerators."""
_USABLE: Final = 0.9
_VLLM_SHARE: Final = 0.3
_GB: Final = 1e9


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a dense decoder, under the names of its ``config.json``."""

    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    tie_word_embeddings: bool = False

    @property
    def linear(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each linear layer of a block."""
        hidden, wide = self.hidden_size, self.intermediate_size
        queries = self.num_attention_heads * self.head_dim
        keys = self.num_key_value_heads * self.head_dim
        return [(hidden, queries), (hidden, keys), (hidden, keys), (queries, hidden)] + [
            (hidden, wide)
        ] * 3

    @property
    def parameters(self) -> int:
        """Number of weights; norms are left out."""
        block = sum(inputs * outputs for inputs, outputs in self.linear)
        words = self.vocab_size * self.hidden_size * (1 if self.tie_word_embeddings else 2)
        return self.num_hidden_layers * block + words


def shape_of(model: Path) -> ModelShape | None:
    """Return the sizes of a model's folder; None without a folder, or of a model that is built otherwise."""
    try:
        found: dict[str, Any] = json.loads((model / "config.json").read_text("utf-8"))
        if any("expert" in name for name in found):
            return None
        heads = found["num_attention_heads"]
        usual = {
            "num_key_value_heads": heads,
            "head_dim": found["hidden_size"] // heads,
            "tie_word_embeddings": False,
        }
        names = ModelShape.__dataclass_fields__
        return ModelShape(**{name: found.get(name) or usual[name] for name in names})
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of a training with its settings, in gigabytes.

    Attributes:
        training: the settings.
        at_once: answers that are drawn at a time.
        held: by weights, adapters and optimiser, always.
        drawing: besides, while answers are drawn; with vLLM on the same card nothing.
        learning: besides, while the model learns.
        vllm: the share that vLLM keeps for itself on the same card, always.
        vllm_least: what vLLM needs there for the weights and the longest answer.
        card: memory of the card.
    """

    training: Training
    at_once: int
    held: float
    drawing: float
    learning: float
    vllm: float
    vllm_least: float
    card: float

    @property
    def total(self) -> float:
        """The most that is taken at any time."""
        return self.held + self.vllm + max(self.drawing, self.learning)

    @property
    def fits(self) -> bool:
        """True if a tenth of the card stays free, for what the libraries take and for what lies between."""
        return self.total <= _USABLE * self.card and self.vllm_least <= self.vllm


def plan_of(training: Training, shape: ModelShape, tokens: int, card: float) -> MemoryPlan:
    """Return the memory of a training on a card.

    The weights of a training with adapters take 2 bytes each, and an adapter's weight 16 with its gradient and Adam's two
    moments; without adapters each weight takes 16 (Rajbhandari et al., "ZeRO", arXiv 1910.02054, section 3.1). The cache of
    keys and values takes ``2 * layers * key-value heads * head size * 2`` bytes for each token of each answer that is
    drawn at a time (Shazeer, arXiv 1911.02150, with grouped heads: Ainslie et al., arXiv 2305.13245); reading the prompt
    takes a block's activations. Learning keeps the input of each block, which is computed again (Chen et al., arXiv
    1604.06174), the activations of one block, and three copies of the answer's logits with 4 bytes.

    Args:
        training: the settings.
        shape: of the model.
        tokens: of the longest prompt.
        card: gigabytes of the card.
    """
    rank, bytes_each = training.lora_rank, 2 if training.lora_rank else 4
    layers, hidden, wide = shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size
    weights = shape.parameters * bytes_each
    learned = rank * layers * sum(map(sum, shape.linear)) if rank else shape.parameters
    held = weights + learned * (16 if rank else 12)
    whole = tokens + training.answer_tokens
    at_once = training.micro_batch * training.more["steps_per_generation"]
    cache = 2 * layers * shape.num_key_value_heads * shape.head_dim * bytes_each
    drawing = at_once * (whole * cache + tokens * bytes_each * (4 * hidden + 2 * wide))
    block = bytes_each * (layers * hidden + 8 * hidden + 6 * wide)
    logits = 3 * 4 * training.answer_tokens * shape.vocab_size
    learning = training.micro_batch * (whole * block + logits)
    given = training.more
    own = bool(given.get("use_vllm")) and given.get("vllm_mode", "colocate") == "colocate"
    share = float(given.get("vllm_gpu_memory_utilization", _VLLM_SHARE)) * card if own else 0.0
    least = (2 * shape.parameters + whole * cache) / _GB if own else 0.0
    drawn = 0.0 if given.get("use_vllm") else drawing / _GB
    return MemoryPlan(training, at_once, held / _GB, drawn, learning / _GB, share, least, card)


def fitted(training: Training, shape: ModelShape, tokens: int, card: float) -> MemoryPlan:
    """Return the plan with the most answers at a time that fits a card; where none fits, the smallest.

    Settings that a person has given stay as they are. Those that are found change neither prompts nor answers of a step.
    """
    whole, given = training.prompts * training.generations, dict(training.more)
    plans = []
    for micro in [training.micro_batch] if training.micro_batch else [8, 4, 2, 1]:
        for prompts in range(1, training.prompts + 1):
            drawn = prompts * training.generations
            if training.prompts % prompts == 0 and whole % micro == 0 and drawn % micro == 0:
                more = {"steps_per_generation": drawn // micro, **given}
                found = replace(training, micro_batch=micro, more=more)
                plans.append(plan_of(found, shape, tokens, card))
    fitting = [each for each in plans if each.fits]
    if not fitting:
        return min(plans, key=lambda each: each.total)
    return max(fitting, key=lambda each: (each.at_once, each.training.micro_batch))


def check(plan: MemoryPlan) -> None:
    """Refuse a training that does not fit its card.

    Raises:
        ConfigurationError: it does not; the text names what lowers the memory.
    """
    if not plan.fits:
        raise ConfigurationError(
            f"this training takes {plan.total:.0f} GB, and {_USABLE:.0%} of the accelerator are "
            f"{_USABLE * plan.card:.0f} GB: lower --generations, --answer-tokens or --set vllm_gpu_memory_utilization, train "
            "adapters by --lora, or export with a lower judge_window_tokens"
        )
