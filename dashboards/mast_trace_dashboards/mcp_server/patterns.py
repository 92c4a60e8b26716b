"""The MCP server's answers about patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards import pattern_words as words
from mast_trace_dashboards.found_pattern import find_pattern, set_state
from mast_trace_dashboards.mcp_server.answers import page
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage import Store

_PAGE: Final = 50
_LISTER: Final = "list_patterns"


def patterns_of(store: Store, since: str, state: str, service: str, first: int) -> Any:
    """Return a page of patterns, most frequent first."""
    given: dict[str, Any] = {"since": parse_time(since)} if since else {}
    if state:
        given["states"] = [state]
    if service:
        given["services"] = [service]
    rows = QUERIES["patterns"].run(store, limit=first + _PAGE + 1, **given)[max(0, first) :]
    taken, more = page([_told(row) for row in rows], _PAGE, max(0, first))
    problems = words.naming_problems(QUERIES["pattern_naming"].run(store), rows)
    return {"patterns": taken, "next": more, **({"not_named": problems} if problems else {})}


def pattern_of(store: Store, name: str) -> Any:
    """Return one pattern with its newest runs and the commands that go on from it.

    Raises:
        NotFound: there is none.
        ConfigurationError: several ids begin so.
    """
    found = find_pattern(store, name, lister=_LISTER)
    runs = [
        {
            "run": run["TraceId"],
            "step": run["Step"],
            "outcome": run["Outcome"],
            "version": run["Version"],
        }
        for run in found.runs
    ]
    commands = [{"effect": effect, "command": line} for effect, line in found.commands]
    return {**_told(found.row), "quotes": found.row["Quotes"], "runs": runs, "commands": commands}


def acknowledge(store: Store, name: str, author: str, note: str) -> Any:
    """Record that a pattern is known.

    Raises:
        NotFound: there is no such pattern.
        ConfigurationError: several ids begin so, or the note is too long.
    """
    made = set_state(store, name, "acknowledged", author, note=note, lister=_LISTER)
    return {"recorded": made.state, "pattern": made.pattern, "by": made.author}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pattern": row["PatternId"],
        "project": row["Project"],
        "title": words.title(row),
        "sentence": row["Sentence"],
        "named_by": row["NamedBy"] if row["Sentence"] else "",
        "text": row["Text"],
        "state": words.state(row),
        "note": row["Note"],
        "share": words.share(row),
        "trend": words.trend(row),
        "contrast": words.contrast(row),
        "place": words.decisive(row),
        "confirmed": words.confirmed(row),
        "services": row["Services"],
        "versions": row["Versions"],
        "first_seen": row["FirstSeen"],
        "last_seen": row["LastSeen"],
    }
