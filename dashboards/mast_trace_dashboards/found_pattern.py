"""Finds a pattern by the beginning of its id, with its runs and the commands that go on from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.commands import has_command
from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.document import (
    CommandLine,
    DataTable,
    Line,
    Part,
    Quote,
    Quotes,
    Sentence,
    Words,
)
from mast_trace_dashboards.printable import ID_SHOWN, UNSAFE, clip
from mast_trace_dashboards.programs import any_declared
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import NotFound, newest_runs
from mast_trace_judge.patterns.states import PatternState, save_state
from mast_trace_judge.planted import PLANTED

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_SURE: Final = 0.05
_TEXT: Final = 160
_REASON: Final = 300

LISTER: Final = "mast-trace patterns list"
"""The command that lists patterns."""
_RUNS_PROGRAMS: Final = frozenset({"prove", "replay", "confirm", "inject"})
_KEYS: Final = re.compile(f"{UNSAFE.pattern}|[\t\n]")
_RUNS: Final = 20
_MOST: Final = 10_000


def title(row: Mapping[str, Any]) -> str:
    """Return a pattern's place in a few words: failure mode, agent or edge, tool."""
    mode = FAILURE_MODES.get(row["Code"])
    what = f"{row['Code']} {mode.name}" if mode else "Decisive error without a failure mode"
    agent = row["Agent"] or "unknown agent"
    where = f"{agent} to {row['Peer']}" if row["Peer"] else agent
    return f"{what}: {where}, tool {row['Tool']}" if row["Tool"] else f"{what}: {where}"


def named(row: Mapping[str, Any]) -> str:
    """Return a model's sentence on a pattern, with the model; empty without one."""
    if row["Sentence"]:
        return f"{row['Sentence']} (named by {row['NamedBy']})"
    return ""


def nameless(row: Mapping[str, Any]) -> str:
    """Return why a pattern that a model was asked about has no sentence; empty for all others."""
    if row["Sentence"] or not row["NamedBy"]:
        return ""
    when = f", {row['NamedAt']:%Y-%m-%d %H:%M} UTC" if row["NamedAt"] else ""
    return (
        f"No name: {row['NamedBy']} gave no sentence that holds; its answer could not be read, rested on no quote "
        f"of the runs, or said more than they do{when}"
    )


def naming_problems(
    problems: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return why patterns among some are not named, where a model's last call for a name failed.

    Args:
        problems: rows of the query `pattern_naming`.
        rows: of the query `patterns`.
    """
    waiting = {row["Project"] for row in rows if not row["Sentence"]}
    return [
        f"Patterns{_of(problem['Project'])} without a sentence wait for {problem['NamedBy']}: "
        f"{clip(problem['Reason'], _REASON)} ({problem['AskedAt']:%Y-%m-%d %H:%M} UTC)."
        for problem in problems
        if problem["Project"] in waiting
    ]


def share(row: Mapping[str, Any]) -> str:
    """Return the share of the examined runs with its interval."""
    counts = f"{row['Runs']:,} of {row['Examined']:,} runs"
    if row["Low"] is None or row["High"] is None:
        return counts
    ends = f"{_percent(row['Low'])} to {_percent(row['High'])}"
    return f"{counts}, {_percent(row['Share'])} % ({ends} %)"


def contrast(row: Mapping[str, Any]) -> str:
    """Return how its runs differ from the others in their recorded outcomes."""
    if row["PValue"] is None:
        return "unknown: the outcomes of runs with and without it, failed and successful, are not recorded"
    failed, known = row["Failed"], row["Failed"] + row["Succeeded"]
    rest_failed = row["KnownFailed"] - failed
    rest = row["KnownFailed"] + row["KnownSucceeded"] - known
    others = f"{rest_failed:,} of {rest:,} others" if rest else "there are no others"
    p = row["Corrected"]
    judged = "more often than by chance" if p <= _SURE else "no difference shown"
    return f"{failed:,} of {known:,} failed, {others}: {judged} (p = {p:.2g}, corrected)"


def trend(row: Mapping[str, Any], days: int = 7) -> str:
    """Return the last days' rate beside the rate before."""
    before = row["Examined"] - row["RecentExamined"]
    if row["Trend"] == "unknown":
        return f"unknown: the last {days} days and the time before are not both known"
    late = f"{row['RecentRuns']:,} of {row['RecentExamined']:,} in the last {days} days"
    return f"{row['Trend']}: {late}, {row['Runs'] - row['RecentRuns']:,} of {before:,} before"


def state(row: Mapping[str, Any]) -> str:
    """Return the state with its version and person."""
    named = row["State"]
    if row["StateVersion"]:
        named += f" (in version {row['StateVersion']})" if named == "resolved" else ""
        named += f" after version {row['StateVersion']}" if named == "reopened" else ""
    return f"{named}, by {row['StateBy']}" if row["StateBy"] else named


def decisive(row: Mapping[str, Any]) -> str:
    """Return the typical step, and how often the decisive error is just there."""
    where = f"step {row['TypicalStep']} of {row['TypicalSteps']}"
    if not row["Decided"]:
        return f"{where}; no run has a decisive step"
    return f"{where}; it is the decisive step in {row['DecidedHere']:,} of {row['Decided']:,} runs with one"


def confirmed(row: Mapping[str, Any]) -> str:
    """Return how many of its runs were replayed, and how many of these were confirmed."""
    if not row["Replayed"]:
        return "no run was replayed"
    return f"{row['Confirmed']:,} of {row['Replayed']:,} replayed runs"


def cost(row: Mapping[str, Any], found: Mapping[str, Any], priced: int) -> str:
    """Return the cost of its newest runs.

    Args:
        row: of the query `patterns`.
        found: the total of the query `costs` on these runs; empty if unknown.
        priced: number of these runs.
    """
    if not found.get("Calls"):
        return "unknown: its newest runs record no tokens of model calls"
    whose = f"the newest {priced:,} of its runs" if row["Runs"] > priced else "its runs"
    return f"{cost_words(found['Cost'], found['UnpricedCalls'])} in {whose}"


def text(row: Mapping[str, Any]) -> str:
    """Return the template of its texts, clipped."""
    return clip(row["Text"], _TEXT)


def _of(project: str) -> str:
    return f" of {project}" if project else ""


def _percent(value: float) -> str:
    percent = 100 * value
    return f"{percent:.0f}" if percent >= 10 or percent == 0 else f"{percent:.2g}"


@dataclass(frozen=True)
class FoundPattern:
    """A pattern with its newest runs.

    Attributes:
        row: of the query `patterns`.
        runs: rows of the query `pattern_runs`, newest first.
        successful: id of the newest successful run of its services; empty if there is none.
    """

    row: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]
    successful: str

    @property
    def commands(self) -> tuple[tuple[str, str], ...]:
        """Commands to copy, each with its effect: first `confirm`, then `inject`."""
        project = self.row["Project"]
        waiting = [run for run in self.runs if not run["Replayed"]] or self.runs
        failed = [run for run in waiting if run["Outcome"] == "failure"] or waiting
        run = failed[0]["TraceId"] if failed else "RUN"
        code = self.row["Code"]
        plants = any(each.mode == code for each in PLANTED.values())
        offered = {
            "confirm": (
                "Proves by replays which step decided a run of it",
                command_line("confirm", run, project),
            ),
            "inject": (
                f"Plants {code} in a successful run, and sees whether it fails"
                if plants
                else "Plants faults in a successful run, and sees which make it fail",
                command_line(
                    "inject",
                    self.successful or "SUCCESSFUL_RUN",
                    project,
                    f"--operator {code}" if plants else "",
                ),
            ),
        }
        return tuple(told for command, told in offered.items() if has_command(command))


def find_pattern(
    store: Store,
    name: str,
    *,
    project: str | None = None,
    lister: str = LISTER,
    **given: Any,
) -> FoundPattern:
    """Return a pattern by its id or the beginning of it.

    Args:
        store: the database; one project's, if only that may be seen.
        name: the id, or its beginning.
        project: only this project's.
        lister: the command or the tool by which the asker lists patterns, for the error.
        given: further parameters of the query `patterns`.

    Raises:
        NotFound: there is none.
        ConfigurationError: several ids begin so.
    """
    row = _row(store, name.strip().lower(), project, given, lister)
    owners = {"projects": [row["Project"]]}
    runs = QUERIES["pattern_runs"].run(store, pattern=row["PatternId"], limit=_RUNS, **owners)
    newest = newest_runs(store, outcomes=["success"], services=row["Services"], limit=1, **owners)
    return FoundPattern(row, runs, newest[0]["TraceId"] if newest else "")


def said_of(found: FoundPattern, cost_row: Mapping[str, Any]) -> list[Part]:
    """Return what is said of a pattern: its figures, its newest runs, and the commands that go on from it.

    Args:
        found: the pattern.
        cost_row: the total of the query `costs` on its newest runs; empty if unknown.
    """
    row = found.row
    named_or_not = [Sentence(said) for said in (named(row), nameless(row)) if said]
    quotes = [Quotes([Quote(each) for each in row["Quotes"]])] if row["Quotes"] else []
    facts = {
        "Pattern": row["PatternId"],
        "State": state(row) + (f": {clip(row['Note'], _TEXT)}" if row["Note"] else ""),
        "Share": share(row),
        "Trend": trend(row),
        "Seen": f"{row['FirstSeen']:%Y-%m-%d %H:%M} to {row['LastSeen']:%Y-%m-%d %H:%M} UTC",
        "Text": text(row) if row["Text"] else "",
        "Outcomes": contrast(row),
        "Place": decisive(row),
        "Services": ", ".join(row["Services"]),
        "Versions": ", ".join(row["Versions"]) or "none stated",
        "Tokens": f"{row['Tokens']:,} in its runs",
        "Cost": cost(row, cost_row, len(found.runs)),
        "Confirmed": confirmed(row),
    }
    columns = ("Run", "Started (UTC)", "Service", "Version", "Recorded outcome", "Step", "Replays")
    return [
        *named_or_not,
        *quotes,
        *(
            Sentence((Words(f"{name}: ", "muted"), told), "item")
            for name, told in facts.items()
            if told
        ),
        DataTable("Its newest runs", columns, [_run_cells(run) for run in found.runs]),
        *(CommandLine(effect, line) for effect, line in found.commands),
    ]


def _run_cells(run: Mapping[str, Any]) -> list[Line]:
    of = f"?{urlencode({'project': run['Project']})}" if run["Project"] else ""
    page = f"/runs/{run['TraceId']}{of}"
    replayed = "confirmed" if run["Confirmed"] else "not confirmed"
    return [
        (Words(run["TraceId"][:ID_SHOWN], to=page),),
        f"{run['RunStart']:%Y-%m-%d %H:%M:%S}",
        run["ServiceName"],
        run["Version"] or "-",
        run["Outcome"] or "not recorded",
        (Words(f"step {run['Step']}", to=f"{page}#step-{run['Step']}"),),
        replayed if run["Replayed"] else "-",
    ]


def cost_of(store: Store, found: FoundPattern) -> Mapping[str, Any]:
    """Return the total of the query `costs` on a pattern's newest runs; empty if there are none."""
    only = [run["TraceId"] for run in found.runs]
    if not only:  # The query takes no ids for all runs.
        return {}
    asked = {"only": only, "projects": [found.row["Project"]], "parts": ["total"]}
    return QUERIES["costs"].one(store, **asked) or {}


def set_state(
    store: Store,
    name: str,
    state: str,
    author: str,
    *,
    version: str = "",
    note: str = "",
    project: str | None = None,
    lister: str = LISTER,
) -> PatternState:
    """Record that a pattern is open, acknowledged or resolved; return what was stored.

    Args:
        store: the database; one project's, if only that may be seen.
        name: the pattern's id, or its beginning.
        state: ``open``, ``acknowledged`` or ``resolved``.
        author: who says so.
        version: in which it is resolved; empty if unknown.
        note: for people.
        project: only this project's.
        lister: as in `find_pattern`.

    Raises:
        NotFound: there is no such pattern.
        ConfigurationError: several ids begin with ``name``, or the state cannot be given.
        StorageError: the database does not accept it.
    """
    row = _row(store, name.strip().lower(), project, {}, lister)
    made = PatternState(row["Project"], row["PatternId"], state, author, version.strip(), note)
    save_state(store, made)
    return made


def _row(
    store: Store, name: str, project: str | None, given: Mapping[str, Any], lister: str
) -> Mapping[str, Any]:
    projects = {"projects": [project]} if project is not None else {}
    asked: dict[str, Any] = {"min_runs": 1, "limit": _MOST, **projects, **given}
    rows = QUERIES["patterns"].run(store, **asked)
    found = [row for row in rows if name and row["PatternId"].startswith(name)]
    if not found:
        raise NotFound(f"no pattern's id begins with {name!r}; `{lister}` shows them")
    if len(found) > 1:
        shown = ", ".join(
            f"{row['PatternId']} of {row['Project'] or 'no project'}" for row in found[:5]
        )
        raise ConfigurationError(f"several patterns begin with {name!r}: {shown}; write more of it")
    return found[0]


def command_line(command: str, run: str, project: str, more: str = "") -> str:
    """Return a command on a run; where it runs a program that no configuration file names, with a place for that."""
    # An id that would be read as an option, such as one that names a program to start, is for people to find out.
    run = "RUN" if run.startswith("-") else _word(run)
    of_project = f"--project={_word(project)}" if project else ""
    program = "-- COMMAND" if command in _RUNS_PROGRAMS and not any_declared() else ""
    return " ".join(filter(None, ("mast-trace", command, run, more, of_project, program)))


def _word(text: str) -> str:
    """Return a text as one word of a shell, without characters that a terminal takes for a key."""
    if not _KEYS.search(text):
        return shlex.quote(text)
    text = text.replace("\\", r"\\").replace("'", r"\'")
    coded = _KEYS.sub(lambda found: "".join(f"\\x{n:02x}" for n in found[0].encode()), text)
    return f"$'{coded}'"
