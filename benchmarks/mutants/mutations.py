"""One-line mistakes in a file: in Python by mutmut's operators, and in what those do not reach.

mutmut changes the bodies of functions. Here its operators are applied to constants of modules and classes
as well, and operators are added for what a reader of traces meets: SQL inside of strings, a statement that
is left out, two parameters of one type that are taken for each other, tables in TOML, and the conditions of
templates. Words for people (messages of errors, help, logs, docstrings) stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

OF_MUTMUT = [
    (kind, operator)
    for kind, operator in mutators.mutation_operators
    if operator.__name__
    not in {"operator_string", "operator_number", "operator_assignment", "operator_arg_removal"}
]
"""Without those whose mistakes crash at the first test, or that change words."""
OTHER_WAY = {"min": "max", "max": "min", "any": "all", "all": "any"}
SQL = re.compile(r"\b(SELECT|FROM|WHERE|AND|OR|JOIN|GROUP BY|ORDER BY|HAVING|LIMIT|CASE|WHEN|AS)\b")
"""A string with such a word is a part of a query, in a module that has a SELECT."""
SWAPPED = {
    ">=": ">",
    "<=": "<",
    ">": ">=",
    "<": "<=",
    "!=": "=",
    "=": "!=",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "AND": "OR",
    "OR": "AND",
    "NOT ": "",
    "LEFT JOIN": "INNER JOIN",
    "LEFT ANY JOIN": "INNER JOIN",
    "IS NOT NULL": "IS NULL",
    "IS NULL": "IS NOT NULL",
    "DISTINCT ": "",
    "FINAL": "",
    "DESC": "ASC",
    "UNION ALL": "UNION DISTINCT",
    "sum(": "max(",
    "sumIf(": "maxIf(",
    "count(": "uniq(",
    "avg(": "max(",
    "min(": "max(",
    "max(": "min(",
    "minIf(": "maxIf(",
    "maxIf(": "minIf(",
    "argMax(": "argMin(",
    "argMin(": "argMax(",
    "least(": "greatest(",
    "greatest(": "least(",
    "any(": "max(",
}
TOKEN = re.compile(
    r"(?<![\w<>=!])(?:NOT |DISTINCT |(?:LEFT (?:ANY )?JOIN|IS NOT NULL|IS NULL|UNION ALL|AND|OR|FINAL|DESC)\b"
    r"|(?:sum|sumIf|count|avg|min|max|minIf|maxIf|argMax|argMin|least|greatest|any)\()"
    r"|(?<= )(?:>=|<=|!=|[<>=+*/-])(?= )"
)
NUMBER = re.compile(r"(?<![\w.{:'])\d+(?:\.\d+)?(?![\w.}'])")
COLUMN = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b(?!\()")
TALK = {"warning", "info", "debug", "error", "exception", "print", "echo", "log", "add_argument"}
"""Functions and methods whose arguments are words for people."""
KEY = re.compile(r"[a-z][a-z0-9_.]*")


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        line: its line in the file, from 1.
        last: the last line of what is changed.
        was: the changed text.
        is_now: the text in its place.
        make: returns the whole file with the mistake in it.
    """

    line: int
    last: int
    was: str
    is_now: str
    make: Callable[[], str]


def of_file(path: Path) -> list[Mutant]:
    """Return all mistakes that are made in a file, in the order of its lines.

    Raises:
        ValueError: its kind of file has no operators.
    """
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return _of_python(text)
    changes = {".toml": _of_table, ".html": _of_template, ".sql": of_sql}
    if path.suffix not in changes:
        raise ValueError(f"{path}: mistakes are made in Python, SQL, TOML and HTML")
    return [_in_text(text, *change) for change in changes[path.suffix](text)]


def of_sql(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and new text of each change to SQL: signs, joins, functions, numbers, columns."""
    for found in TOKEN.finditer(text):
        yield found.start(), found.end(), SWAPPED[found[0]]
    yield from _numbers(text)
    names = dict.fromkeys(COLUMN.findall(text))
    for found in COLUMN.finditer(text):
        begin, end = found[0].split("_")[0], found[0].split("_")[-1]
        for other in names:
            alike = other.split("_")[0] == begin or other.split("_")[-1] == end
            if other != found[0] and alike:
                yield found.start(), found.end(), other
                break


def _numbers(text: str) -> Iterator[tuple[int, int, str]]:
    for found in NUMBER.finditer(text):
        number = found[0]
        yield (
            found.start(),
            found.end(),
            str(float(number) * 10 if "." in number else int(number) + 1),
        )


def _of_table(text: str) -> Iterator[tuple[int, int, str]]:
    """A number, a switch, or a list of words that lacks one of them."""
    for row in re.finditer(r"^(?!\s*#|why = ).+$", text, re.MULTILINE):
        for begin, end, new in _numbers(row[0]):
            yield row.start() + begin, row.start() + end, new
        for found in re.finditer(r"\b(true|false)\b", row[0]):
            new = "false" if found[0] == "true" else "true"
            yield row.start() + found.start(), row.start() + found.end(), new
        words = r'"[^"]*", ?' if '"' in row[0] else r"\w+ |\w+$"
        for found in re.finditer(words, row[0]):
            yield row.start() + found.start(), row.start() + found.end(), ""


def _of_template(text: str) -> Iterator[tuple[int, int, str]]:
    """A condition that is turned round, or one of its signs."""
    for tag in re.finditer(r"\{%-?\s*(?:el)?if\s+(.+?)\s*-?%\}", text):
        yield tag.start(1), tag.end(1), f"not ({tag[1]})"
        for found in re.finditer(r"\b(and|or)\b|==|!=|(?<= )[<>](?= )", tag[1]):
            new = {"and": "or", "or": "and", "==": "!=", "!=": "==", "<": "<=", ">": ">="}[found[0]]
            yield tag.start(1) + found.start(), tag.start(1) + found.end(), new
    for tag in re.finditer(r"\{\{.+? if (.+?) (?:else .+?)?\}\}", text):
        yield tag.start(1), tag.end(1), f"not ({tag[1]})"


def _in_text(text: str, begin: int, end: int, new: str) -> Mutant:
    line = text.count("\n", 0, begin) + 1
    changed = text[:begin] + new + text[end:]
    return Mutant(line, line + text.count("\n", begin, end), text[begin:end], new, lambda: changed)


def _of_python(text: str) -> list[Mutant]:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    visitor = _Visitor(wrapper, queries="SELECT" in text)
    wrapper.visit(visitor)
    return sorted(visitor.found, key=lambda mutant: mutant.line)


class _Visitor(cst.CSTVisitor):
    """Collects the mistakes in a module."""

    def __init__(self, wrapper: MetadataWrapper, *, queries: bool) -> None:
        self.found: list[Mutant] = []
        self._module = wrapper.module
        self._places = wrapper.resolve(PositionProvider)
        self._queries = queries
        self._twins: list[dict[str, str]] = [{}]

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Make the mistakes of a node; returns whether to go on inside of it."""
        if _left_alone(node):
            return False
        if isinstance(node, cst.FunctionDef):
            self._twins.append(_of_one_type(node.params))
        for new in self._changes(node):
            self._add(node, new)
        if isinstance(node, (cst.SimpleString, cst.FormattedStringText)):
            self._add_of_query(node)
        # An error's message is for people.
        return not isinstance(node, cst.Raise)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Forget the parameters of a function that ends."""
        if isinstance(original_node, cst.FunctionDef):
            self._twins.pop()

    def _changes(self, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        yield from (
            new for kind, operator in OF_MUTMUT if isinstance(node, kind) for new in operator(node)
        )
        match node:
            case cst.Expr() | cst.Raise():
                yield cst.Pass()
            case cst.BooleanOperation() | cst.BinaryOperation(operator=cst.Add()):
                yield from (node.left, node.right)
            case cst.Integer():
                yield node.with_changes(value=str(node.evaluated_value + 1))
            case cst.Float():
                yield node.with_changes(value=repr(node.evaluated_value * 10 or 1.0))
            case cst.Name(value=name) if name in self._twins[-1]:
                yield node.with_changes(value=self._twins[-1][name])
            case cst.Call(func=cst.Name(value=name)) if name in OTHER_WAY:
                yield node.with_deep_changes(node.func, value=OTHER_WAY[name])
            case cst.Call():
                yield from _without_keyword(node)
            case cst.Subscript() | cst.DictElement() | cst.ComparisonTarget():
                yield from _other_key(node)

    def _add(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        place = self._places[node]
        was, is_now = (self._module.code_for_node(each).strip() for each in (node, new))
        if was != is_now:
            make = partial(_replaced, self._module, node, new)
            self.found.append(Mutant(place.start.line, place.end.line, was, is_now, make))

    def _add_of_query(self, node: cst.SimpleString | cst.FormattedStringText) -> None:
        text = node.value
        for begin, end, new in of_sql(text) if self._queries and SQL.search(text) else ():
            line = self._places[node].start.line + text.count("\n", 0, begin)
            # With what stands around it in its line: a sign alone says nothing.
            left = text.rfind("\n", 0, begin) + 1
            right = text.find("\n", end) if "\n" in text[end:] else len(text)
            changed = node.with_changes(value=text[:begin] + new + text[end:])
            make = partial(_replaced, self._module, node, changed)
            was, is_now = text[left:right], text[left:begin] + new + text[end:right]
            self.found.append(Mutant(line, line, was, is_now, make))


def _replaced(module: cst.Module, node: cst.CSTNode, new: cst.CSTNode) -> str:
    changed = module.deep_replace(node, new)
    assert isinstance(changed, cst.Module)
    return changed.code


def _left_alone(node: cst.CSTNode) -> bool:
    """Return whether nothing is changed in it: types, imports, docstrings, words for people."""
    types = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.TypeAlias, cst.Assert)
    if isinstance(node, types):
        return True
    match node:
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name)), *_]):
            return bool(re.fullmatch(r"__all__|__slots__|_?log(ger)?", name))
        case cst.Expr(value=cst.Call() as call) | (cst.Call() as call):
            return _is_talk(call)
    return False


def _is_talk(call: cst.Call) -> bool:
    match call.func:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name in TALK or name.endswith(("Error", "Exception", "TypeVar", "cast"))
    return False


def _of_one_type(parameters: cst.Parameters) -> dict[str, str]:
    """Return each parameter's neighbour of the same type: the two are easily taken for each other."""
    given = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    nothing = cst.Module([])
    typed = [
        (each.name.value, nothing.code_for_node(each.annotation.annotation))
        for each in given
        if each.annotation
    ]
    return {
        name: other
        for place, (name, kind) in enumerate(typed)
        for other, its in [typed[(place + 1) % len(typed)]]
        if its == kind and other != name
    }


def _without_keyword(call: cst.Call) -> Iterator[cst.Call]:
    """A call that leaves out one of its named arguments, or gives None for it."""
    for place, given in enumerate(call.args):
        if given.keyword:
            yield call.with_changes(args=[*call.args[:place], *call.args[place + 1 :]])
            # None in place of False is no mistake.
            if not isinstance(given.value, cst.Name) or given.value.value not in {"None", "False"}:
                nothing = given.with_changes(value=cst.Name("None"))
                yield call.with_changes(args=[*call.args[:place], nothing, *call.args[place + 1 :]])


def _other_key(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A key that is compared or looked up is misspelt."""
    match node:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]
        ):
            yield from _misspelt(node, key)
        case cst.DictElement(key=cst.SimpleString() as key):
            yield from _misspelt(node, key)
        case cst.ComparisonTarget(comparator=cst.SimpleString() as key):
            yield from _misspelt(node, key)


def _misspelt(node: cst.CSTNode, key: cst.SimpleString) -> Iterator[cst.CSTNode]:
    text = key.evaluated_value
    if isinstance(text, str) and KEY.fullmatch(text):
        changed = node.deep_replace(key, key.with_changes(value=f'"{text}_x"'))
        assert isinstance(changed, cst.CSTNode)
        yield changed
