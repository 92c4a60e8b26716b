"""SQL that reads spans in any of the supported vocabularies.

Generated from `mast_trace.trajectory.vocabulary`, so that the typed columns and `Trajectory` read alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from mast_trace import semconv
from mast_trace.trajectory import vocabulary


def literal(text: str) -> str:
    """Quote ``text`` for SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def field(name: str) -> str:
    """Return the first attribute that spells ``name`` and is not empty; else the empty string."""
    values = [_attribute(key) for key in vocabulary.SPELLINGS[name]]
    if name in vocabulary.ENTITIES:
        kind, entity = _attribute(vocabulary.KIND), _attribute(vocabulary.ENTITY)
        values.append(f"if({kind} = {literal(name)}, {entity}, '')")
    if len(values) == 1:
        return values[0]
    *first, last = values
    tests = ", ".join(f"{value} != '', {value}" for value in first)
    return f"multiIf({tests}, {last})"


def _attribute(name: str) -> str:
    return f"SpanAttributes[{literal(name)}]"


def operation() -> str:
    """Return the span's operation in our vocabulary; see `mast_trace.trajectory.vocabulary.operation`."""
    foreign = ", ".join(literal(word) for word in vocabulary.OPERATIONS)
    ours = ", ".join(literal(word) for word in vocabulary.OPERATIONS.values())
    stated = field("operation")
    needed = {
        semconv.EXECUTE_TOOL: f"{_attribute(semconv.MCP_METHOD_NAME)} IN ('', {literal(vocabulary.MCP_CALL)})",
        semconv.CHAT: f"{field('model')} != ''",
    }
    marked = ", ".join(
        f"({_any_of(names)}) AND {needed[word]}, {literal(word)}"
        for word, names in vocabulary.MARKS
    )
    return f"multiIf({stated} != '', transform({stated}, [{foreign}], [{ours}], {stated}), {marked}, '')"


def _any_of(names: Iterable[str]) -> str:
    return " OR ".join(f"{_attribute(name)} != ''" for name in names)


def strings(name: str) -> str:
    """Return a string array that is kept as JSON text; other text is its one item."""
    value = field(name)
    return (
        f"multiIf({value} = '', [], JSONType({value}) = 'Array', "
        f"JSONExtract({value}, 'Array(String)'), [{value}])"
    )
