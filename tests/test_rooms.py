"""Inside of each package, rooms know only the rooms below them, and no module is in a circle.

A room is a folder or a module at the top of a package. Imports for types alone count for circles
only: they are gone when the program runs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from test_architecture import FOLDERS, run_at_import

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLOORS = {
    "mast_trace": """
        environment exceptions fork_safe semconv taxonomy content retry_after result_types
        content_settings running_up untrusted_json urls
        messages _settings
        spans trajectory delivery _frameworks
        replay
        _session
        captured_spans
        replayed_run
        manual doctor testing experiment
        __main__
    """,
    "mast_trace_instrumentations": """
        base model_calls
        ag2 anthropic autogen crewai google_genai langgraph mcp metagpt openai template
        litellm replay
    """,
    "mast_trace_collector": """
        hold otlp plugins settings spool storage telemetry
        backup config dead_letters exporter http_server logs security
        clickhouse_http pipeline receivers
        collector
    """,
    "mast_trace_judge": """
        arms confirmation intervals planted decision_points
        verdict
        plugins run_rule
        local fingerprint proof
        store version pricing side_jobs
        batch llm verdict_writer
        patterns
        multi_agent look_first
        assembly config
        study
        judge transfer
        worker
        gate
        testing
    """,
    "mast_trace_dashboards": """
        commands
        printable
        certainty document programs queries
        gate cost_words run_names plugins stored_run whole_files
        found_run run_outcome senders step_input alerts
        found_pattern
        run_documents
        grafana web
        mcp_server
        local
        cli
        __main__
    """,
    "mast_trace_lab": """
        program
        replay
        confirm
        inject
        fit train feedback
        selftest
        teams
    """,
}
"""The rooms of each package, the lowest floor first; rooms of one floor do not know each other."""


def modules() -> dict[str, Path]:
    """The files of all modules by dotted name."""
    found = {}
    for package in FOLDERS:
        root = FOLDERS[package]
        for file in root.rglob("*.py"):
            name = ".".join(file.relative_to(root.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, str]]:
    """Our modules that a module imports, each with the name that is taken from it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in MODULES:
                    yield whole, ""
                elif node.module in MODULES:
                    yield node.module, alias.name


TREES = {name: ast.parse(file.read_text("utf-8")) for name, file in MODULES.items()}
IMPORTS = {
    name: {each for each in imported(run_at_import(TREES[name], functions=True)) if each[0] != name}
    for name in MODULES
}


def room_of(module: str) -> str:
    """The folder or file at the top of its package that a module stands in."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package: str) -> None:
    """A new room is entered above; a floor names no room that is gone."""
    rooms = {room_of(name) for name in MODULES if name.split(".")[0] == package} - {""}
    assert sorted(FLOORS[package].split()) == sorted(rooms)


@pytest.mark.parametrize("package", FLOORS)
def test_no_room_imports_a_room_above_it(package: str) -> None:
    """Nor one beside it. The package itself, which exports names, may import all of them."""
    floors = FLOORS[package].strip().splitlines()
    floor = {room: number for number, line in enumerate(floors) for room in line.split()}
    wrong = [
        f"{name} imports {other}"
        for name, found in IMPORTS.items()
        for other, _ in found
        if name.split(".")[0] == other.split(".")[0] == package
        and (own := room_of(name)) != (theirs := room_of(other))
        and own
        and (not theirs or floor[theirs] >= floor[own])
    ]
    assert wrong == []


def test_no_module_is_in_a_circle() -> None:
    """Modules can be read one after the other, each after those that it imports, types included."""
    every = {name: dict(imported(ast.walk(tree))).keys() for name, tree in TREES.items()}
    left = {name: others - {name} for name, others in every.items()}
    needed = set(left)
    while left and (
        free := [name for name, needs in left.items() if not needs & left.keys()]
        or list(left.keys() - needed)
    ):
        for name in free:
            del left[name]
        needed = {other for needs in left.values() for other in needs}
    assert sorted(left) == []


def test_no_package_takes_private_things_from_another() -> None:
    wrong = [
        f"{name} imports {other} {taken}".rstrip()
        for name, found in IMPORTS.items()
        for other, taken in found
        if name.split(".")[0] != other.split(".")[0]
        and any(part.startswith("_") for part in [*other.split("."), taken])
    ]
    assert wrong == []


def test_the_walk_sees_imports_in_functions_and_not_those_for_types() -> None:
    """A test that could not fail would be worth nothing."""
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "from mast_trace.spans import guard\n"
        "import mast_trace.semconv\n"
        "if TYPE_CHECKING:\n    from mast_trace import urls\n"
        "def f():\n    from mast_trace.messages import Message\n"
    )
    assert set(imported(run_at_import(tree, functions=True))) == {
        ("mast_trace.spans.guard", ""),
        ("mast_trace.semconv", ""),
        ("mast_trace.messages", "Message"),
    }
