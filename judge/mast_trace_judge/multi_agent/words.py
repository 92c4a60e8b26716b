"""Words that are specific to a run: few other runs of the system have them.

Measures of who uses whose words need them: with all words, two agents of different runs share as many
as two of one run, because they share a vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]{3,}", re.UNICODE)
_COMPARED: Final = 100_000
"""Characters of a text that are read."""
RARE: Final = 0.02
"""Share of the runs in which a specific word occurs at most; one run is always allowed."""


@lru_cache(maxsize=4096)
def words_of(text: str) -> frozenset[str]:
    """Return the words of three letters or more and the numbers of a text, in lower case."""
    return frozenset(found.lower() for found in _WORD.findall(text[:_COMPARED]))


def specific_words(runs: Sequence[TeamRun]) -> frozenset[str]:
    """Return the words that at most `RARE` of the runs have in an agent's message."""
    occurs: Counter[str] = Counter()
    for run in runs:
        occurs.update(frozenset().union(*(words_of(step.text) for step in run.said)))
    most = max(1, int(RARE * len(runs)))
    return frozenset(word for word, count in occurs.items() if count <= most)
