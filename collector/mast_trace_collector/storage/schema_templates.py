"""Fills the schema's templates: one set of files serves every kind of ClickHouse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage import otlp_sql, span_sql
from mast_trace_collector.storage.address import DEFAULT_DATABASE, identifier
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PLACEHOLDER = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_POLICY = re.compile(r"[\w.-]+")
_FINDING = (
    "Project, TraceId, RunStart, RunEnd, RunSeen, JudgedAt, Fingerprint, JudgeVersion, Status,\n"
    "    StatusReason, Method, ServiceName, Framework, Name, Steps, Outcome, `Modes.Code`,\n"
    "    `Modes.Probability`, `Modes.Evidence`, DecisiveStep, DecisiveAgent, DecisiveProbability,\n"
    "    DecisiveRule, DecisiveReason, CostUsd, RunSpans, RunErrors, RunInputTokens, RunOutputTokens,\n"
    "    RunAgents, RunModels, RunOutcome, RunOutcomeReason, RunTermination"
)
"""The columns of a verdict that ``mast_findings`` keeps."""


@dataclass(frozen=True)
class SchemaOptions:
    """Options of the tables.

    Attributes:
        database: of the tables; created if it is missing.
        cluster: name of the cluster whose nodes all get them (``ON CLUSTER``).
        replicated: Replicated engines, which take their path from the server's macros.
        distributed: local tables on each shard behind Distributed ones; requires ``cluster``.
        ttl_days: whole parts older than this are dropped; 0 keeps everything.
        storage_policy: names the disks to use.
        fsync: an insert returns when it is on the disk, not in the system's cache.
    """

    database: str = DEFAULT_DATABASE
    cluster: str = ""
    replicated: bool = False
    distributed: bool = False
    ttl_days: int = 0
    storage_policy: str = ""
    fsync: bool = True

    def __post_init__(self) -> None:
        identifier(self.database)
        if self.cluster:
            identifier(self.cluster)
        if self.distributed and not self.cluster:
            raise ConfigurationError("distributed tables need the name of a cluster")
        if self.storage_policy and not _POLICY.fullmatch(self.storage_policy):
            raise ConfigurationError(f"{self.storage_policy!r} is no name of a storage policy")
        if self.ttl_days < 0:
            raise ConfigurationError("ttl_days is a number of days, or 0 to keep everything")


def fill(template: str, options: SchemaOptions, **values: str) -> str:
    """Replace every ``{name}`` and ``{name:argument}`` in ``template``; ``values`` go first."""

    def value(match: re.Match[str]) -> str:
        if match[1] in values:
            return values[match[1]]
        return _PLACEHOLDERS[match[1]](options, match[2] or "")

    text = _PLACEHOLDER.sub(value, template)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _on_cluster(options: SchemaOptions, _: str = "") -> str:
    return f"ON CLUSTER {options.cluster}" if options.cluster else ""


def _table_settings(options: SchemaOptions, _: str = "") -> str:
    settings = []
    if not options.replicated:
        # Replicated tables remember inserted blocks by themselves.
        settings.append("non_replicated_deduplication_window = 1000")
    if options.fsync:
        settings += ["fsync_after_insert = 1", "fsync_part_directory = 1"]
    if options.storage_policy:
        settings.append(f"storage_policy = {literal(options.storage_policy)}")
    return "".join(f", {setting}" for setting in settings)


def _ttl(options: SchemaOptions, time: str) -> str:
    return f"TTL {time} + toIntervalDay({options.ttl_days})" if options.ttl_days else ""


def _distributed(options: SchemaOptions, argument: str) -> str:
    """A table over all shards, with the local table's columns; nothing on a single server."""
    if not options.distributed:
        return ""
    table, sharding_key = (part.strip() for part in argument.split(",", 1))
    name, local = f"{options.database}.{table}", f"{table}_local"
    return (
        f"CREATE TABLE IF NOT EXISTS {name} {_on_cluster(options)} AS {options.database}.{local}\n"
        f"ENGINE = Distributed({literal(options.cluster)}, {literal(options.database)}, "
        f"{literal(local)}, {sharding_key})"
    )


def _part(options: SchemaOptions, name: str, **values: str) -> str:
    """Return a part of SQL that several versions share, from ``schema/<name>.part``.

    A part has a version too, because a change of it would change every released version that uses
    it.
    """
    file = resources.files("mast_trace_collector.storage") / "schema" / f"{name}.part"
    return fill(file.read_text("utf-8"), options, **values)


def _runs(options: SchemaOptions, key: str) -> str:
    """The aggregated runs; ``key`` is another column of their states by which they can be found."""
    column = f"s.{key} AS {key},\n    " if key else ""
    return _part(options, "runs.v1", column=column, key=f"s.{key}, " if key else "")


def _arriving(options: SchemaOptions, version: str) -> str:
    """The states of spans as they arrive."""
    spans = f"{options.database}.otel_traces" + ("_local" if options.distributed else "")
    return _part(options, f"run_states.{version}", seen="now64(3)", spans=spans, of="")


def states_of_stored_spans(options: SchemaOptions, *, of: str) -> str:
    """Return the SELECT of the states of the stored spans, as if they had arrived long ago.

    Args:
        options: of the tables.
        of: a condition on the spans.
    """
    given = {"seen": "toDateTime64(0, 3)", "of": f" AND {of}"}
    return _part(options, "run_states.v3", spans=f"{options.database}.otel_traces", **given)


_PLACEHOLDERS: Mapping[str, Callable[[SchemaOptions, str], str]] = {
    "database": lambda options, _: options.database,
    "on_cluster": _on_cluster,
    "replicated": lambda options, _: "Replicated" if options.replicated else "",
    "local": lambda options, _: "_local" if options.distributed else "",
    "table_settings": _table_settings,
    "ttl": _ttl,
    "distributed": _distributed,
    "finding_columns": lambda _, __: _FINDING,
    "part": _part,
    "runs": _runs,
    "run_states_v2": lambda options, _: _arriving(options, "v2"),
    "run_states_v3": lambda options, _: _arriving(options, "v3"),
    "operation": lambda _, __: span_sql.stated_operation(),
    "operation_v2": lambda _, __: span_sql.operation(),
    "field": lambda _, name: span_sql.field(name),
    "strings": lambda _, name: span_sql.strings(name),
    "key_values": lambda _, __: otlp_sql.KEY_VALUES,
    "attributes_map": lambda _, attributes: otlp_sql.attributes_map(attributes),
    "is_nested": lambda _, attributes: otlp_sql.is_nested(attributes),
    "hex_id": lambda _, data: otlp_sql.hex_id(data),
    "time": lambda _, nanoseconds: otlp_sql.time(nanoseconds),
}
