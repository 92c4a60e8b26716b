"""The seeds of a program's randomness, recorded with its runs so that a replay draws the same."""

from __future__ import annotations

import os
import random
import secrets
from typing import Final

from mast_trace import semconv

SEED_VARIABLE: Final = "MAST_TRACE_REPLAY_SEED"
"""Variable that holds the seed of the recorded run while its program is replayed."""
HASH_SEED: Final = "PYTHONHASHSEED"
_BITS: Final = 32
_DIGITS: Final = len(str(2**_BITS))

_last: list[str] = []


def draw(number: int | None) -> int:
    """Seed `random` with a number, else with that of the recorded run in a replay, else with a new one; return it."""
    if number is None:
        number = int(usable(os.environ.get(SEED_VARIABLE, "")) or secrets.randbits(_BITS))
    random.seed(number)
    _last[:] = [f"{number:d}"] if 0 <= number < 2**_BITS else []
    return number


def usable(seed: str) -> str:
    """Return the text of a seed; empty for any other text, and for a number above 32 bits, with which Python does not start."""
    told = seed.isascii() and seed.isdecimal() and len(seed) <= _DIGITS and int(seed) < 2**_BITS
    return seed if told else ""


def seeds() -> dict[str, str | None]:
    """Return the attributes of a run that begins now, None for what is not known."""
    # Where the order of sets is not fixed, Python's own word is "random".
    hashes = usable(os.environ.get(HASH_SEED, ""))
    return {semconv.RANDOM_SEED: _last[0] if _last else None, semconv.HASH_SEED: hashes or None}
