"""Runs of the queue without the judge's word, for as long as a person has not labelled them.

A label that was given beside the verdict repeats it, and says nothing of how often the judge is right.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_dashboards.web.loaded_run import LoadedRun
    from mast_trace_dashboards.web.visitor import Visitor
    from mast_trace_judge.store.labels import HumanLabel

QUEUE: Final = "queue"
"""The parameter of addresses that are opened from the queue."""
LABELLED: Final = "labelled"
"""The parameter with the run whose label was just saved."""
_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")


def is_blind(asked: Mapping[str, str], visitor: Visitor, labels: Sequence[HumanLabel]) -> bool:
    """Return whether the judge's word is hidden: in the queue, until the visitor has labelled the run.

    Without users' names, as in the queue itself, anybody's label counts as the visitor's.

    Args:
        asked: parameters of the address.
        visitor: who looks at the run.
        labels: of the run.
    """
    own = [label for label in labels if not visitor.user or label.annotator == visitor.user]
    return QUEUE in asked and visitor.labels and not own


def blinded(opened: LoadedRun) -> LoadedRun:
    """Return a run without its verdict, and without what replays have shown of it."""
    return replace(opened, verdict=None, calibration=None, confirmation=None)


def just_labelled(asked: Mapping[str, str]) -> str:
    """Return the id of the run whose label was just saved; empty if there is none."""
    named = asked.get(LABELLED, "")
    return named if _RUN_ID.fullmatch(named) else ""
