"""A tiny model with random weights, and runs whose decisive step one word tells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judge.builders import RunBuilder

from mast_trace_judge.config import JudgeConfig
from mast_trace_lab.train.export import Export, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mast_trace_lab.train.examples import Example, Question

AGENTS = ("planner", "coder", "tester", "writer")
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] + ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}<go> {% endif %}"
)


def failures(count: int) -> list[Failure]:
    """Failures of four steps each, of as many tasks; the third step is the decisive one."""
    made = []
    for number in range(count):
        run = RunBuilder(f"Task number {number}.", outcome="failure")
        for agent in AGENTS:
            run.says(agent, f"Part {number} of the {agent}.")
        made.append(
            Failure(
                id=f"{number:032x}",
                source="person",
                group=f"{number:032x}",
                run=replace(run.build(), trace_id=f"{number:032x}"),
                step=2,
                agent="tester",
            )
        )
    return made


def examples(count: int, question: Question = "step") -> list[Example]:
    """The examples of these failures."""
    return list(Export(question, JudgeConfig(), "v").examples(failures(count)))


def tiny_model(folder: Path, sayings: Sequence[str] = (), *, context: int = 2048) -> Path:
    """Write a Qwen3 of some thousand parameters, and a tokenizer that knows a few words, or whole sayings."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    words = ["<pad>", "<unk>", "<end>", "<go>", '{"step":', *(f"{n}}}" for n in range(5)), *AGENTS]
    # Numbers of tasks, so that no prompt is another's equal.
    words += [*(f"{number}." for number in range(12)), *sayings]
    words = list(dict.fromkeys(words))
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", eos_token="<end>"
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=2,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def changed(example: Example, **fields: Any) -> Example:
    """The example with other values."""
    return replace(example, **fields)


def renamed(example: Example, agents: dict[int, str]) -> Example:
    """The example with other agents of some steps."""
    steps = tuple(
        replace(step, agent=agents.get(step.index, step.agent)) for step in example.run.steps
    )
    return replace(example, run=replace(example.run, steps=steps))
