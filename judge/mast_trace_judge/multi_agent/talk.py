"""Talk: its price in tokens, and the messages that say nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.multi_agent.measure import Measure, Question, measure, ratio
from mast_trace_judge.multi_agent.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

PRICE: Final = Question(
    "talk",
    "Price of talk",
    "share",
    "Which share of the tokens that models write is text between agents, neither tool call nor answer?",
    "",
    "Talk may be the work itself: the share says what it costs, not whether it was worth it.",
)
READING: Final = Question(
    "reading",
    "Tokens read for each one written",
    "times",
    "How much context do the team's models read for one token that they write?",
    "",
    "Cached input costs less than its tokens: `mast-trace cost` knows the price.",
)
ECHO: Final = Question(
    "echo",
    "Echoes",
    "share",
    "Which share of the agents' messages has less than a tenth of words that nobody in the run had used?",
    "",
    "A confirmation is an echo too, and may be wanted.",
)
_NEW: Final = 0.1


def talk(runs: Sequence[TeamRun]) -> list[Measure]:
    """Return price of talk, tokens read for each one written, and echoes.

    After arXiv 2512.08296 and GEMMAS (arXiv 2507.13190). Tokens after the decisive step are in the costs.
    """
    teams = [run for run in runs if len(run.agents) > 1]
    spoken = [(float(run.spoken), float(run.written)) for run in teams if run.written]
    read = [(float(run.read), float(run.written)) for run in teams if run.read and run.written]
    echoes = [part for part in map(_echoes, teams) if part[1]]
    tokens = "of several agents with counted tokens"
    return [
        measure(PRICE, spoken, ratio, lacking=tokens),
        measure(READING, read, ratio, lacking=tokens),
        measure(ECHO, echoes, ratio, lacking="of several agents that say something twice or more"),
    ]


def _echoes(run: TeamRun) -> tuple[float, float]:
    """Return the number of echoes, and of messages after the first one."""
    used = set(words_of(run.trajectory.task))
    echoes = total = 0
    for place, step in enumerate(run.said):
        words = words_of(step.text)
        if place and words:
            total += 1
            echoes += len(words - used) < _NEW * len(words)
        used |= words
    return echoes, total
