"""Digests of modules by their code, independent of its layout.

Left out are docstrings, comments, positions, the annotations of functions, ``if TYPE_CHECKING`` and
``pass``. Imports count apart from the rest, in no order. A digest is the same on every supported
Python, whose parsers differ in fields that are left out here too.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LEFT_OUT = {"ctx", "kind", "returns", "type_comment", "type_ignores", "type_params"}
_FOR_TYPES = {"__future__", "typing"}
"""Modules that the names used in the code identify completely."""


@dataclass(frozen=True, order=True)
class ImportedName:
    """A name that a module imports.

    Attributes:
        module: the source of the name.
        name: in that module; empty where the module itself is imported.
        bound: the local name.
    """

    module: str
    name: str
    bound: str


@dataclass(frozen=True)
class ReadModule:
    """The content of a module's text.

    Attributes:
        code: the digest of everything except its imports.
        imports: all imports, also in functions, except those for types alone.
    """

    code: str
    imports: tuple[ImportedName, ...]


def read_module(text: str) -> ReadModule:
    """Read the source text of a module.

    Raises:
        SyntaxError: it is no Python.
        ValueError: it has a relative import, which would say nothing without the module's place.
    """
    tree = ast.parse(text)
    written: list[str] = []
    _write(tree, written)
    return ReadModule(digest_of(written), tuple(sorted(set(_imports(tree)))))


def digest_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _write(value: Any, written: list[str]) -> None:
    """Serialise a node, a list of nodes or a plain value, the same on every Python."""
    if isinstance(value, list):
        written.append("[")
        for item in value:
            _write(item, written)
        written.append("]")
    elif isinstance(value, ast.Constant):
        # `ascii`, because the output of `repr` changes with the version of Unicode.
        written.append(f"{type(value.value).__name__} {value.value!a}")
    elif isinstance(value, ast.AST):
        written.append(f"({type(value).__name__}")
        for field in value._fields:
            held = getattr(value, field, None)
            if isinstance(value, ast.JoinedStr):
                held = _joined(value.values)
            if isinstance(held, list):
                held = list(_that_run(held))
            if _counts(value, field, held):
                written.append(field)
                _write(held, written)
        written.append(")")
    else:
        written.append(ascii(value))


def _counts(node: ast.AST, field: str, held: Any) -> bool:
    """Return whether a field counts; some versions leave empty fields out and others do not."""
    if held is None or held == [] or field in _LEFT_OUT:
        return False
    return not (field == "annotation" and isinstance(node, ast.arg))


def _that_run(nodes: Sequence[Any]) -> Iterator[Any]:
    """Yield the statements of a list that have an effect; other lists are returned whole."""
    for node in nodes:
        if isinstance(node, ast.If) and _is_for_types(node):
            yield from _that_run(node.orelse)
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) and not _is_text(node):
            yield node


def _is_text(node: Any) -> bool:
    """Return whether a statement is a docstring, of a module or of the name before it."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _is_for_types(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _joined(pieces: list[ast.expr]) -> list[ast.expr]:
    """Return the pieces of an f-string with each text in one piece and no empty one."""
    joined: list[ast.expr] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if not isinstance(piece, ast.Constant):
            joined.append(piece)
        elif isinstance(last, ast.Constant):
            joined[-1] = ast.Constant(f"{last.value!s}{piece.value!s}")
        elif piece.value:
            joined.append(piece)
    return joined


def _imports(tree: ast.Module) -> Iterator[ImportedName]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_for_types(node):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            for name in node.names:
                yield ImportedName(name.name, "", name.asname or name.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"line {node.lineno}: a relative import")
            if node.module not in _FOR_TYPES:
                for name in node.names:
                    yield ImportedName(node.module, name.name, name.asname or name.name)
        waiting.extend(ast.iter_child_nodes(node))
