"""Every check of the project, each in an environment of its own.

``nox`` runs all of them. The frameworks that cannot be installed together have an environment each:
one file under ``tests/environments/``, named after the folder of tests that it is for.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import nox

HERE = Path(__file__).parent


def _release(file: Path) -> tuple[str, list[int]]:
    """Return the name and the release of an environment's file, such as `crewai-1.15.txt`."""
    name, _, release = file.stem.rpartition("-")
    return name, [int(part) for part in release.split(".")]


ENVIRONMENTS = sorted((HERE / "tests" / "environments").glob("*.txt"), key=_release)
CLICKHOUSES = sorted((HERE / "tests" / "clickhouse_versions").glob("*.txt"), key=_release)
# A release between the oldest and the newest rarely breaks alone: those between are tested by
# `nox -s long`, and each ClickHouse with all tests. The newest AG2 and ClickHouse are those of the main tests.
BETWEEN = [
    *(
        f"framework({each.stem})"
        for before, each, after in zip(
            ENVIRONMENTS, ENVIRONMENTS[1:], ENVIRONMENTS[2:], strict=False
        )
        if _release(before)[0] == _release(each)[0] == _release(after)[0]
    ),
    "framework(ag2-1.1)",
    *(f"clickhouse({each.stem})" for each in CLICKHOUSES),
]
# The environments in which tests run on other engines. Tests of our own endpoint belong to the
# embedded engine, and to the main tests.
STORED = (
    "--ignore-glob=*/test_endpoint_*.py",
    # It raises errors of its own: no engine matters.
    "--ignore=tests/judge/worker/test_side_jobs.py",
    "tests/collector/storage",
    "tests/judge/store",
    "tests/judge/worker",
    "tests/dashboards/grafana",
    "tests/dashboards/alerts/test_alert_rules.py",
    "tests/dashboards/test_costs.py",
    "tests/dashboards/test_queries.py",
    "tests/dashboards/test_team_queries.py",
    "tests/dashboards/test_rates.py",
)
# Those of the default run, on the oldest engine: without these files it takes less than half of the time, and 97 of 100
# different statements are left.
STATEMENTS = (
    *(each for each in STORED if each != "tests/judge/worker"),
    "tests/judge/worker/test_rejudge.py",
    *(f"--ignore-glob=*/test_{name}.py" for name in ("erased_runs", "runs", "search_rights")),
    *(f"--ignore-glob=*/test_{name}.py" for name in ("span_writer", "tombstones")),
)
# The sweep of the endpoint as a reader, on the oldest engine that the extra `embedded` allows and
# on the newest; everything else is pinned.
SWEEP = "tests/collector/storage/test_endpoint_sweep.py"
ENGINES = {"oldest": ("--resolution", "lowest"), "newest": ("--upgrade",)}
# Checks that take minutes, each a command of the environment of `nox -s long`; FOLDER is a
# temporary one.
LONG = (
    ("pytest", "-m", "long", "--timeout", "1800", "--ignore", SWEEP),
    # Two kills of each case; the benchmark itself adds up a thousand.
    (
        *("python", "benchmarks/durability/run.py", "--until", "72", "--kills", "2"),
        *("--results", "FOLDER/kills.jsonl", "--folder", "FOLDER"),
    ),
)
PYTHON = "3.11"
# The classifiers list the supported Pythons; on a machine without some of them the others are
# tested.
SUPPORTED = nox.project.python_versions(nox.project.load_toml(HERE / "pyproject.toml"))
FAST = "not slow and not end_to_end and not long and not documents"
# Packages exist for the newest as well; nothing has been tested there, so that no classifier names it.
PYTHONS = [*SUPPORTED, "3.14"]
# The parts that support Python 3.10: those that traced programs install.
TRACED = ("tests/sdk", "tests/instrumentations", "tests/judge/planted", "tests/test_pythons.py")
# Beginnings of packages that come with a torch for CUDA alone; the session `constraints` pins none.
CUDA = ("cuda-", "nvidia-", "triton")
# A torch for the processor alone. Where wheels for CUDA are the usual ones, the others have a suffix and
# are in an index or a folder of their own, which pip has to be told (docs/how-to/train.md).
TORCH = "2.13.0"
TORCH_FOR_CPU = f"torch=={TORCH}" + ("+cpu" if sys.platform == "linux" else "")
# Tests that run beside the fast ones: the newest of each framework that needs an environment of its
# own, on the Pythons that this framework supports.
ELSEWHERE = {
    "autogen-0.14": PYTHONS,
    "crewai-1.15": ("3.10", "3.11", "3.12", "3.13"),
    "metagpt-0.8": ("3.10", "3.11"),
}
# Frameworks whose import alone takes many seconds: they begin, so that none of them is left at the end.
SLOWEST = ("metagpt", "crewai", "autogen", "langgraph-1.1")
# Processes of the main tests, one more than cores, because they wait for other processes half of the time;
# each holds an embedded engine.
WORKERS = min(4, (os.cpu_count() or 2) + 1)
# Files in memory, and the bytes that have to be free there.
MEMORY, ROOM = Path("/dev/shm"), 6 << 30  # noqa: S108
# Set by `nox -s newest`: what an environment pins becomes the oldest that it takes.
NEWEST = "MAST_TRACE_TEST_NEWEST"
# Seconds that one framework's environment may take, its installation included; a few minutes are usual.
SESSION_LIMIT = 900
# Those of an engine's tests.
ENGINE_LIMIT = 1800
# A browser for the web view, and the evaluator of Prometheus rules: package -> its command.
DEBIAN = {
    "chromium": "chromium",
    "prometheus": "promtool",
    "prometheus-alertmanager": "prometheus-alertmanager",
}
# A package that only `nox -s long` uses: it makes the clock jump.
DEBIAN_LONG = {"faketime": "faketime"}


def _offer_all_of_pyenv() -> None:
    """Make pyenv's commands python3.13 and so on all work; by itself it offers one version's alone."""
    if not shutil.which("pyenv"):
        return
    command = ["pyenv", "versions", "--bare"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    ours = [each for each in listed if re.sub(r"\.\d+$", "", each) in PYTHONS]
    # The first is what `python` means.
    ours.sort(key=lambda each: not each.startswith(f"{PYTHON}."))
    if ours:
        os.environ["PYENV_VERSION"] = ":".join(ours)


_offer_all_of_pyenv()
nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
# A session whose Python is missing would be skipped, and nox would end with success.
nox.options.error_on_missing_interpreters = True
nox.options.error_on_external_run = True
# The framework environments are quick; the main tests come last, so that their result is read last.
nox.options.sessions = ["texts", "frameworks", "engines", "tests"]


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style, formatting, types and spelling."""
    _install(session, ".[all,demo]", groups=["lint", "typing", "test"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("codespell")


@nox.session(python=PYTHON)
def docs(session: nox.Session) -> None:
    """Build the site of docs/ strictly, and check its links, its code blocks and what it loads."""
    _install(session, ".[all,demo]", groups=["docs", "test", "frameworks"])
    output = HERE / "build" / "docs"
    shutil.rmtree(output, ignore_errors=True)
    build = ("sphinx-build", "--fail-on-warning", "--keep-going", "--nitpicky", "--quiet")
    session.run(*build, "docs", str(output))
    session.log(f"the site is {output / 'index.html'}")
    options = ("-m", "documents", f"-n{WORKERS}", "--dist=worksteal")
    _pytest(session, "docs", *options, "tests/docs", MAST_TRACE_TEST_SITE=str(output))


@nox.session(venv_backend="none")
def texts(session: nox.Session) -> None:
    """Check code and documentation as `lint` and `docs` do, side by side: each computes on one core."""
    _side_by_side(session, ["lint", "docs"], SESSION_LIMIT, *session.posargs)


@nox.session(python=PYTHON)
@nox.parametrize("environment", [nox.param(file, id=file.stem) for file in ENVIRONMENTS])
def framework(session: nox.Session, environment: Path) -> None:
    """Test one framework's instrumentation with one version of it."""
    overrides = environment.with_suffix(".overrides")
    wanted = environment
    if NEWEST in os.environ:
        wanted = Path(session.create_tmp(), environment.name)
        wanted.write_text(environment.read_text().replace("==", ">="))
    _install(
        session,
        ".",
        "-r",
        str(wanted),
        *(("--overrides", str(overrides)) if overrides.exists() else ()),
        groups=["test"],
        constraints=None,
    )
    name = environment.stem.split("-")[0]
    folder = HERE / "tests" / "instrumentations" / name
    planted = HERE / "tests" / "judge" / "planted" / f"test_planted_{name}.py"
    # Expected verdicts on runs with planted faults; the OpenAI client alone has none.
    ours = [str(path) for path in (folder, planted) if path.exists()]
    _pytest(session, f"framework({environment.stem})", *(session.posargs or ours))


@nox.session(venv_backend="none")
def frameworks(session: nox.Session) -> None:
    """Test the oldest and newest of all frameworks, several environments at a time.

    Some install while others compute; `nox -s long` tests the releases between.
    Some frameworks' own threads now and then keep a process from ending. An environment that hangs
    shows the stacks of its threads and gets one more try; one that fails does not.
    """
    files = sorted(ENVIRONMENTS, key=lambda file: not file.stem.startswith(SLOWEST))
    names = [f"framework({file.stem})" for file in files]
    wanted = [name for name in names if name not in BETWEEN]
    _side_by_side(session, wanted, SESSION_LIMIT, *session.posargs)


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """Test the newest release of every framework and client, and list what changed since the pins.

    Not part of the checks: a release of others fails no commit. ``nox -s newest -- langgraph mcp`` takes
    these alone. The pins of AG2, LangGraph and the OpenAI client are those of the main tests.
    """
    lines = (HERE / "constraints.txt").read_text().splitlines()
    pinned = dict(_pin(line) for line in lines if "==" in line)
    rows, failed = [], []
    # The last environment of each name.
    for name, file in {_release(file)[0]: file for file in ENVIRONMENTS}.items():
        if name not in (session.posargs or [name]):
            continue
        one, place = f"framework({file.stem})", HERE / ".nox" / "newest"
        command = [*_nox(one), "--envdir", str(place)]
        code = subprocess.run(command, env={**os.environ, NEWEST: "1"}, check=False).returncode
        failed += [one] if code else []
        python = str(place / re.sub(r"\W+", "-", one).strip("-"))
        command = ["uv", "pip", "freeze", "--python", python]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found = dict(_pin(line) for line in listed.splitlines() if "==" in line)
        for package, old in map(_pin, file.read_text().splitlines()):
            was, now = pinned.get(package, old), found.get(package, "not installed")
            if old and was != now:
                rows.append((name, package, was, now, "failed" if code else "passed"))
    for row in [("framework", "package", "pinned", "newest", "tests"), *rows]:
        session.log("{:14}{:44}{:14}{:16}{}".format(*row))
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def _pin(line: str) -> tuple[str, str]:
    """Return the package and the version of a line such as `ag2[openai]==1.2.1`."""
    package, _, version = line.partition("==")
    return re.sub(r"\[.*", "", package), version.partition(" ")[0]


@nox.session(python=PYTHON)
@nox.parametrize("version", [nox.param(file, id=file.stem) for file in CLICKHOUSES])
def clickhouse(session: nox.Session, version: Path) -> None:
    """Test schema, storage and queries on other engines, as servers behind our own endpoint.

    No server's package can be installed here; the engine inside of it can. CONTRIBUTING.md lists
    the limits of such a test.
    """
    pinned = _without_engine(session)
    _install(session, ".[judge]", "-r", str(version), groups=["test"], constraints=pinned)
    name = f"clickhouse({version.stem})"
    workers = f"-n{WORKERS}"
    _pytest(session, name, workers, *(session.posargs or STORED), MAST_TRACE_TEST_CLICKHOUSE="own")


@nox.session(venv_backend="none")
def engines(session: nox.Session) -> None:
    """Test nearly all statements on the oldest of those engines; `nox -s long` runs all tests on each."""
    oldest = [f"clickhouse({CLICKHOUSES[0].stem})"]
    _side_by_side(session, oldest, ENGINE_LIMIT, *(session.posargs or STATEMENTS))


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run all tests that need no environment of their own."""
    _debian_packages(session)
    _install(session, ".[all,demo]", groups=["test", "frameworks", "browser", "fuzz"])
    # A file stays with one worker, so that the engine of its module is started once. In the order of the
    # folders, small tests come last; in that of the number of tests, the few that take a minute would.
    spread = (f"-n{WORKERS}", "--dist=loadfile", "--no-loadscope-reorder")
    side_by_side = () if session.posargs else spread
    _pytest(session, "tests", *side_by_side, *session.posargs)


@nox.session(python=PYTHON)
def train(session: nox.Session) -> None:
    """Train a tiny model on the processor, with the real trainer; `nox -s long` runs it.

    pip reads its settings, such as PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL, for a torch without CUDA.
    """
    session.install("pip")
    session.run("python", "-m", "pip", "install", "--quiet", TORCH_FOR_CPU)
    _install(session, ".[all,train]", groups=["test"])
    offline = {"HF_HUB_OFFLINE": "1"}
    _pytest(session, "train", *(session.posargs or ("tests/judge/training",)), **offline)


@nox.session(python=PYTHON)
def fast(session: nox.Session) -> None:
    """Run the tests that take seconds, all parts and the newest frameworks; -P 3.13 names a Python."""
    _install(session, ".[all,demo]", groups=["test", "frameworks"])
    places = TRACED if session.python == "3.10" else ("tests",)
    options = ("-m", FAST, f"-n{WORKERS}", "--dist=loadfile", "--ignore", SWEEP)
    _pytest(session, "tests", *options, *(session.posargs or places))


@nox.session(venv_backend="none")
def pythons(session: nox.Session) -> None:
    """Run SDK, instrumentations and the fast tests on every Python that is found here.

    ``nox -s pythons -- 3.12 3.13`` takes these alone.
    """
    wanted = session.posargs or PYTHONS
    found = [version for version in wanted if _has_python(version)]
    for version in wanted:
        if version not in found:
            session.warn(f"Python {version} is not on this machine: not tested")
    if not found:
        session.error(f"none of Python {', '.join(wanted)} is on this machine")
    failed = []
    for version in found:
        here = [name for name, versions in ELSEWHERE.items() if version in versions]
        for name in ["fast", *(f"framework({name})" for name in here)]:
            command = _nox(name)
            own = ["-P", version, "--envdir", str(HERE / ".nox" / f"python-{version}")]
            if subprocess.run([*command, *own], check=False).returncode:
                failed.append(f"{name} on {version}")
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session(python=PYTHON)
def mutants(session: nox.Session) -> None:
    """Make one-line mistakes and check that tests fail; hours, resumable; `nox -s long` runs it last.

    ``nox -s mutants -- sample --seed 7`` takes others, and benchmarks/mutants says what else there is.
    """
    _install(session, ".[all,demo]", groups=["test", "frameworks", "browser", "mutants"])
    run = ("python", "benchmarks/mutants/run.py")
    if not (HERE / "build" / "mutants" / "record" / "commit").exists():
        session.run(*run, "record")
    session.run(*run, *(session.posargs or ["sample"]))


@nox.session(python=PYTHON)
def transparency(session: nox.Session) -> None:
    """Run frameworks' own test suites with and without recording; hours; not part of the checks."""
    session.install("pip", "uv")
    session.run("python", "benchmarks/transparency/run.py", *session.posargs)


@nox.session(python=PYTHON)
def long(session: nox.Session) -> None:
    """Run the checks that take minutes: tests marked so, and the commands of `LONG`; not part of the checks."""
    _debian_packages(session, DEBIAN | DEBIAN_LONG)
    _install(session, ".[all,demo]", groups=["test", "frameworks", "browser", "fuzz"])
    if not session.posargs:
        for name in [*BETWEEN, *(f"sweep({place})" for place in ENGINES)]:
            session.notify(name)
        session.notify("train")
        session.notify("pythons")
        session.notify("mutants")
    with tempfile.TemporaryDirectory() as folder:
        for command in [("pytest", "-m", "long", *session.posargs)] if session.posargs else LONG:
            session.run(*(part.replace("FOLDER", folder) for part in command))


@nox.session(python=PYTHON)
@nox.parametrize("engine", [nox.param(options, id=place) for place, options in ENGINES.items()])
def sweep(session: nox.Session, engine: tuple[str, ...]) -> None:
    """Try everything that an embedded engine knows, as a reader of the endpoint; `nox -s long` runs it."""
    pinned = _without_engine(session)
    _install(session, ".[judge,embedded]", *engine, groups=["test"], constraints=pinned)
    options = ("-m", "long or not long", "--timeout", "3600", f"-n{WORKERS}", "--dist=worksteal")
    session.run("pytest", *options, SWEEP, *session.posargs)


@nox.session(python=PYTHON)
def constraints(session: nox.Session) -> None:
    """Pin the newest versions of everything, for each Python; not part of the checks.

    With `-- --no-upgrade` pinned versions stay, and only versions that are new or no longer fit are
    chosen.
    """
    session.install("uv")
    file = HERE / "constraints.txt"
    torch = Path(session.create_tmp(), "torch.txt")
    torch.write_text(f"torch=={TORCH}\n")
    session.run(
        *("uv", "pip", "compile", "pyproject.toml", "--universal", "--upgrade", "--all-extras"),
        *("--group", "dev", "--group", "frameworks", "--group", "browser", "--group", "mutants"),
        *("--group", "docs"),
        *("--python-version", SUPPORTED[0], "--no-python-downloads", *session.posargs),
        *("--no-annotate", "--custom-compile-command", "nox -s constraints"),
        *("--constraint", str(torch), "--output-file", str(file)),
        silent=True,
    )
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(CUDA)))


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
    # Tests start hundreds of processes: modules compiled once, outside the sources, halve the time.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    session.env["PYTHONPYCACHEPREFIX"] = str(
        Path(session.virtualenv.location, "compiled").absolute()
    )


def _nox(name: str) -> list[str]:
    """Return the command of another session, which only installs where this process only installs."""
    options = ["--install-only"] if "--install-only" in sys.argv else []
    return [sys.executable, "-m", "nox", "-f", str(HERE / "noxfile.py"), *options, "-s", name]


def _side_by_side(session: nox.Session, names: list[str], limit: float, *posargs: str) -> None:
    """Run other sessions; one that does not end within so many seconds gets one more try."""
    failed = []

    def run(name: str) -> None:
        for _ in range(2):
            with tempfile.TemporaryFile("w+", errors="replace") as output:
                problem = _run_session(name, output, limit, *posargs)
                output.seek(0)
                sys.stdout.write(f"\n--- {name}\n{output.read()}")
                sys.stdout.flush()
            if problem:
                session.warn(f"{name} {problem}")
            if problem != _hung(limit):
                break
        if problem:
            failed.append(f"{name} {problem}")

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(run, name) for name in names]:
            done.result()
    if failed:
        session.error(", ".join(sorted(failed)))


def _hung(limit: float) -> str:
    return f"did not end within {limit} s"


def _run_session(name: str, output: IO[str], limit: float, *posargs: str) -> str:
    """Run another session, its output in a file; return the problem, or nothing.

    A pipe would be read until the last process that a test left behind closes it. A session that
    hangs is asked for the stacks of its threads, and then killed with all its children.
    """
    command = _nox(name)
    process = subprocess.Popen(
        [*command, "--", *posargs],
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGABRT, signal.SIGKILL):
            os.killpg(process.pid, number)
            time.sleep(2)
        process.wait()
        return _hung(limit)
    return f"failed with exit status {status}" if status else ""


def _has_python(version: str) -> bool:
    command = ["uv", "python", "find", "--system", "--no-python-downloads", version]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _without_engine(session: nox.Session) -> Path:
    """Return constraints that pin all but the engine."""
    pinned = Path(session.virtualenv.location, "constraints.txt")
    lines = (HERE / "constraints.txt").read_text().splitlines(keepends=True)
    pinned.write_text("".join(line for line in lines if not line.startswith("chdb")))
    return pinned


def _debian_packages(session: nox.Session, needed: dict[str, str] = DEBIAN) -> None:
    """Install the tools of tests beside Python packages; without them tests skip with a reason."""
    missing = [package for package, command in needed.items() if shutil.which(command) is None]
    if missing and shutil.which("apt-get") and os.geteuid() == 0:
        session.run("apt-get", "update", "-q", external=True, silent=True)
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing)
        session.run(*install, external=True, silent=True, env=quiet)


def _pytest(session: nox.Session, name: str, *arguments: str, **variables: str) -> None:
    """Run tests; the name selects the tests that may be skipped (tests/expected_skips.toml).

    Their files are in memory where there is enough: every insert of a test waits several times for the disk.
    """
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    place = MEMORY if is_roomy else None
    with tempfile.TemporaryDirectory(dir=place, prefix="", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # Tests look what another user can do with a file in it.
        common = {"MAST_TRACE_TEST_SESSION": name, "TMPDIR": folder}
        session.run("pytest", *arguments, env={**common, **variables})
