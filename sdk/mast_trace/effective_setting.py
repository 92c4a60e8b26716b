"""The effective value of a setting, for `doctor` and `config` to print."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EffectiveSetting:
    """The effective value of a setting.

    Attributes:
        name: of the setting.
        value: as text, with passwords masked.
        origin: ``argument``, the name of a variable, the path of a file, or ``default``.
    """

    name: str
    value: str
    origin: str
