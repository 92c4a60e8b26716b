"""The built wheel works in an empty environment: what users install is what is tested here."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HERE = Path(__file__).parent.parent
PACKAGES = {
    "mast_trace",
    "mast_trace_instrumentations",
    "mast_trace_collector",
    "mast_trace_judge",
    "mast_trace_dashboards",
    "mast_trace_lab",
}
PROGRAM = """
import sys
import mast_trace

report = mast_trace.instrument(endpoint=sys.argv[1])
assert report.active == (), report
with mast_trace.run("refund", input="Refund order 17"):
    with mast_trace.agent("clerk"):
        mast_trace.message("clerk", "user", "Done.")
mast_trace.record_outcome(True)
print(report)
"""

WITHOUT_LAB = """
import sys

sys.path[:0] = sys.argv[1:3]
import asyncio, importlib.util, tempfile
import httpx
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.grafana.dashboards import files
from mast_trace_dashboards.web.app import web_app

assert importlib.util.find_spec("mast_trace_lab") is None
assert run(["--help"]) == 0
assert [run([name, "--help"]) for name in ("runs", "judge")] == [0, 0]
assert [run([name, "--help"]) for name in ("confirm", "profile")] == [2, 2]
assert "Self-test" not in str(list(files()))


async def pages(store):
    transport = httpx.ASGITransport(web_app(store))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        paths = ("/", "/judge", "/queue", "/patterns", "/profile", "/experiments", "/lessons")
        return [(await client.get(path)).status_code for path in paths]


with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}/store") as store:
    migrate(store)
    found = asyncio.run(pages(store))
assert found == [200, 200, 200, 200, 404, 404, 404], found
"""


def run(*command: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    return run_program(*command, status=expect, timeout=300)


def make_environment(folder: Path, install: Sequence[str | Path]) -> Path:
    """Make an environment with nothing but ``install``; return its Python."""
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if uv := shutil.which("uv"):
        run(uv, "venv", "--python", sys.executable, folder)
        run(uv, "pip", "install", "--python", python, *install)
    else:
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", *install)
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy: builders leave traces."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    skipped = shutil.ignore_patterns(".*", "__pycache__", "tests", "benchmarks", "dist", "build")
    shutil.copytree(HERE, source, ignore=skipped)
    builder = make_environment(folder / "builder", ["hatchling"])
    run(builder, "-m", "hatchling", "build", "-d", folder / "dist", "-t", "wheel")
    return next((folder / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and its dependencies only."""
    return make_environment(tmp_path_factory.mktemp("user") / "env", [wheel])


def test_holds_the_packages_and_what_they_need_to_run(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == PACKAGES
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    assert any(name.endswith(".sql") for name in names)
    assert any(name.startswith("mast_trace_dashboards/examples/") for name in names)
    assert "mast_trace_dashboards/examples/foreign/parcel.py" in names
    assert not any("__pycache__" in name for name in names)


def test_the_core_works_without_the_lab(wheel: Path, tmp_path: Path) -> None:
    """Commands, pages and dashboards of the features are gone, and nothing complains of them."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    shutil.rmtree(tmp_path / "mast_trace_lab")
    # Without `site` the sources of this project, which are installed as links, are out of the way.
    alone = (sys.executable, "-I", "-S", "-c", WITHOUT_LAB, tmp_path)
    ended = run(*alone, sysconfig.get_path("purelib"))
    commands = [line.split()[1] for line in ended.stdout.splitlines() if line.startswith("\u2502 ")]
    assert {"runs", "show", "judge", "check"} <= set(commands)
    assert not {"confirm", "inject", "train", "profile", "lessons"} & set(commands)
    assert "plugin" not in ended.stderr


def test_runs_with_an_unreachable_collector(python: Path, tmp_path: Path) -> None:
    """Import, instrument, a run: exit code 0 and a last line that says what to start."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{probe.getsockname()[1]}"
    program = tmp_path / "agents.py"
    program.write_text(PROGRAM)
    ended = run(python, program, endpoint)
    assert "records agents to" in ended.stdout
    # A slow machine delivers once before the program ends, and then has said that the spans wait.
    *waiting, line = ended.stderr.splitlines()
    assert all("they wait" in each for each in waiting)
    assert len(waiting) <= 1
    assert "4 span(s) lost" in line
    assert "mast-trace up" in (waiting or [line])[0]


def test_brings_no_framework_and_no_server(python: Path) -> None:
    program = (
        "from importlib.metadata import distributions as d;"
        "print(*sorted({each.metadata['Name'].lower() for each in d()}))"
    )
    installed = set(run(python, "-c", program).stdout.split())
    unwanted = {"pydantic", "grpcio", "openai", "httpx", "clickhouse-connect", "chdb", "rich"}
    assert not installed & unwanted
    assert len(installed) < 20


def test_has_a_doctor_and_says_what_the_command_line_needs(python: Path) -> None:
    command = python.with_name("mast-trace")
    ended = run(command, "doctor", "--quick", "--endpoint", "http://127.0.0.1:1", expect=1)
    assert "mast-trace up" in ended.stdout
    ended = run(command, "runs", expect=2)
    assert "mast-trace[all]" in ended.stderr
