"""Rendering of lists of runs and of single runs in a terminal; a run is read as far as it is printed.

Colour never carries information alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from mast_trace.taxonomy import mode_words
from mast_trace.trajectory import Step, StepKind
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_dashboards.certainty import BASES, NOBODY, counting, marked, no_place
from mast_trace_dashboards.cli.output import FittedTable, plain, printed
from mast_trace_dashboards.found_run import FoundRun, find_run
from mast_trace_dashboards.printable import clip, counted, id_width
from mast_trace_dashboards.queries.sql import NO_END
from mast_trace_dashboards.run_documents import modes_and_judge, replays_said, where_to_look
from mast_trace_dashboards.run_names import NotFound
from mast_trace_dashboards.run_outcome import NOT_REPORTED, in_words, outcome_words, tokens_of
from mast_trace_dashboards.senders import telemetry_of
from mast_trace_dashboards.stored_run import left_out_words
from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

_PROJECT, _CAUSE = 24, 72
"""Characters of a project and of a cause in a list."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}
_COLUMNS: Final = {
    **dict.fromkeys(("RUN", "OUTCOME", "LOOK FIRST AT", "MODES"), 0),
    "NAME": 60,
    "FRAMEWORK": 110,
    "STARTED": 90,
    "TOOK": 100,
}
"""The columns of the list, each with the characters beside the ids from which on there is room for it."""


def runs_table(rows: Sequence[Mapping[str, Any]], width: int) -> FittedTable:
    """A list of runs, as the query `runs` returns them, for a terminal of this width."""
    ids = id_width(str(row["TraceId"]) for row in rows)
    of_several = len({row["Project"] for row in rows}) > 1
    room = width - ids - _PROJECT * of_several
    names = [name for name, least in _COLUMNS.items() if room >= least]
    names[1:1] = ["PROJECT"] * of_several
    table = FittedTable()
    for name in names:
        wraps = name in {"LOOK FIRST AT", "MODES", "NAME"}
        table.add_column(name, no_wrap=not wraps, justify="right" if name == "TOOK" else "left")
    for row in rows:
        cells = {
            "RUN": str(row["TraceId"])[:ids],
            "PROJECT": plain(clip(row["Project"], _PROJECT)),
            "OUTCOME": outcome(row),
            "LOOK FIRST AT": _place_and_cause(row),
            "MODES": Text("\n".join(map(mode_words, row["Modes"]))),
            "NAME": plain(clip(row["Name"], 32)),
            "FRAMEWORK": plain(clip(row["Framework"], 16)),
            "STARTED": row["Start"].astimezone().strftime("%m-%d %H:%M:%S"),
            "TOOK": in_words(row["DurationMs"]),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def _place_and_cause(row: Mapping[str, Any]) -> Text:
    text = place(row)
    if row["LookWhy"]:
        text.append_text(plain(f"\n{clip(row['LookWhy'], _CAUSE)}", "dim"))
    return text


def outcome(row: Mapping[str, Any]) -> Text:
    """Return how the run ended, and whether the program or the judge recorded it."""
    outcome_word, state, reading = outcome_words(row)
    by = " (judge)" if row["OutcomeSource"] == "judged" and outcome_word in _OUTCOME_STYLES else ""
    # A run without a known end may still be going on, whatever its outcome.
    text = ", ".join(filter(None, [outcome_word + by, state, reading]))
    usual = "yellow" if state == NO_END else "dim"
    return Text(text, style=_OUTCOME_STYLES.get(outcome_word, usual))


def place(row: Mapping[str, Any]) -> Text:
    """Return the agent and step to look at first, whether it is decisive, and the kind of evidence for it.

    The conclusion of replays stands beside it. A failed run without evidence says so.
    """
    status = row["Confirmation"]
    replayed = "" if status in {"", "untested"} else f"{status} by replay"
    if row["LookStep"] is not None:
        basis = "" if replayed and row["LookBasis"] == "confirmed" else BASES[row["LookBasis"]]
        told = ", ".join(filter(None, [basis, replayed]))
        decides = row["DecisiveStep"] == row["LookStep"]
        return Text.assemble(
            ("DECISIVE: " if decides else "", "bold red"),
            plain(clip(row["LookAgent"], 24) or NOBODY, "bold"),
            f", step {row['LookStep']} ({told})",
        )
    if replayed:
        return Text(f"- ({replayed})", style="dim")
    return Text(no_place(row), style="dim")


ALL_OF = 500
"""Number of steps up to which a run is shown whole."""
_FIRST, _LAST = 200, 50
_AROUND = 3
"""Steps before and after one that the verdict names."""
_NAMED = 20
"""Steps of a failure mode that are shown."""


@dataclass(frozen=True)
class RunView(FoundRun):
    """A run as the commands print it; usable while its store is open."""

    @property
    def is_long(self) -> bool:
        """True if counting its steps takes a while, so that not all are shown."""
        return self.stored.is_long

    @property
    def steps_known(self) -> int | None:
        """The number of steps; None where they would have to be counted first."""
        if not self.is_long:
            return self.stored.count
        return self.row["Steps"] if self.row["State"] == "judged" else None

    @property
    def agents(self) -> int:
        """The number of agents, without the user."""
        names: Iterable[str] = self.row["Agents"] if self.is_long else self.stored.outline.agents
        return sum(agent != "user" for agent in names)

    @property
    def task(self) -> str:
        """The task of the run."""
        return self.stored.task() if self.is_long else self.stored.outline.run.task

    def excerpt(self, verdict: Verdict | None) -> Sequence[int]:
        """Return the numbers of the steps to show: all, or both ends and the steps in the verdict."""
        count = self.stored.count
        if count <= ALL_OF:
            return range(count)
        wanted = {*range(_FIRST), *range(count - _LAST, count)}
        named: list[int] = []
        if verdict is not None:
            named += [place.step for place in verdict.look_first]
            named += [verdict.decisive.step] if verdict.decisive else []
            named += [step for mode in verdict.modes for step in mode.steps[:_NAMED]]
        for step in named:
            wanted |= set(range(max(0, step - _AROUND), min(count, step + _AROUND + 1)))
        return sorted(wanted)


def load(
    store: Store, trace_id: str, project: str | None = None, *, idle: float | None = None
) -> RunView:
    """Find one run; see `mast_trace_dashboards.found_run.find_run`.

    Raises:
        NotFound: there is no run with this id.
    """
    found = find_run(store, trace_id, project, idle=idle)
    if found is None:
        raise NotFound(f"there is no run {trace_id}")
    return RunView(**vars(found))


_CLIP = 400
"""Characters of a text that are shown; `--full` shows all."""
_NO_END = (
    ": no spans have arrived for a while. The program may have been killed, or may wait for a person; "
    "later spans open the run again."
)
_AT_ONCE = 500
"""Number of steps that are read and rendered together."""


def verdict_view(shown: FoundRun) -> list[RenderableType]:
    """Return all that is said of a run: where to look first, the failure modes, and what replays have shown."""
    rest = [*modes_and_judge(shown), *replays_said(shown.confirmation)]
    return [*printed(where_to_look(shown)), *printed(rest)]


def run_view(
    shown: RunView, *, numbers: Sequence[int] | None = None, full: bool = False, judged: bool = True
) -> Iterator[RenderableType]:
    """Yield a whole run: summary, where to look first, steps, and the rest of the verdict.

    For a long run all of the verdict comes first: counting its steps takes a while, and not all are shown.

    Args:
        shown: the run.
        numbers: of the steps; if absent, all of a short run and an excerpt of a long one.
        full: show texts in full.
        judged: show the verdict.
    """
    verdict = shown.verdict if judged else None
    yield _title(shown)
    yield ""
    if shown.stored.left_out is not None:
        yield plain(left_out_words(shown.stored.left_out))
        yield from verdict_view(shown) if judged else ()
        return
    if judged:
        yield from verdict_view(shown) if shown.is_long else printed(where_to_look(shown))
        yield ""
    if expected := shown.stored.outline.run.expected:
        yield plain(f"Expected answer: {clip(expected, 600)}\n")
    chosen = shown.excerpt(verdict) if numbers is None else numbers
    yield from steps_view(shown, chosen, verdict, full=full)
    if len(chosen) < shown.stored.count:
        yield plain(
            f"\n{len(chosen):,} of {counted(shown.stored.count, 'step')} are shown; "
            "`--steps 200-699` shows others, `--steps all` all of them.",
            "dim",
        )
    if judged and not shown.is_long:
        yield from printed([*modes_and_judge(shown), *replays_said(shown.confirmation)])


def steps_view(
    shown: RunView,
    numbers: Sequence[int],
    verdict: Verdict | None,
    *,
    full: bool = False,
    header: bool = True,
) -> Iterator[RenderableType]:
    """Yield the steps of these numbers as tables, and a line where some are left out between."""
    before = numbers[0] - 1 if len(numbers) else 0
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        steps = shown.stored.steps(some, clip=None if full else 5 * _CLIP)
        yield _steps_table(steps, verdict, full=full, before=before, header=header and not begin)
        before = some[-1]


def _steps_table(
    steps: Iterable[Step], verdict: Verdict | None, *, full: bool, before: int, header: bool
) -> FittedTable:
    """Return a table of steps with the findings in each.

    Args:
        steps: in order.
        verdict: on the run.
        full: show texts in full.
        before: the number of the step that was shown last.
        header: name the columns.
    """
    table = FittedTable(show_header=header)
    table.add_column("STEP", justify="right", no_wrap=True)
    for name in ("FOUND", "AGENT", "KIND", "TEXT"):
        table.add_column(name, no_wrap=name == "KIND")
    for step in steps:
        if step.index > before + 1:
            left_out = f"(steps {before + 1} to {step.index - 1} are not shown)"
            table.add_row("…", "", "", "", Text(left_out, style="dim"))
        before = step.index
        found = _found(step.index, verdict)
        decides = "DECISIVE" in found
        table.add_row(
            str(step.index),
            found,
            plain(step.agent or "-"),
            _kind(step),
            _text(step, whole=full, wraps=full or decides),
            style="bold red" if decides else "yellow" if "." in found else "",
        )
    return table


def _title(shown: RunView) -> Text:
    row, count = shown.row, shown.steps_known
    facts = [
        row["Framework"],
        counted(row["Spans"], "span") if count is None else counted(count, "step"),
        counted(shown.agents, "agent"),
        in_words(row["DurationMs"]),
        f"tokens {NOT_REPORTED}" if tokens_of(row) == NOT_REPORTED else f"{tokens_of(row)} tokens",
    ]
    title = Text.assemble(plain(row["Name"] or "run", "bold"), " ", (row["TraceId"], "dim"), "\n")
    title.append_text(outcome(row))
    if row["OutcomeReason"]:
        title.append_text(plain(f": {clip(row['OutcomeReason'], 300)}"))
    if row["State"] == NO_END:
        title.append(_NO_END, style="dim")
    title.append_text(plain("\n" + ", ".join(filter(None, facts)), "dim"))
    telemetry = telemetry_of(shown.stored)
    if telemetry.senders:
        title.append_text(plain(f"\nRecorded by {', '.join(telemetry.senders)}", "dim"))
    for lack in telemetry.lacks:
        title.append_text(plain(f"\n{lack}", "yellow"))
    if shown.task:
        title.append_text(Text.assemble("\nTask: ", plain(clip(shown.task, 600))))
    return title


def _kind(step: Step) -> str:
    if step.handoff_to:
        return "hand-over"
    return step.kind.value + (" failed" if step.error else "")


def _text(step: Step, *, whole: bool, wraps: bool) -> Text:
    shown = _shown_text(step, everyone=whole)
    text = plain(shown if whole else clip(shown, 400), "red" if step.error else "")
    if not wraps:
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _shown_text(step: Step, *, everyone: bool) -> str:
    content = step.error or step.text
    if step.handoff_to:
        return f"to {step.handoff_to}: {content}" if content else f"to {step.handoff_to}"
    if step.kind is StepKind.TOOL:
        return f"{step.tool}({_arguments(step.arguments)}) \N{RIGHTWARDS ARROW} {content}"
    if step.recipients:
        many = len(step.recipients) > 2 and not everyone
        to = f"{len(step.recipients)} agents" if many else ", ".join(step.recipients)
        return f"to {to}: {content}"
    return content


def _arguments(text: str) -> str:
    """Render a call's arguments as in Python, if they are named."""
    values = loaded(text)
    if not isinstance(values, dict):
        return text
    return ", ".join(f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in values.items())


def _found(step: int, verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    found = []
    if verdict.decisive is not None and verdict.decisive.step == step:
        proved = proved_step(verdict.confirmation) == step
        found.append("DECISIVE, confirmed" if proved else "DECISIVE")
    else:
        places = [place.step for place in verdict.look_first]
        found += [f"look {places.index(step) + 1}"] if step in places else []
    found += [marked(mode) for mode in counting(verdict) if step in mode.steps]
    return "\n".join(found)
