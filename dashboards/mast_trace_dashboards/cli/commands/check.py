"""`mast-trace check`: a gate that compares the rates of new runs with a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import draft_of, fail, print_document, print_json
from mast_trace_dashboards.gate import (
    Sides,
    WantedSides,
    count_sides,
    facts,
    junit,
    junit_without,
    markdown,
    markdown_without,
    said_of,
)
from mast_trace_dashboards.printable import safe
from mast_trace_dashboards.run_names import parse_time
from mast_trace_judge.gate.comparison import RateComparison, compare

MISUSED: Final = 2
"""Exit status of arguments and settings that cannot be used."""
UNDECIDED: Final = 3
"""Exit status if nothing could have been found worse: nothing judged, no baseline, too few runs, no database."""

WORSE: Final = 1
"""Exit status if a rate is higher than the baseline's."""
_AGE: Final = re.compile(r"\d+\s*[smhdw]")
_VERSION: Final = "version:"


@contextmanager
def never_worse(junit_file: Path | None, markdown_file: Path | None) -> Iterator[None]:
    """End a check that compared nothing as undecided or misused, with reports that say why.

    Status 1, with which other commands fail, would mean that a rate is higher.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (MastTraceError, OSError) as error:
        reason = str(error)
        for path, write in ((junit_file, junit_without), (markdown_file, markdown_without)):
            if path is not None:
                # The reason may be that this file cannot be written.
                with suppress(ConfigurationError):
                    write_report(path, write(reason))
        fail(reason)
        misused = isinstance(error, ConfigurationError)
        raise typer.Exit(MISUSED if misused else UNDECIDED) from error


def write_report(path: Path, text: str) -> None:
    """Write a report.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    try:
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error


class Rates(str, Enum):
    """The rates that are compared."""

    all = "all"
    failures = "failures"
    modes = "modes"


def check(
    baseline: Annotated[
        str,
        typer.Option(
            help="The runs to compare with: those of a version or branch, or those of a time before "
            "--since: 7d. `version:7d` is a version of such a name.",
        ),
    ],
    since: Annotated[
        str, typer.Option(help="The new runs: those that started since then: 15m, 2h, or a time.")
    ] = "1h",
    version: Annotated[
        str,
        typer.Option(
            help="Only new runs of this version or branch.", show_default="all but the baseline's"
        ),
    ] = "",
    lookback: Annotated[
        str, typer.Option(help="Age up to which runs of the baseline's version count.")
    ] = "30d",
    service: Annotated[list[str] | None, typer.Option(help="Only this service's runs.")] = None,
    rates: Annotated[Rates, typer.Option("--compare", help="Rates that are compared.")] = Rates.all,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="Failure mode that is compared, such as 1.3.", show_default="all"),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            min=0.000001, max=0.5, help="Probability of failing without a change, over all rates."
        ),
    ] = 0.05,
    rise: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Rise of a share for which the needed runs are said."),
    ] = 0.1,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", help="Write a JUnit report here.", show_default=False)
    ] = None,
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write a Markdown report here.", show_default=False),
    ] = None,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare new runs with a baseline, and fail where a rate is higher.

    The rates of failed runs and of each failure mode are compared by Fisher's exact test, corrected for
    their number. The exit status is 0 if none is higher, 1 if one is, and 3 if that could not have been
    found: nothing was judged, there is no baseline, so few runs could show nothing, or the database
    does not answer.

    Examples: `mast-trace check --baseline main --since 1h --junit check.xml` ·
    `mast-trace check --baseline 7d --since 1d --service shop --compare failures`
    """
    with never_worse(junit_file, markdown_file):
        wanted = _wanted(baseline, since, version, lookback, service or [], project)
        unknown = sorted(set(mode or ()) - FAILURE_MODES.keys())
        if unknown:
            raise ConfigurationError(
                f"MAST has no failure mode {', '.join(unknown)}: {', '.join(FAILURE_MODES)}"
            )
        with open_store(url, data_dir, config) as store:
            sides = count_sides(store, wanted)
        found = compare(
            sides.old,
            sides.new,
            compared=rates.value,
            modes=tuple(mode or ()),
            level=level,
            rise=rise,
        )
        for path, write in ((junit_file, junit), (markdown_file, markdown)):
            if path is not None:
                write_report(path, write(found, sides, wanted))
    if as_json:
        print_json(_as_dict(found, sides, wanted))
    else:
        print_document(said_of(found, sides, wanted))
    if found.status != "not worse":
        raise typer.Exit(WORSE if found.status == "worse" else UNDECIDED)


def _wanted(
    baseline: str, since: str, version: str, lookback: str, services: list[str], project: str | None
) -> WantedSides:
    moment, now = parse_time(since), datetime.now(timezone.utc)
    if moment >= now:
        raise ConfigurationError(f"--since {since} is in the future: no run has started since then")
    name = baseline.strip()
    if not name or name == _VERSION:
        raise ConfigurationError("--baseline needs a version, a branch, or an age such as 7d")
    both: dict[str, Any] = {
        "moment": moment,
        # A run that begins while this runs is a new one, too.
        "until": now + timedelta(minutes=1),
        "new_version": version,
        "services": services,
        "projects": [project] if project else [],
    }
    if _AGE.fullmatch(name):
        begin = moment - (now - parse_time(name))
        return WantedSides(since=begin, **both)
    name = name.removeprefix(_VERSION)
    if version == name:
        raise ConfigurationError(f"--version and --baseline are both {name}: nothing is compared")
    return WantedSides(since=parse_time(lookback), version=name, **both)


def _as_dict(found: RateComparison, sides: Sides, wanted: WantedSides) -> dict[str, Any]:
    return {
        "status": found.status,
        "reasons": found.reasons,
        "level": found.level,
        "judge_version": sides.judge,
        "services": sides.services,
        "versions": sides.versions,
        "new": _side(found.new),
        "baseline": {"version": wanted.version or None, "since": wanted.since, **_side(found.old)},
        "rates": [
            {
                "rate": measure.key,
                "name": measure.name,
                "baseline": {"shown": measure.counts.old, "of": measure.counts.of_old},
                "new": {"shown": measure.counts.new, "of": measure.counts.of_new},
                "p": measure.p,
                "p_corrected": measure.corrected,
                "finding": measure.finding,
                "noticed_from": measure.noticed,
                "needed_new_runs": measure.needed,
                "examples": measure.examples,
            }
            for measure in found.measures
        ],
        "notes": [safe(line) for line in facts(found, sides, wanted)],
    }


def _side(side: Any) -> dict[str, Any]:
    return {
        "runs": side.runs,
        "judged": side.judged,
        "states": dict(side.states),
        "without_outcome": side.runs - side.known,
        "other_judge": side.other_judge,
    }
