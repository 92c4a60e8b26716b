"""A fingerprint of the code and the texts that decide a verdict.

**Included.** Every module of ours that `ENTRIES` reach by imports, at any place except for types
alone. A package's ``__init__`` does not count merely because it contains imported modules or
re-exports their names. So rules, attribution, the assembly of verdicts and the reading of steps
from spans count; with a model also the questions to it, the parsing of its answers and the fusion
of both. The files under `TEXTS` count as well: profiles, calibrations, prompts.

**Excluded.** `BOUNDARY`: modules at which the walk stops, each with a reason. A module counts if it
can change the findings on the same spans, or the questions to a model about them; not if it only
moves spans, requests and verdicts, or limits their number at a time. Commands, studies, import,
export, storage and the recording of spans are not reached.

**Ignored changes.** Other words in docstrings and comments, other types, other places of imports,
another name or place of a module with its imports rewritten (`module_digest`). A new name of a
class, a function or a variable changes the fingerprint, as does any change of code, even one that
affects speed alone: its effect cannot be determined from outside. Modules imported by a computed
name are not found.

Digests of modules by their code, independent of its layout.

Left out are docstrings, comments, positions, the annotations of functions, ``if TYPE_CHECKING`` and
``pass``. Imports count apart from the rest, in no order. A digest is the same on every supported
Python, whose parsers differ in fields that are left out here too.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable

_LEFT_OUT = {"ctx", "kind", "returns", "type_comment", "type_ignores", "type_params"}
_FOR_TYPES = {"__future__", "typing"}
"""Modules that the names used in the code identify completely."""

ENTRIES = ("mast_trace_judge.judge", "mast_trace_judge.local.long_runs")
"""The modules that turn a trajectory into a verdict, and spans into a trajectory."""
MODEL = ("mast_trace_judge.llm", "mast_trace_judge.assembly")
"""Modules and packages that matter only where a model reads runs too."""
BOUNDARY: Mapping[str, str] = MappingProxyType(
    {
        "mast_trace.exceptions": "names of errors",
        "mast_trace.retry_after": "says when a call is made again",
        "mast_trace.urls": "checks and masks addresses",
        "mast_trace_judge.confirmation": "what replays have shown; joined to a verdict when it is read",
        "mast_trace_judge.config": "settings; the version has the values of those that decide",
        "mast_trace_judge.llm.budget": "says whether a call is still paid for",
        "mast_trace_judge.llm.retry": "says how many calls run at a time, and when one is made again",
        "mast_trace_judge.plugins": "asks rules of other distributions; the version has theirs",
        "mast_trace_judge.store": "fetches spans and keeps verdicts and calls",
        "mast_trace_judge.version": "computes the version itself",
    }
)
"""Modules and packages at which the walk stops, with the reason why they decide no verdict."""
TEXTS = ("mast_trace_judge.local",)
"""Packages whose files with a suffix of `SUFFIXES` count; with a model those of `MODEL` too."""
SUFFIXES = (".json", ".md")
_READ = ("mast_trace", "mast_trace_judge")
"""Packages whose modules may count; our other packages are beyond the boundary, or above the judge."""
_OURS = (
    *_READ,
    "mast_trace_instrumentations",
    "mast_trace_collector",
    "mast_trace_dashboards",
    "mast_trace_lab",
)
REVIEWED: Mapping[str, str] = MappingProxyType({})
"""Fingerprints of code that gives the verdicts of an earlier one, and that one, without a model and with.

Another version has a week of runs judged again, at the user's cost. Somebody has read each change here, and a
test compares the verdicts on labelled runs; any further change leaves the table, and is another version.
"""


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


@cache  # names are looked up in a package again and again
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


@cache
def installed_fingerprint(*, model: bool) -> str:
    """Return the `fingerprint` of the installed packages; reads sources, and imports none of them."""
    found = fingerprint({name: resources.files(name) for name in _READ}, model=model)
    read_module.cache_clear()
    return REVIEWED.get(found, found)


def fingerprint(packages: Mapping[str, Traversable], *, model: bool) -> str:
    """Return a digest of the code and texts that decide a verdict, in hexadecimal digits.

    Args:
        packages: the folders of our packages from which modules may count, by name.
        model: whether a model reads runs too.

    Raises:
        LookupError: the source of a module that counts is missing.
    """
    modules = reached(packages, model=model)
    code = (
        digest_of([module.code, *sorted(_told(packages, modules, each) for each in module.imports)])
        for module in modules.values()
    )
    places = (*TEXTS, *MODEL) if model else TEXTS
    texts = (text for place in places for text in _texts(_folder(packages, place)))
    return digest_of([*sorted(code), *sorted(texts)])


def reached(packages: Mapping[str, Traversable], *, model: bool) -> dict[str, ReadModule]:
    """Return the modules that count, by name; see `fingerprint`."""
    found: dict[str, ReadModule] = {}
    waiting = list(ENTRIES)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        source = _source(packages, name)
        if source is None:
            raise LookupError(f"{name} decides verdicts, and its source is not there")
        found[name] = read_module(source.read_text("utf-8"))
        targets = (_target(packages, each) for each in found[name].imports)
        waiting += [target for target in targets if target and not is_beyond(target, model=model)]
    return found


def is_beyond(name: str, *, model: bool) -> bool:
    """Return whether a module of ours is excluded where it is imported."""
    ends = BOUNDARY if model else (*BOUNDARY, *MODEL)
    return any(name == end or name.startswith(f"{end}.") for end in ends)


def _target(packages: Mapping[str, Traversable], imported: ImportedName) -> str:
    """Return the name of the module of ours that an import reads; empty for other packages.

    A re-exported name is attributed to its original module; the package does not count for
    re-exporting it.
    """
    if imported.module.partition(".")[0] not in _OURS:
        return ""
    inner = f"{imported.module}.{imported.name}"
    if imported.name and _source(packages, inner):
        return inner
    source = _source(packages, imported.module)
    if imported.name and source is not None and source.name == "__init__.py":
        for each in read_module(source.read_text("utf-8")).imports:
            if each.bound == imported.name and each.module.partition(".")[0] in _OURS:
                return _target(packages, each)
    return imported.module


def _told(
    packages: Mapping[str, Traversable], modules: Mapping[str, ReadModule], imported: ImportedName
) -> str:
    """Describe an import: one of ours by the module's content, so that the module's name may change."""
    target = _target(packages, imported)
    if not target:
        return f"{imported.module} {imported.name} {imported.bound}"
    name = imported.name if target == imported.module else ""
    return f"{modules[target].code if target in modules else ''} {name} {imported.bound}"


def _source(packages: Mapping[str, Traversable], name: str) -> Traversable | None:
    """Return the file of a module; None where there is none."""
    if name.partition(".")[0] not in packages:
        return None
    around, _, last = name.rpartition(".")
    places = [_folder(packages, name) / "__init__.py"]
    if around:
        places.insert(0, _folder(packages, around) / f"{last}.py")
    return next((place for place in places if place.is_file()), None)


def _folder(packages: Mapping[str, Traversable], name: str) -> Traversable:
    package, *parts = name.split(".")
    folder = packages[package]
    for part in parts:
        folder = folder / part
    return folder


def _texts(place: Traversable) -> Iterator[str]:
    """Yield the digests of a package's texts, each with its file's name, at any depth."""
    if place.is_dir():
        for inner in place.iterdir():
            yield from _texts(inner)
    elif place.name.endswith(SUFFIXES):
        yield digest_of([place.name, place.read_text("utf-8").replace("\r\n", "\n")])
