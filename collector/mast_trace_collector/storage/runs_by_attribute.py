"""Runs by an attribute of theirs: those of a user, of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.store import Store

USER: tuple[str, ...] = (
    "user.id",
    "enduser.id",
    "enduser.pseudo.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
)
"""Attributes that hold the user of a run, as spelled by different instrumentations."""
SESSION: tuple[str, ...] = (
    *vocabulary.SPELLINGS["conversation"],
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that hold the conversation of a run."""

_OURS = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"


def runs_with(
    store: Store, attributes: Sequence[str], value: str, *, project: str | None = None
) -> list[str]:
    """Return the ids of runs with one of ``attributes`` on a span, a log record or a resource.

    With `USER` or `SESSION` and `of_runs` this erases the data of a person's runs. A run whose spans retention has
    left out is found by one user and one session alone, the last of its spans' in alphabetical order: a run of
    several persons is not found by the others.
    """
    found: set[str] = set()
    for table, own in (("otel_traces", "SpanAttributes"), ("otel_logs", "LogAttributes")):
        rows = store.query(
            f"SELECT DISTINCT TraceId FROM {table} WHERE arrayExists(name -> "  # noqa: S608
            f"{own}[name] = {{value:String}} OR ResourceAttributes[name] = {{value:String}}, "
            f"{{names:Array(String)}}) AND TraceId != '' AND {_OURS}",
            {"names": list(attributes), "value": value, "project": project},
        )
        found.update(row["TraceId"] for row in rows)
    for kept, spellings in (("UserId", USER), ("ConversationId", SESSION)):
        if not set(attributes).isdisjoint(spellings):
            rows = store.query(
                f"SELECT DISTINCT TraceId FROM mast_left_out WHERE {kept} = {{value:String}} AND {_OURS}",  # noqa: S608
                {"value": value, "project": project},
            )
            found.update(row["TraceId"] for row in rows)
    return sorted(found)
