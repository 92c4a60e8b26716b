"""The order of prompts in a training, and answers to the held-out ones. Needs the extra `train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from trl.trainer.utils import RepeatSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mast_trace_lab.train.examples import Example


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
