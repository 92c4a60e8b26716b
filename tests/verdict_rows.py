"""Rows of the table of verdicts, as the judge writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    Mode = tuple[str, float, str]


def verdict_row(
    number: int, at: datetime, modes: Sequence[str | Mode] = (), **columns: Any
) -> dict[str, Any]:
    """The row of a run that began and ended at a moment, and was judged then.

    Args:
        number: of the run, of which its id is made.
        at: the moment.
        modes: codes of its failure modes, or code, probability and kind of evidence of each.
        columns: further columns, and others' values.
    """
    told = [(each, 0.9, "exact") if isinstance(each, str) else each for each in modes]
    return {
        "TraceId": f"{number:032x}",
        "Fingerprint": "f",
        "JudgeVersion": "v",
        "JudgedAt": at,
        "Status": "ok",
        "RunStart": at,
        "RunEnd": at,
        "Modes.Code": [code for code, _, _ in told],
        "Modes.Probability": [probability for _, probability, _ in told],
        "Modes.Evidence": [kind for _, _, kind in told],
        "Modes.Reason": [""] * len(told),
        "Modes.Steps": [[1]] * len(told),
        "Modes.SpanIds": [["a"]] * len(told),
        "Modes.Quotes": [[]] * len(told),
        **columns,
    }
