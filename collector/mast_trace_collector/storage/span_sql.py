"""SQL that reads spans in any of the supported vocabularies.

Generated from `mast_trace.trajectory.vocabulary`, so that the typed columns and `Trajectory` read alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mast_trace import semconv
from mast_trace.trajectory import agent_names, vocabulary


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
    foreign, ours = _list(vocabulary.OPERATIONS), _list(vocabulary.OPERATIONS.values())
    needed = {
        semconv.EXECUTE_TOOL: f"{_attribute(semconv.MCP_METHOD_NAME)} IN ('', {literal(vocabulary.MCP_CALL)})",
        semconv.CHAT: f"{field('model')} != ''",
    }
    marked = ", ".join(
        f"({_any_of(names)}) AND {needed[word]}, {literal(word)}"
        for word, names in vocabulary.MARKS
    )
    return _first_told(
        f"if({turn()} = '', '', {literal(semconv.INVOKE_AGENT)})",
        f"transform({field('operation')}, [{foreign}], [{ours}])",
        f"multiIf({marked}, '')",
    )


def agent() -> str:
    """Return the agent that a span names; see `mast_trace.trajectory.agent_names`."""
    *prefixes, whole = agent_names.METADATA

    def told(name: str) -> str:
        stated = (_attribute(prefix + name) for prefix in prefixes)
        return _first_told(*stated, f"JSONExtractString({_attribute(whole)}, {literal(name)})")

    graph = (
        "arrayLast(part -> NOT match(part, '^[0-9]*$') "
        f"AND part NOT IN ({_list(agent_names.PARTS)}), "
        f"arrayMap(part -> splitByChar(':', part)[1], splitByChar('|', {told(agent_names.SPACE)})))"
    )
    stated = f"arrayFirst(name -> name NOT IN ({_list(agent_names.PARTS)}), [{field('agent')}])"
    return _first_told(told(agent_names.NAMED), graph, turn(), stated)


def turn() -> str:
    """Return the agent whose turn a span is by `mast_trace.trajectory.agent_names.TURNS`."""
    cases = []
    for scope, turns in agent_names.TURNS.items():
        whole = literal(f"^(?:{turns.name})$")
        found = f"extractAll(SpanName, {whole})"
        if turns.attribute:
            told = f"extractAll({_attribute(turns.attribute)}, {literal(turns.pattern)})"
            own = f"has({found}, name)" if re.compile(turns.name).groups else f"notEmpty({found})"
            found = f"arrayFilter(name -> {own}, {told})"
        if turns.no_agents:
            found = f"arrayFilter(name -> name NOT IN ({_list(turns.no_agents)}), {found})"
        kind = f" AND {_attribute(agent_names.KIND)} = {literal(turns.kind)}" if turns.kind else ""
        cases.append(f"ScopeName = {literal(scope)}{kind}, {found}[-1]")
    return f"multiIf({', '.join(cases)}, '')"


def _first_told(*values: str) -> str:
    """The first value that is not empty; each stands once, because ClickHouse reads the text at each insert."""
    *first, last = values
    told = ", ".join(f"nullIf({value}, '')" for value in first)
    return f"coalesce({told}, {last})"


def _list(texts: Iterable[str]) -> str:
    return ", ".join(map(literal, texts))


def _any_of(names: Iterable[str]) -> str:
    return " OR ".join(f"{_attribute(name)} != ''" for name in names)


def strings(name: str) -> str:
    """Return a string array that is kept as JSON text; other text is its one item."""
    value = field(name)
    return (
        f"multiIf({value} = '', [], JSONType({value}) = 'Array', "
        f"JSONExtract({value}, 'Array(String)'), [{value}])"
    )
