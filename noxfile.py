"""Every check of the project, each in an environment of its own.

``nox`` runs all of them. The frameworks that cannot live beside each other have an environment
each: one file under ``tests/environments/``, named after the folder of tests that it is for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nox

HERE = Path(__file__).parent
ENVIRONMENTS = sorted((HERE / "tests" / "environments").glob("*.txt"))
CLICKHOUSES = sorted((HERE / "tests" / "clickhouse_versions").glob("*.txt"))
# What is tested with them. Tests of our own endpoint belong to the embedded engine, and to the main
# tests.
STORED = (
    "--ignore-glob=*/test_endpoint_*.py",
    "tests/collector/storage",
    "tests/judge/store",
    "tests/judge/worker",
    "tests/dashboards/grafana",
    "tests/dashboards/alerts/test_alert_rules.py",
    "tests/dashboards/test_queries.py",
    "tests/dashboards/test_trend_queries.py",
)
# What a reader of the endpoint must not get, tried on the oldest engine that the extra `embedded`
# allows and on the newest; all else is pinned.
SWEEP = "tests/collector/storage/test_endpoint_sweep.py"
ENGINES = {"oldest": ("--resolution", "lowest"), "newest": ("--upgrade",)}
# What takes minutes, each a command of the environment of `nox -s long`; FOLDER is a temporary one.
LONG = (
    ("pytest", "-m", "long", "--timeout", "1800", "--ignore", SWEEP),
    # Two kills of each case; the benchmark itself adds up a thousand.
    (
        *("python", "benchmarks/durability/run.py", "--until", "72", "--kills", "2"),
        *("--results", "FOLDER/kills.jsonl", "--folder", "FOLDER"),
    ),
)
PYTHON = "3.11"
# Processes of the main tests; each holds an embedded engine.
WORKERS = min(4, max(2, os.cpu_count() or 2))
# A browser for the web view, and what evaluates the Prometheus rules: package -> its command.
DEBIAN = {
    "chromium": "chromium",
    "prometheus": "promtool",
    "prometheus-alertmanager": "prometheus-alertmanager",
}
# What only `nox -s long` uses: it makes the clock jump.
DEBIAN_LONG = {"faketime": "faketime"}

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.error_on_external_run = True
# The framework environments are quick; the main tests come last, so that their result is read last.
nox.options.sessions = ["lint", "frameworks", "clickhouse", "tests"]


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style, formatting, types and spelling."""
    _install(session, ".[all,demo]", groups=["lint", "typing", "test"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("codespell")


@nox.session(python=PYTHON)
@nox.parametrize("environment", [nox.param(file, id=file.stem) for file in ENVIRONMENTS])
def framework(session: nox.Session, environment: Path) -> None:
    """Test one framework's instrumentation with one version of it."""
    overrides = environment.with_suffix(".overrides")
    _install(
        session,
        ".",
        "-r",
        str(environment),
        *(("--overrides", str(overrides)) if overrides.exists() else ()),
        groups=["test"],
        constraints=None,
    )
    name = environment.stem.split("-")[0]
    folder = HERE / "tests" / "instrumentations" / name
    planted = HERE / "tests" / "judge" / "planted" / f"test_planted_{name}.py"
    # What the instrumentation makes of runs with planted faults; the OpenAI client alone has none.
    ours = [str(path) for path in (folder, planted) if path.exists()]
    _pytest(session, f"framework({environment.stem})", *(session.posargs or ours))


@nox.session(venv_backend="none")
def frameworks(session: nox.Session) -> None:
    """Test all frameworks, two environments at a time: one installs while another computes."""

    def run(environment: Path) -> subprocess.CompletedProcess[str]:
        name = f"framework({environment.stem})"
        command = [sys.executable, "-m", "nox", "-f", str(HERE / "noxfile.py"), "-s", name]
        return subprocess.run(
            [*command, "--", *session.posargs],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    failed = []
    with ThreadPoolExecutor(2) as pool:
        running = {pool.submit(run, environment): environment.stem for environment in ENVIRONMENTS}
        for done in as_completed(running):
            name, result = running[done], done.result()
            sys.stdout.write(f"\n--- {name}\n{result.stdout}")
            sys.stdout.flush()
            if result.returncode:
                failed.append(name)
    if failed:
        session.error(f"failed: {', '.join(sorted(failed))}")


@nox.session(python=PYTHON)
@nox.parametrize("version", [nox.param(file, id=file.stem) for file in CLICKHOUSES])
def clickhouse(session: nox.Session, version: Path) -> None:
    """Test schema, storage and queries on other engines, as servers behind our own endpoint.

    No server's package can be installed here; the engine inside of it can. What such a test cannot
    see is in CONTRIBUTING.md.
    """
    pinned = _without_engine(session)
    _install(session, ".[judge]", "-r", str(version), groups=["test"], constraints=pinned)
    name = f"clickhouse({version.stem})"
    _pytest(session, name, "-n2", *(session.posargs or STORED), MAST_TRACE_TEST_CLICKHOUSE="own")


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run all tests that need no environment of their own."""
    _debian_packages(session)
    _install(session, ".[all,demo]", groups=["test", "frameworks", "browser", "fuzz"])
    # A file stays with one worker, so that the engine of its module is started once.
    side_by_side = () if session.posargs else (f"-n{WORKERS}", "--dist=loadfile")
    _pytest(session, "tests", *side_by_side, *session.posargs)


@nox.session(python=PYTHON)
def mutants(session: nox.Session) -> None:
    """Make one-line mistakes and see that tests fail; hours, resumable; `nox -s long` runs it last.

    ``nox -s mutants -- fusion alerts`` takes these targets of benchmarks/mutants/targets.toml alone.
    """
    _install(session, ".[all,demo]", groups=["test", "frameworks", "mutants"])
    session.run("python", "benchmarks/mutants/run.py", *session.posargs)


@nox.session(python=PYTHON)
def long(session: nox.Session) -> None:
    """Run what takes minutes: tests marked so, and the commands of `LONG`; not part of the checks."""
    _debian_packages(session, DEBIAN | DEBIAN_LONG)
    _install(session, ".[all,demo]", groups=["test", "frameworks", "browser", "fuzz"])
    if not session.posargs:
        for place in ENGINES:
            session.notify(f"sweep({place})")
        session.notify("mutants")
    with tempfile.TemporaryDirectory() as folder:
        for command in [("pytest", "-m", "long", *session.posargs)] if session.posargs else LONG:
            session.run(*(part.replace("FOLDER", folder) for part in command))


@nox.session(python=PYTHON)
@nox.parametrize("engine", [nox.param(options, id=place) for place, options in ENGINES.items()])
def sweep(session: nox.Session, engine: tuple[str, ...]) -> None:
    """Try all that an embedded engine knows, as a reader of the endpoint; `nox -s long` runs it."""
    pinned = _without_engine(session)
    _install(session, ".[judge,embedded]", *engine, groups=["test"], constraints=pinned)
    options = ("-m", "long or not long", "--timeout", "3600", f"-n{WORKERS}", "--dist=worksteal")
    session.run("pytest", *options, SWEEP, *session.posargs)


@nox.session(python=PYTHON)
def constraints(session: nox.Session) -> None:
    """Pin the newest versions of everything into constraints.txt; not part of the checks."""
    session.install("uv")
    session.run(
        *("uv", "pip", "compile", "pyproject.toml", "--upgrade", "--all-extras"),
        *("--group", "dev", "--group", "frameworks", "--group", "browser", "--group", "mutants"),
        *("--python-version", PYTHON),
        *("--no-annotate", "--custom-compile-command", "nox -s constraints"),
        *("--output-file", "constraints.txt"),
        silent=True,
    )


def _install(
    session: nox.Session,
    project: str,
    *more: str,
    groups: list[str],
    constraints: Path | None = HERE / "constraints.txt",
) -> None:
    """Install the project and dependency groups; the old pip of some machines knows no groups."""
    named = [part for group in groups for part in ("--group", group)]
    pinned = ["-c", str(constraints)] if constraints else []
    session.install("-e", project, *more, *named, *pinned)
    # Tests start hundreds of processes: compiled once, outside the sources, they take half the time.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    session.env["PYTHONPYCACHEPREFIX"] = str(
        Path(session.virtualenv.location, "compiled").absolute()
    )


def _without_engine(session: nox.Session) -> Path:
    """Return constraints that pin all but the engine."""
    pinned = Path(session.virtualenv.location, "constraints.txt")
    lines = (HERE / "constraints.txt").read_text().splitlines(keepends=True)
    pinned.write_text("".join(line for line in lines if not line.startswith("chdb")))
    return pinned


def _debian_packages(session: nox.Session, needed: dict[str, str] = DEBIAN) -> None:
    """Install what tests use beside Python packages; without it they skip and say why."""
    missing = [package for package, command in needed.items() if shutil.which(command) is None]
    if missing and shutil.which("apt-get") and os.geteuid() == 0:
        session.run("apt-get", "update", "-q", external=True, silent=True)
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing)
        session.run(*install, external=True, silent=True, env=quiet)


def _pytest(session: nox.Session, name: str, *arguments: str, **variables: str) -> None:
    """Run tests; the name says which tests may be skipped (tests/expected_skips.toml)."""
    common = {"MAST_TRACE_TEST_SESSION": name}
    session.run("pytest", *arguments, env={**common, **variables})
