"""The packages know only those below them, and importing the SDK loads next to nothing."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
SDK = "mast_trace"
INSTRUMENTATIONS = "mast_trace_instrumentations"
COLLECTOR = "mast_trace_collector"
JUDGE = "mast_trace_judge"
DASHBOARDS = "mast_trace_dashboards"
LAB = "mast_trace_lab"
FOLDERS = {
    SDK: HERE / "sdk" / SDK,
    INSTRUMENTATIONS: HERE / "instrumentations" / INSTRUMENTATIONS,
    COLLECTOR: HERE / "collector" / COLLECTOR,
    JUDGE: HERE / "judge" / JUDGE,
    DASHBOARDS: HERE / "dashboards" / DASHBOARDS,
    LAB: HERE / "lab" / LAB,
}
MAY_IMPORT = {
    SDK: {SDK},
    INSTRUMENTATIONS: {SDK, INSTRUMENTATIONS},
    COLLECTOR: {SDK, COLLECTOR},
    JUDGE: {SDK, COLLECTOR, JUDGE},
    DASHBOARDS: {SDK, COLLECTOR, JUDGE, DASHBOARDS},
    LAB: {SDK, COLLECTOR, JUDGE, DASHBOARDS, LAB},
}
# An environment with nothing but the SDK and its dependencies.
LIGHT = {"opentelemetry", "requests", "wrapt"}
# Imported where they are needed, and absent otherwise: the extra `grpc`, pytest for the fixtures.
OPTIONAL = {"grpc", "google", "pytest"}
HEAVY = [
    "chdb",
    "clickhouse_connect",
    "google.protobuf",
    "grpc",
    "httpx",
    "openai",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "pydantic",
    "pytest",
    "requests",
]

USED_WHILE_OFF = """
import mast_trace
with mast_trace.run("r"), mast_trace.agent("a"):
    mast_trace.message("a", "b", "c")
"""


def sources(package: str) -> Iterator[Path]:
    yield from sorted(FOLDERS[package].rglob("*.py"))


def imports(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """The top-level names of all modules that are imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def run_at_import(tree: ast.Module, *, functions: bool = False) -> Iterator[ast.AST]:
    """The statements that importing a module executes: not functions, not ``TYPE_CHECKING``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not functions:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_imports_only_what_is_below_it(package: str) -> None:
    """Sdk <- instrumentations; sdk <- collector <- judge <- dashboards; nothing else."""
    wrong = [
        f"{source.relative_to(HERE)}: {name}"
        for source in sources(package)
        for name in imports(ast.walk(ast.parse(source.read_text())))
        if name.startswith(SDK) and name not in MAY_IMPORT[package]
    ]
    assert wrong == []


def test_the_sdk_needs_no_other_distribution() -> None:
    """It lives beside any framework in any version: no pydantic, no server, no framework."""
    allowed = sys.stdlib_module_names | LIGHT | OPTIONAL | {SDK}
    wrong = [
        f"{source.relative_to(HERE)}: {name}"
        for source in sources(SDK)
        for name in imports(run_at_import(ast.parse(source.read_text())))
        if name not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("package", [SDK, INSTRUMENTATIONS])
def test_locks_of_traced_programs_survive_a_fork(package: str) -> None:
    """`mast_trace.fork_safe` makes them, except where a child makes its object anew, or no fork is traced."""
    own = {"fork_safe.py", "delivery/worker.py", "replay/player.py", "replay/program.py"}
    wrong = [
        str(source.relative_to(HERE))
        for source in sources(package)
        if source.relative_to(FOLDERS[package]).as_posix() not in own
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).removeprefix("threading.") in {"Lock", "RLock", "Condition"}
    ]
    assert wrong == []


def test_the_walk_sees_imports_wherever_they_stand() -> None:
    """A test that could not fail would be worth nothing."""
    tree = ast.parse(
        "import a.b\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import hidden\nelse:\n    import shown\n"
        "class C:\n    from c import d\n    def f(self):\n        import later\n"
        "try:\n    from . import own\nexcept ImportError:\n    from e import f\n"
    )
    assert {*imports(ast.walk(tree))} == {"a", "typing", "hidden", "shown", "c", "later", "e"}
    assert {*imports(run_at_import(tree))} == {"a", "typing", "shown", "c", "e"}


def loaded_after(statement: str) -> list[str]:
    """Those of the heavy modules that a fresh interpreter has after ``statement``."""
    program = f"import sys\n{statement}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    ended = run_program(sys.executable, "-c", program, status=0, timeout=60)
    return ended.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import mast_trace",
        "from mast_trace import agent, message, record_outcome, run, tool",
        "from mast_trace import instrument, flush, uninstrument",
        "import mast_trace.replay",
        "from mast_trace.replay import replayed",
        USED_WHILE_OFF,
    ],
)
def test_importing_the_sdk_loads_nothing_heavy(statement: str) -> None:
    """Nor does using it while it is off: start-up time is the program's."""
    assert loaded_after(statement) == []


def test_the_pytest_plugin_is_light() -> None:
    """It is imported in every test run of whoever has installed mast-trace."""
    assert loaded_after("import mast_trace.testing") == ["pytest"]


@pytest.mark.parametrize(
    ("room", "others"),
    [
        ("mast_trace.spans", ["trajectory", "delivery", "manual"]),
        ("mast_trace.trajectory", ["spans", "delivery", "manual"]),
    ],
)
def test_write_side_and_read_side_do_not_load_each_other(room: str, others: list[str]) -> None:
    """A traced program needs no reader, and a judge makes no spans."""
    program = f"import sys, {room}\nprint(*[m for m in sys.modules if m.startswith('mast_trace.')])"
    ended = run_program(sys.executable, "-c", program, status=0, timeout=60)
    loaded = {name.split(".")[1] for name in ended.stdout.split()}
    assert room.split(".")[1] in loaded
    assert loaded & set(others) == set()
    assert loaded_after(f"import {room}") == []


def test_no_helper_of_the_tests_hides_another_module() -> None:
    """Pytest puts each folder of tests on the path of all: a name means one module, wherever it stands."""
    helpers: dict[str, list[str]] = {}
    for source in (HERE / "tests").rglob("*.py"):
        if list(source.parent.glob("test_*.py")) and source.stem not in {"conftest", "__init__"}:
            helpers.setdefault(source.stem, []).append(str(source.relative_to(HERE)))
    assert {name: found for name, found in helpers.items() if len(found) > 1} == {}
    # Some tests import the benchmarks' modules, folders among them.
    paths = (HERE / "benchmarks").glob("*/*")
    assert helpers.keys() & {path.stem for path in paths if path.suffix in {"", ".py"}} == set()


ONE_MEANING = {
    "ClientCall": "a call of a client for models, which each of them makes",
    "Interface": "an interface of a client for models",
    "Plugin": "a feature; each package adds to what the one below asks of it",
    "ResponseAssembly": "puts the pieces of a client's answer together",
    "StoredRun": "a run as it was stored, in a database or an export",
    "Value": "a value with the place where it stands",
}
"""Names that several modules give to the same thing."""


def test_no_public_class_name_has_two_meanings() -> None:
    homes: dict[str, list[str]] = {}
    for package in FOLDERS:
        for source in sources(package):
            for node in ast.parse(source.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(str(source.relative_to(HERE)))
    several = {name: found for name, found in homes.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if name not in ONE_MEANING} == {}


def test_replays_are_conducted_where_the_sdk_is_installed_alone() -> None:
    """The tests of each framework do so, in environments of their own."""
    used = ("confirm.fixes", "confirm.preparation", "confirm.statistics", "replay.arm_runner")
    program = (
        "import importlib, sys\n"
        "sys.modules.update(dict.fromkeys(('typer', 'pydantic_settings', 'starlette', 'rich')))\n"
        f"for name in {[*used, 'program.conducting', 'program.setup']!r}:\n"
        "    importlib.import_module(f'mast_trace_lab.{name}')"
    )
    run_program(sys.executable, "-c", program, status=0, timeout=60)
