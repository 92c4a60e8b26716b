"""Reads options whose value belongs to a step: ``STEP=TEXT``, ``STEP=@FILE``; without typer, as replays are conducted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mast_trace.exceptions import ConfigurationError


def texts_by_step(values: Sequence[str] | None, option: str) -> dict[int, str]:
    """Return the texts of ``STEP=TEXT`` or ``STEP=@FILE``, by step.

    Raises:
        ConfigurationError: a value has another form, a step occurs twice, or a file cannot be read.
    """
    found: dict[int, str] = {}
    for value in values or ():
        step, equals, text = value.partition("=")
        if not equals or not step.strip().isdigit():
            raise ConfigurationError(f"{option} is STEP=TEXT or STEP=@FILE, and not {value!r}")
        number = int(step)
        if number in found:
            raise ConfigurationError(f"{option} names step {number} twice")
        found[number] = text_of(text, option)
    return found


def text_of(value: str, option: str) -> str:
    """Return a text, or the content of the file behind ``@``.

    Raises:
        ConfigurationError: the file cannot be read as UTF-8.
    """
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{option}: {value[1:]} cannot be read: {error}") from error
