"""An answer of `mast_trace.feedback` as it is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(eq=False)
class Given:
    """One answer; equal only to itself, since a program may ask the same twice.

    Attributes:
        shape: its parts as JSON types.
        waiting: no run has been given it yet.
    """

    shape: Mapping[str, Any]
    waiting: bool = True
