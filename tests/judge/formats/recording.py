"""The small run that every sample holds, and how samples are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "samples"
QUESTION = "How many blue pens are left?"
ARGUMENTS = {"item": "blue pen"}
RESULT = "12 in stock"
ANSWER = "There are 12 blue pens left."
REPORT = "Report: 12 blue pens."
SYSTEM = "You count what is in stock."


def count_stock(item: str) -> str:
    """Count what is in stock."""
    return RESULT


def write(name: str, value: Any, *, indent: int | None = 1) -> None:
    (SAMPLES / name).write_text(json.dumps(value, indent=indent) + "\n", encoding="utf-8")


def write_lines(name: str, values: list[Any]) -> None:
    text = "".join(json.dumps(value) + "\n" for value in values)
    (SAMPLES / name).write_text(text, encoding="utf-8")
