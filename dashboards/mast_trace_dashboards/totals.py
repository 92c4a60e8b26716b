"""A run's totals in words: inexact numbers are marked as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def tokens_of(row: Mapping[str, Any]) -> str:
    """Return the tokens of a run, input and output, as the queries `runs` and `run` have them."""
    tokens = f"{row['InputTokens'] + row['OutputTokens']:,}"
    if row["Totals"] == "being counted":
        return f"{tokens} (being counted)"
    return tokens if row["Totals"] == "exact" else f"{row['Totals']} {tokens}"
