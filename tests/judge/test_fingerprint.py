"""The sources of the judge's version: the code and the texts that decide a verdict."""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from judge.data import labelled_runs
from published.who_and_when import read_who_and_when

from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.fingerprint import (
    BOUNDARY,
    MODEL,
    REVIEWED,
    ImportedName,
    fingerprint,
    is_beyond,
    reached,
    read_module,
)
from mast_trace_judge.judge import Judge
from mast_trace_judge.local.attribution.profile import shipped_profiles
from mast_trace_judge.version import judge_version

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[2]
SOURCES = {
    "mast_trace": HERE / "sdk" / "mast_trace",
    "mast_trace_judge": HERE / "judge" / "mast_trace_judge",
}
COLLECTOR = HERE / "collector" / "mast_trace_collector"
COUNTED = sorted(reached(SOURCES, model=True))
LOCAL = reached(SOURCES, model=False).keys()
JUDGES = SOURCES["mast_trace_judge"]
UNCOUNTED = sorted(
    str(path.relative_to(JUDGES))
    for part in ("study", "transfer", "store", "worker.py", "config.py")
    for path in ([JUDGES / part] if part.endswith(".py") else (JUDGES / part).rglob("*.py"))
)
SETTINGS = (
    ("judge_reasoning_effort", "low"),
    ("judge_max_output_tokens", 77),
    ("judge_window_tokens", 7_777),
    ("judge_candidates", 7),
    ("judge_samples", 7),
)
"""A model's settings, each with another value than its default."""
TEXTS = sorted(
    str(path.relative_to(JUDGES))
    for part in ("local", "llm")
    for path in (JUDGES / part).rglob("*")
    if path.suffix in {".json", ".md"}
)


class Copy:
    """A copy of the packages that may be changed."""

    def __init__(self, folder: Path) -> None:
        self.packages = {name: folder / name for name in SOURCES}
        for name, source in SOURCES.items():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, self.packages[name], ignore=ignored)
        self.before = self.versions()

    def versions(self) -> tuple[str, str]:
        """Without a model, and with one."""
        return fingerprint(self.packages, model=False), fingerprint(self.packages, model=True)

    def file(self, module: str) -> Path:
        """The file of a module."""
        package, *parts = module.split(".")
        file = self.packages[package].joinpath(*parts)
        return file / "__init__.py" if file.is_dir() else file.with_suffix(".py")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """One copy for all tests, each of which puts back what it changes."""
    return Copy(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def rewrite(copied: Copy) -> Iterator[object]:
    """Rewrites files of the copy for one test."""
    before: dict[Path, str] = {}

    def write(path: Path, text: str) -> None:
        before.setdefault(path, path.read_text("utf-8"))
        path.write_text(text, "utf-8")

    yield write
    for path, text in before.items():
        path.write_text(text, "utf-8")


def changed(text: str) -> str:
    """A module's text with one more statement."""
    return f"{text}\n_CHANGED = 1\n"


@pytest.mark.parametrize("module", COUNTED)
def test_a_change_of_what_decides_is_another_version(copied, rewrite, module):
    """A change of any module counts; modules of a model's judge change that judge's version alone."""
    file = copied.file(module)
    rewrite(file, changed(file.read_text("utf-8")))
    after = copied.versions()
    assert (after[0] != copied.before[0]) == (module in LOCAL)
    assert after[1] != copied.before[1]


def test_a_change_of_anything_else_leaves_the_version(copied, rewrite):
    """Studies, import and export, the database, settings, the worker; in the SDK all but the modules that read spans.

    In collector and dashboards none can count.
    """
    places = [copied.packages["mast_trace_judge"] / path for path in UNCOUNTED]
    for part in ("spans", "delivery", "manual"):
        places += (copied.packages["mast_trace"] / part).rglob("*.py")
    for file in places:
        rewrite(file, changed(file.read_text("utf-8")))
    assert copied.versions() == copied.before
    assert {name.partition(".")[0] for name in COUNTED} == set(SOURCES)
    assert [name for name in COUNTED if name.startswith("mast_trace.")] == [
        "mast_trace.content",
        "mast_trace.messages",
        "mast_trace.semconv",
        "mast_trace.taxonomy",
        *(name for name in COUNTED if name.startswith("mast_trace.trajectory.")),
        "mast_trace.untrusted_json",
    ]


@pytest.mark.parametrize("path", TEXTS)
def test_texts_count(copied, rewrite, path):
    """Profiles and calibrations for every judge, prompts for a model's."""
    file = copied.packages["mast_trace_judge"] / path
    rewrite(file, file.read_text("utf-8") + "\n")
    after = copied.versions()
    assert (after[0] != copied.before[0]) == path.startswith("local")
    assert after[1] != copied.before[1]


def test_the_texts_are_profiles_calibrations_and_prompts():
    """All that judges read beside code."""
    assert {Path(path).parent.name for path in TEXTS} == {"attribution", "profiles", "prompts"}


def test_other_words_leave_the_version(copied, rewrite):
    """Docstrings, comments, blank lines and annotations of every module that counts."""
    for module in COUNTED:
        file = copied.file(module)
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.returns = ast.Constant("object")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                if ast.get_docstring(node) is not None:
                    del node.body[0]
                node.body.insert(0, ast.Expr(ast.Constant("Other words.")))
        rewrite(file, f"# A comment.\n{ast.unparse(ast.fix_missing_locations(tree))}\n\n")
    assert copied.versions() == copied.before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mast_trace_judge.local.phrases", "mast_trace_judge.local.wordings"),
        ("mast_trace_judge.local.rules.reset", "mast_trace_judge.local.restarts"),
        ("mast_trace_judge.llm.layer", "mast_trace_judge.llm.voting"),
        ("mast_trace_judge.verdict", "mast_trace_judge.local.verdicts"),
        ("mast_trace.untrusted_json", "mast_trace.trajectory.careful_json"),
    ],
)
def test_another_name_of_a_module_leaves_the_version(tmp_path, old, new):
    """With the imports rewritten; what it holds is what counts."""
    copied = Copy(tmp_path)
    package, last = old.rsplit(".", 1)
    copied.file(old).rename(copied.file(new))
    for package_folder in copied.packages.values():
        for file in package_folder.rglob("*.py"):
            text = re.sub(rf"\b{re.escape(old)}\b", new, file.read_text("utf-8"))
            by_module = rf"from {re.escape(package)} import {last}\b"
            to = "from {} import {} as {}".format(*new.rsplit(".", 1), last)
            file.write_text(re.sub(by_module, to, text), "utf-8")
    assert copied.versions() == copied.before


def test_functions_that_change_places_are_another_version(tmp_path):
    """Two modules define the same name: which one is imported counts, though both still are."""
    for name, text in {
        "judge": "from mast_trace_judge.one import f\nfrom mast_trace_judge.two import f as g\n",
        "one": "def f(): return 1\n",
        "two": "def f(): return 2\n",
        "local/long_runs": "",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    packages = {"mast_trace_judge": tmp_path}
    before = fingerprint(packages, model=False)
    judge = tmp_path / "judge.py"
    judge.write_text(
        "from mast_trace_judge.two import f\nfrom mast_trace_judge.one import f as g\n"
    )
    assert fingerprint(packages, model=False) != before
    (tmp_path / "two.py").unlink()
    with pytest.raises(LookupError, match=r"mast_trace_judge\.two decides verdicts"):
        fingerprint(packages, model=False)


def test_the_boundary_is_what_the_walk_meets():
    """The list holds no module that is gone, or that no counted module imports any more."""
    folders = {**SOURCES, "mast_trace_collector": COLLECTOR}
    for name in (*BOUNDARY, *MODEL):
        package, *parts = name.split(".")
        place = folders[package].joinpath(*parts)
        assert place.is_dir() or place.with_suffix(".py").is_file(), name
    met = {
        name
        for module in reached(SOURCES, model=True).values()
        for imported in module.imports
        for name in (imported.module, f"{imported.module}.{imported.name}")
        if is_beyond(name, model=True)
    }
    assert [
        end for end in BOUNDARY if not any(f"{name}.".startswith(f"{end}.") for name in met)
    ] == []


@pytest.mark.parametrize("room", ["local", "llm"])
def test_a_room_holds_exactly_what_decides(room):
    """``local`` decides without a model, ``llm`` with one; the boundary names the exceptions."""
    empty = read_module("").code
    there = {
        ".".join(
            ["mast_trace_judge", *path.relative_to(JUDGES).with_suffix("").parts]
        ).removesuffix(".__init__")
        for path in (JUDGES / room).rglob("*.py")
        if read_module(path.read_text("utf-8")).code != empty
    }
    counted = LOCAL if room == "local" else set(COUNTED)
    assert {name for name in there - set(counted) if not is_beyond(name, model=True)} == set()
    if room == "local":
        assert there <= set(counted)


def test_own_profiles_and_settings_count():
    """As they did: profiles for every judge, a model's settings where there is one."""
    (profile, *_) = shipped_profiles()
    local = JudgeConfig(judge_model="")
    model = JudgeConfig(judge_model="m", judge_base_url="http://127.0.0.1:1")
    warm = model.model_copy(update={"judge_temperature": 0.5})
    given = [
        judge_version(local),
        judge_version(local, [profile]),
        judge_version(model),
        judge_version(warm),
        judge_version(model.model_copy(update={"judge_model": "n"})),
        *(judge_version(model.model_copy(update={name: value})) for name, value in SETTINGS),
    ]
    assert len(set(given)) == len(given)
    assert judge_version(local.model_copy(update={"judge_temperature": 0.5})) == given[0]
    assert Judge(local).version == given[0]


def test_a_judge_without_a_model_imports_no_client():
    """The version is computed from sources, whatever they import."""
    code = (
        "import sys; from mast_trace_judge.fingerprint import installed_fingerprint as f;"
        "f(model=True); print('openai' in sys.modules, 'pydantic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(a: int) -> str: return a", 'def f(a):\n    """Doc."""\n    return (a)  # said'),
        ("import a\nx = 1", "x = 1"),
        ("class A(B): pass", 'class A(B):\n    """Doc."""'),
        ("x = 'ab'", 'x = "a" "b"'),
        ("x = f'ab{c}d'", "x = 'a' f'b{c}' 'd'"),
        ("if TYPE_CHECKING:\n    import a\nx = 1", "x = 1"),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    x = 1", "x = 1"),
    ],
)
def test_writings_of_the_same(one, other):
    assert read_module(one).code == read_module(other).code


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = True"),
        ("x = 1", "x = 1.0"),
        ("x = 'a'", "x = b'a'"),
        ("x = f'{c}'", "x = f'{c!r}'"),
        ("x = f'{c:.1f}'", "x = f'{c:.2f}'"),
        ("x: int = 1", "x: float = 1"),
        ("x = {**a}", "x = {None: a}"),
        ("def f(): return", "async def f(): return"),
    ],
)
def test_writings_of_something_else(one, other):
    assert read_module(one).code != read_module(other).code


def test_a_digest_is_the_same_on_every_python():
    """A pinned one of syntax that parsers of different versions give different fields."""
    text = (
        "import re\nclass A(B, c=1):\n    x: int\n    y: str = 'é\U0001fae9'\n"
        "@d\nasync def f(a, /, b=1, *c, e, **g):\n    return f'{a!r:>{b}} {b=} {{}}' f'' 'z'\n"
        "match f:\n    case {'a': [1, *_], **r} if r: h = lambda: ...\n"
        "with (p() as q): del q[1:2, ...]\ntry: raise A from None\nexcept E as s: t = -1e3j\n"
    )
    assert read_module(text).code[:16] == "3cb3074aaeaf21f9"
    assert read_module(text).imports == (ImportedName("re", "", "re"),)


def test_a_relative_import_is_refused():
    """A relative import is ambiguous without the module's place."""
    with pytest.raises(ValueError, match="relative"):
        read_module("from . import a")


def test_another_name_that_a_package_hands_on_leaves_the_version(copied, rewrite):
    """The door of a room is no part of what stands in it."""
    door = copied.file("mast_trace.trajectory")
    rewrite(door, changed(door.read_text("utf-8")))
    assert copied.versions() == copied.before


def test_a_reviewed_change_keeps_the_version_while_the_verdicts_are_the_same():
    """The digest is of the verdicts of the code that the table's last column names."""
    own = {fingerprint(SOURCES, model=model) for model in (False, True)}
    assert set(REVIEWED) in (own, set()), "a row is for code that is no more: take it out"
    judge, digest = Judge(), hashlib.sha256()
    for run in read_who_and_when(labelled_runs(), "hand-crafted"):
        found = repr(judge.apply_rules(run.trajectory))
        # The last digits are the machine's.
        digest.update(re.sub(r"\d+\.\d{9}\d+", lambda number: number[0][:11], found).encode())
    assert digest.hexdigest()[:16] == "5e480ad1372811f5"
