"""Fills the schema's templates: one set of files serves every kind of ClickHouse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage import span_sql
from mast_trace_collector.storage.address import DEFAULT_DATABASE, identifier
from mast_trace_collector.storage.span_sql import literal

_SCHEMA = resources.files("mast_trace_collector.storage") / "schema"
_KIND = (
    "Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, "
    "'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7)"
)
# The column named after the oneof shows which member was sent.
_ITEM_TYPES = (
    f"value {_KIND}, string_value String, bool_value Bool, int_value Int64, "
    "double_value Float64, bytes_value String, kvlist_value String, array_value String"
)
# Numbers are read as text: the parser writes it faster than a function over every value does.
_VALUE_TYPES = (
    f"value {_KIND}, string_value String, bool_value String, int_value String, "
    "double_value String, bytes_value String, kvlist_value String, "
    f"array_value Tuple(values Array(Tuple({_ITEM_TYPES})))"
)

KEY_VALUES = f"Array(Tuple(key LowCardinality(String), value Tuple({_VALUE_TYPES})))"
"""The type of a list of attributes."""

_NOT_JSON = "json: unsupported value: "
_DOUBLE = (
    r"transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], "
    f"['{_NOT_JSON}NaN', '{_NOT_JSON}+Inf', '{_NOT_JSON}-Inf'])"
)
_ITEM = (
    "multiIf(i.value = 'string_value', toJSONString(i.string_value), "
    "i.value = 'int_value', toString(i.int_value), "
    "i.value = 'bool_value', if(i.bool_value, 'true', 'false'), "
    # Adding 0 removes the sign of -0, which some writers of JSON do not know.
    "i.value = 'double_value', toString(i.double_value + 0), 'null')"
)
_LIST = f"concat('[', arrayStringConcat(arrayMap(i -> {_ITEM}, v.array_value.values), ','), ']')"
# Everything but a string's own text is short: joining it copies the long texts once.
_TEXT = (
    "concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, "
    f"v.value = 'double_value', {_DOUBLE}, "
    "v.value = 'bool_value', v.bool_value, "
    f"v.value = 'array_value', {_LIST}, "
    "v.value = 'bytes_value', base64Encode(v.bytes_value), ''))"
)
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

_CODES = ", ".join(f"'{code}'" for code in FAILURE_MODES)
_EXAMINED = (
    "toUInt16(arraySum(code -> bitShiftLeft(toUInt16(1),\n"
    f"        indexOf([{_CODES}], code) - 1),\n"
    f"        arrayDistinct(arrayFilter(code -> code IN ({_CODES}),\n"
    "            arrayMap(code -> toString(code), Examined)))))"
)
"""A verdict's examined modes as bits; bit i stands for the i-th failure mode."""


def attributes_map(attributes: str) -> str:
    """Return attributes as Map(String, String)."""
    return f"mapFromArrays(({attributes}).key, arrayMap(v -> {_TEXT}, ({attributes}).value))"


def is_nested(attributes: str) -> str:
    """Return a condition: one of the attributes is a value that `attributes_map` cannot render.

    Such values are maps, lists in lists, bytes in lists, and values that writers of JSON render
    differently in lists: very large and very small numbers, and rare control characters.
    """
    return (
        "arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> "
        "i.value IN ('array_value', 'kvlist_value', 'bytes_value') "
        r"OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') "
        "OR (i.value = 'double_value' AND i.double_value != 0 "
        "AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), "
        f"({attributes}).value)"
    )


def hex_id(data: str) -> str:
    """Return an id in hexadecimal; the all-zero id is no id."""
    return f"if(replaceAll({data}, '\\0', '') = '', '', lower(hex({data})))"


def time(nanoseconds: str) -> str:
    """Return nanoseconds as an integer in the range of DateTime64(9)."""
    return f"toInt64(least({nanoseconds}, 9223372036854775807))"


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


def schema_files() -> dict[str, str]:
    """Return the templates of the schema by the names of their files, without ``.sql``."""
    files = (file for file in _SCHEMA.iterdir() if file.name.endswith(".sql"))
    return {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in files}


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
    return fill((_SCHEMA / f"{name}.part").read_text("utf-8"), options, **values)


def _arriving(options: SchemaOptions, more: str) -> str:
    """The states of spans as they arrive; ``more`` is a further column."""
    spans = f"{options.database}.otel_traces" + ("_local" if options.distributed else "")
    return _part(options, "run_states.v3", seen="now64(3)", spans=spans, of="", more=more)


def facts_of_stored_spans(options: SchemaOptions, of: str = "") -> str:
    """Return the SELECT of the facts of runs.

    Args:
        options: of the tables.
        of: a condition on the spans.
    """
    return _part(options, "facts.v1", of=of and f" AND {of}")


_CALLS_MISSING = (
    "\n    toUInt8(max(SpanAttributes['mast.run.calls_missing'] = 'true')) AS CallsMissing,"
)
_AROUND = """
    groupUniqArrayIf(1048576)(if(lower(hex(reinterpretAsFixedString(reinterpretAsUInt64(unhex(ParentSpanId))))) = ParentSpanId,
        reinterpretAsUInt64(unhex(ParentSpanId)), sipHash64(ParentSpanId)),
        has_tokens AND ParentSpanId != '' AND ParentSpanId != SpanId) AS Around,"""
# The smallest of those of one id comes first: ours, else a mark of no tokens for a call around another, else the call.
_OUTSIDE_NONE = """arrayFilter(call -> bitAnd(call, 0xFFFFFFFFFFFFFF00) != 0,
        arrayCompact(call -> bitShiftRight(call, 64), arraySort(call -> (bitShiftRight(call, 64), bitAnd(call, 255), call),
        arrayConcat(calls, arrayMap(id -> bitOr(bitShiftLeft(toUInt128(id), 64), toUInt128(1)),
        groupUniqArrayArray(2097152)(s.Around))))))"""


def _merged(options: SchemaOptions, more: str, calls: str = "calls") -> str:
    """The aggregated runs.

    Args:
        options: of the tables.
        more: a further condition under which totals are a lower bound.
        calls: those of which the tokens count.
    """
    return _part(options, "runs.v3", more=more, calls=calls)


_LOST = " OR max(s.CallsMissing) = 1"
_PLACEHOLDERS: Mapping[str, Callable[[SchemaOptions, str], str]] = {
    "database": lambda options, _: options.database,
    "on_cluster": _on_cluster,
    "replicated": lambda options, _: "Replicated" if options.replicated else "",
    "local": lambda options, _: "_local" if options.distributed else "",
    "table_settings": _table_settings,
    "ttl": _ttl,
    "distributed": _distributed,
    "finding_columns": lambda _, __: _FINDING,
    "examined_bits": lambda _, __: _EXAMINED,
    "part": _part,
    "facts": facts_of_stored_spans,
    "run_states_v4": lambda options, _: _arriving(options, _CALLS_MISSING),
    "run_states_v5": lambda options, _: _arriving(options, _CALLS_MISSING + _AROUND),
    "runs_v3": lambda options, _: _merged(options, ""),
    "runs_v4": lambda options, _: _merged(options, _LOST),
    "runs_v5": lambda options, _: _merged(options, _LOST, _OUTSIDE_NONE),
    "agent": lambda _, __: span_sql.agent(),
    "operation": lambda _, __: span_sql.operation(),
    "field": lambda _, name: span_sql.field(name),
    "strings": lambda _, name: span_sql.strings(name),
    "key_values": lambda _, __: KEY_VALUES,
    "attributes_map": lambda _, attributes: attributes_map(attributes),
    "is_nested": lambda _, attributes: is_nested(attributes),
    "hex_id": lambda _, data: hex_id(data),
    "time": lambda _, nanoseconds: time(nanoseconds),
}
