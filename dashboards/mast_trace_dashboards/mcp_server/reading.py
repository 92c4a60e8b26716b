"""The answers of the MCP server's reading functions, as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_trace.replay.comparison import first_difference
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.search_index import narrowed
from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.cost_words import ListedCost, listed_costs
from mast_trace_dashboards.document import markdown
from mast_trace_dashboards.found_pattern import cost_of, find_pattern, set_state
from mast_trace_dashboards.found_run import FoundRun, find_run
from mast_trace_dashboards.mcp_server.answers import CLIP, clipped, page, part
from mast_trace_dashboards.plugins import named_queries
from mast_trace_dashboards.printable import json_text
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.runs import run_key
from mast_trace_dashboards.run_documents import modes_and_judge, replays_said, where_to_look
from mast_trace_dashboards.run_names import NotFound, newest_runs, parse_time, resolve_run
from mast_trace_dashboards.run_outcome import outcome_words
from mast_trace_dashboards.step_input import input_of
from mast_trace_judge.batch import read_alone

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.queries.query import Query

_PAGE: Final = 50
_LISTER: Final = "list_patterns"

MOST_RUNS = 100
_PASSAGES: Final = 20
MOST_STEPS = 200
MOST_ROWS = 500
_IN_LISTS = (
    *("TraceId", "Project", "Name", "ServiceName", "Framework", "Start", "DurationMs", "Steps"),
    *("Agents", "Modes", "LookAgent", "LookStep", "LookBasis", "LookWhy"),
)
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMES: Final = {"trace_id": "run", "service_name": "service"}
_SAID: Final = ("Outcome", "State", "StartNs")
"""Columns of a run that its words say, too."""
_OF_RUN: Final = (
    "trace_id",
    "project",
    "service",
    "framework",
    "name",
    "run_start",
    "run_end",
    "steps",
    "candidates",
)
"""Fields of a verdict that its run has, too, or that are said of it."""
_INTEGERS: Final = {"UInt32": (0, 2**32), "Int64": (-(2**63), 2**63)}


def patterns_of(store: Store, since: str, state: str, service: str, first: int) -> Any:
    """Return a page of patterns, most frequent first."""
    given: dict[str, Any] = {"since": parse_time(since)} if since else {}
    if state:
        given["states"] = [state]
    if service:
        given["services"] = [service]
    rows = QUERIES["patterns"].run(store, limit=first + _PAGE + 1, **given)[max(0, first) :]
    taken, more = page([_told(row) for row in rows], _PAGE, max(0, first))
    problems = found_pattern.naming_problems(QUERIES["pattern_naming"].run(store), rows)
    return {"patterns": taken, "next": more, **({"not_named": problems} if problems else {})}


def pattern_of(store: Store, name: str) -> Any:
    """Return one pattern with its newest runs and the commands that go on from it.

    Raises:
        NotFound: there is none.
        ConfigurationError: several ids begin so.
    """
    found = find_pattern(store, name, lister=_LISTER)
    said = markdown(found_pattern.said_of(found, cost_of(store, found)), str)
    return {**_told(found.row), "said": said, "runs": [run["TraceId"] for run in found.runs]}


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
        "title": found_pattern.title(row),
        "sentence": row["Sentence"],
        "named_by": row["NamedBy"] if row["Sentence"] else "",
        "text": row["Text"],
        "state": found_pattern.state(row),
        "note": row["Note"],
        "share": found_pattern.share(row),
        "trend": found_pattern.trend(row),
        "contrast": found_pattern.contrast(row),
        "place": found_pattern.decisive(row),
        "confirmed": found_pattern.confirmed(row),
        "services": row["Services"],
        "versions": row["Versions"],
        "first_seen": row["FirstSeen"],
        "last_seen": row["LastSeen"],
    }


class StoreReading:
    """Answers questions about the runs of a store.

    Args:
        store: the database; one project's, if only that may be seen.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(self, store: Store, *, idle: float) -> None:
        self._store = store
        self._idle = idle

    def runs(self, since: str, limit: int, after: str, filters: Mapping[str, Sequence[str]]) -> Any:
        """Return a page of runs, newest first, and the cursor of the next page."""
        limit = _within(limit, MOST_RUNS)
        given: dict[str, Any] = {name: list(values) for name, values in filters.items()}
        if since:
            given["since"] = parse_time(since)
        if after:
            begun, _, run = after.partition("-")
            if not begun.isdigit() or int(begun) >= 2**63:
                raise NotFound(f"there is no page {after!r}; use the `next` of the page before")
            given.update(before=int(begun), before_run=run)
        rows = newest_runs(self._store, limit=limit + 1, idle=self._idle, **given)
        taken, more = page([_run_row(row) for row in rows], limit)
        last = rows[len(taken) - 1] if taken else None
        cursor = f"{last['StartNs']}-{run_key(last)}" if more is not None and last else None
        return {"runs": taken, "next": cursor}

    def search(self, text: str, since: str, limit: int) -> Any:
        """Return the runs with a text in their names, ids, tags, messages, tool calls or answers, newest first."""
        if not text.strip():
            raise NotFound("the text to search for is empty")
        given: dict[str, Any] = {"since": parse_time(since)} if since else {}
        given.update(narrowed(self._store, text))
        limit = _within(limit, MOST_RUNS)
        rows = QUERIES["search"].run(self._store, text=text, limit=limit + 1, **given)
        hits = {row["TraceId"]: row["Hits"] for row in rows[:limit]}
        only = {"only": list(hits), "idle": self._idle, "limit": MOST_ROWS}
        # Without ids, all runs would be listed.
        listed = QUERIES["runs"].run(self._store, **only) if hits else []
        runs: dict[str, list[Any]] = {}
        for row in listed:
            passage = self._passage(row, text, given)
            told = {**_run_row(row), "hits": hits[row["TraceId"]], "passage": passage}
            runs.setdefault(row["TraceId"], []).append(told)
        taken, _ = page([row for run in hits for row in runs.get(run, ())], MOST_ROWS)
        return {"runs": taken, "more": len(rows) > limit or len(taken) < len(listed)}

    def _passage(self, row: Mapping[str, Any], text: str, given: Mapping[str, Any]) -> str:
        """Return the text around an occurrence in a run; empty if none of the searched spans has it."""
        # Spans are stored in the order of runs, and no other id lies between this one and itself with one more sign.
        run = row["TraceId"]
        within = {**given, "first": run, "last": f"{run}0", "limit": _PASSAGES}
        hits = QUERIES["search_hits"].run(self._store, text=text, **within)
        found = (hit["Passage"].strip() for hit in hits if hit["Project"] == row["Project"])
        return next(found, "")

    def run(self, name: str) -> Any:
        """Return a run with what its page says of it, and its verdict as data."""
        found = self.find(name)
        verdict = {} if found.verdict is None else found.verdict.to_json()
        told = {name: value for name, value in verdict.items() if name not in _OF_RUN}
        said = [*where_to_look(found), *modes_and_judge(found), *replays_said(found.confirmation)]
        cost = listed_costs(self._store, [found.row]).get(run_key(found.row), ListedCost())
        priced = {"CostUsd": cost.usd, "UnpricedCalls": cost.unpriced}
        row = {**found.row, **priced, **outcome_words(found.row)._asdict()}
        run = _named({name: value for name, value in row.items() if name not in _SAID})
        return {
            "run": clipped(run),
            "task": part(found.stored.task(), 0),
            "said": part(markdown(said, str), 0)["text"],
            "verdict": clipped(told) or None,
        }

    def steps(self, name: str, first: int, limit: int) -> Any:
        """Return a page of a run's steps, their texts clipped."""
        found = self.find(name)
        count = found.stored.count
        limit = _within(limit, MOST_STEPS)
        end = min(count, first + limit + 1)
        if first < 0 or (first >= count and count):
            raise NotFound(f"the run has no step {first}: its steps are 0 to {count - 1}")
        read = found.stored.steps(range(first, end), clip=CLIP)
        taken, more = page([_step(each, CLIP) for each in read], limit, first)
        return {"steps": taken, "count": count, "next": more}

    def step(self, name: str, number: int, offset: int) -> Any:
        """Return one step with its whole text, in parts."""
        found = self.find(name)
        count = found.stored.count
        if not 0 <= number < count:
            raise NotFound(f"the run has no step {number}: its steps are 0 to {count - 1}")
        (step,) = found.stored.steps([number])
        text, arguments = (part(each, max(0, offset)) for each in (step.text, step.arguments))
        told = {**_step(step), **arguments, **text}  # the next offset is that of either
        if step.arguments:
            told["arguments"] = arguments["text"]
            told["arguments_characters"] = arguments["characters"]
        return told

    def step_input(self, name: str, number: int, first: int) -> Any:
        """Return the messages that the model was shown before it produced a step."""
        run = self._trajectory(name)
        if not 0 <= number < len(run.steps):
            raise NotFound(f"the run has no step {number}: its steps are 0 to {len(run.steps) - 1}")
        shown = input_of(run, number)
        if shown is None:
            return {"messages": None, "reason": "No model call with its input was recorded for it."}
        told = [_message(each) for each in shown.messages[max(0, first) :]]
        taken, more = page(told, len(told), max(0, first))
        return {
            "agent": shown.agent,
            "model": shown.model,
            "messages": taken,
            "count": len(shown.messages),
            "messages_without_text": shown.missing,
            "next": more,
        }

    def compare(self, one: str, other: str) -> Any:
        """Return the first step in which two runs differ, with some steps around it."""
        runs = [self._trajectory(name) for name in (one, other)]
        difference = first_difference(*runs)
        told: dict[str, Any] = {
            "runs": [{"run": run.trace_id, "steps": len(run.steps)} for run in runs],
            "identical": difference is None,
        }
        if difference is not None:
            around = slice(max(0, difference.index - 2), difference.index + 3)
            told.update(
                first_difference={"step": difference.index, "text": difference.text},
                steps=[[_step(each, CLIP) for each in run.steps[around]] for run in runs],
            )
        return told

    def query(self, name: str, values: Mapping[str, Any], first: int) -> Any:
        """Return rows of a named query."""
        query = _query(name)
        unknown = values.keys() - query.params.keys()
        if unknown:
            known = ", ".join(query.params)
            raise NotFound(
                f"query {name} has no parameter {', '.join(sorted(unknown))}; it has {known}"
            )
        given = {key: _value(key, query.params[key].type, each) for key, each in values.items()}
        if "limit" in query.params:
            asked = given.get("limit", query.params["limit"].default)
            given["limit"] = min(asked, first + MOST_ROWS + 1)
        rows = query.run(self._store, **given)[max(0, first) :]
        taken, more = page(rows[: MOST_ROWS + 1], MOST_ROWS, max(0, first))
        return {"rows": taken, "next": more}

    def find(self, name: str) -> FoundRun:
        """Return a run by its id, the beginning of it, or ``last``.

        Raises:
            NotFound: there is none.
        """
        run = resolve_run(self._store, name, lister="list_runs")
        found = find_run(self._store, run, idle=self._idle)
        if found is None:
            raise NotFound(f"there is no run {name}")
        return found

    def _trajectory(self, name: str) -> Trajectory:
        found = self.find(name)
        project = found.row["Project"]
        summary = run_summary(self._store, found.stored.trace_id, project=project)
        if summary is None:
            raise NotFound(f"there is no run {name}")
        return read_alone(self._store, summary)


def queries(name: str) -> Any:
    """Return the named queries with their meanings, or one with its parameters and columns.

    Raises:
        NotFound: there is no such query.
    """
    if not name:
        return [{"name": each.name, "meaning": each.meaning} for each in named_queries().values()]
    query = _query(name)
    return {
        "name": query.name,
        "meaning": query.meaning,
        "parameters": {
            name: f"{param.type}: {param.meaning}" for name, param in query.params.items()
        },
        "columns": list(query.columns),
    }


def _query(name: str) -> Query:
    query = named_queries().get(name)
    if query is None:
        raise NotFound(f"there is no query {name!r}; `list_queries` names them")
    return query


def failure_modes() -> Any:
    """Return MAST's failure modes: code, name and definition."""
    return [
        {"code": code, "name": mode.name, "definition": mode.definition}
        for code, mode in FAILURE_MODES.items()
    ]


def _value(name: str, kind: str, value: Any) -> Any:
    """Return a parameter's value as the database takes it.

    Raises:
        NotFound: the value is of another kind.
        ConfigurationError: a time cannot be read.
    """
    if kind.startswith("DateTime") and isinstance(value, str):
        return parse_time(value)
    inner = kind.removeprefix("Array(").removesuffix(")")
    each = value if inner != kind and isinstance(value, list) else [value]
    if (inner != kind) != isinstance(value, list) or not all(_is_a(inner, one) for one in each):
        raise NotFound(f"the parameter {name} is of type {kind}; {json_text(value)[:80]} is not")
    return value


def _is_a(kind: str, value: Any) -> bool:
    """Return whether a JSON value is of one of ClickHouse's types."""
    if isinstance(value, bool):
        return False
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        return isinstance(value, int) and low <= value < high
    if kind == "Float64":
        return isinstance(value, int | float)
    return kind == "String" and isinstance(value, str)


def _within(asked: int, most: int) -> int:
    return max(1, min(asked, most))


def _run_row(row: Mapping[str, Any]) -> dict[str, Any]:
    listed = {name: row[name] for name in _IN_LISTS}
    return dict(clipped({**_named(listed), **outcome_words(row)._asdict()}))


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with names as verdicts have them."""
    spelled = {name: _WORDS.sub("_", name).lower() for name in row}
    return {_NAMES.get(name, name): row[column] for column, name in spelled.items()}


def _step(step: Step, most: int | None = None) -> dict[str, Any]:
    told = {
        "step": step.index,
        "kind": step.kind.value,
        "agent": step.agent,
        "recipients": list(step.recipients),
        "text": step.text[:most],
        "tool": step.tool,
        "arguments": step.arguments[:most],
        "hand_off_to": step.handoff_to,
        "error": step.error,
    }
    return {name: value for name, value in told.items() if value not in ("", [], None)}


def _message(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"role": message.role, **part(message.content, 0)}
    if message.tool_calls:
        told["tool_calls"] = [
            {"name": call.name, "arguments": json_text(call.arguments)}
            for call in message.tool_calls
        ]
    return told
