"""Finds out whether the extra `train` is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from mast_trace.exceptions import ConfigurationError

_NEEDED: Final = ("torch", "transformers", "datasets", "accelerate", "trl")


def check_installed(*, lora: bool = False) -> None:
    """Check that everything is there that a training imports.

    Args:
        lora: whether adapters are trained, which needs one package more.

    Raises:
        ConfigurationError: something is missing; the text says what to install.
    """
    needed = (*_NEEDED, "peft") if lora else _NEEDED
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"training needs {', '.join(missing)}: pip install 'mast-trace[train]'. On a machine without "
            "an accelerator install first a torch that brings no CUDA along; docs/how-to/train.md says how"
        )
