"""Every Python finds a pin for each requirement in the one file of constraints."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from program_runs import run_program
from toml_files import tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent.parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))
NAMED = "Programming Language :: Python :: 3."
SUPPORTED = [
    each.removeprefix(NAMED[:-2])
    for each in PROJECT["project"]["classifiers"]
    if each.startswith(NAMED)
]
PYTHONS = [*SUPPORTED, "3.14"]
"""The newest is not tested, yet everything installs on it."""
UNPINNED = {"mast-trace", "atheris"}
"""The project itself, and what has wheels for one platform alone."""
LINES = [
    line
    for line in (HERE / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
PINS = [Requirement(line) for line in LINES]


def requirements() -> Iterator[Requirement]:
    """All that the project, its extras and its groups name."""
    project = PROJECT["project"]
    named = [*project["dependencies"]]
    for more in (project["optional-dependencies"], PROJECT["dependency-groups"]):
        named += [text for texts in more.values() for text in texts if isinstance(text, str)]
    for text in named:
        needed = Requirement(text)
        if normal(needed.name) not in UNPINNED:
            yield needed


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def counts(requirement: Requirement, version: str) -> bool:
    """Return whether it applies to a Python, on Linux."""
    own = {
        "python_version": version,
        "python_full_version": f"{version}.9",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_system": "Linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    return requirement.marker is None or requirement.marker.evaluate(own)


def test_the_metadata_names_each_supported_python() -> None:
    oldest = SpecifierSet(PROJECT["project"]["requires-python"])
    assert {"3.10", "3.11", "3.12", "3.13"} <= set(SUPPORTED)
    assert all(f"{version}.0" in oldest for version in SUPPORTED)
    assert "3.9.18" not in oldest


@pytest.mark.parametrize("version", PYTHONS)
def test_a_python_finds_one_pin_for_each_requirement(version: str) -> None:
    pins = [pin for pin in PINS if counts(pin, version)]
    names = [normal(pin.name) for pin in pins]
    assert len(names) == len(set(names))
    pinned = {normal(pin.name): next(iter(pin.specifier)).version for pin in pins}
    for needed in requirements():
        if counts(needed, version):
            assert pinned[normal(needed.name)] in needed.specifier, needed


def test_pins_say_names_and_versions_alone() -> None:
    """No address of a package, and no option of an installer."""
    for line, pin in zip(LINES, PINS, strict=True):
        assert pin.url is None
        assert not pin.extras
        assert [each.operator for each in pin.specifier] == ["=="], line


def test_a_session_whose_python_is_missing_fails(tmp_path: Path) -> None:
    """By itself nox skips it and ends with success, as if it had been tested."""
    if not (nox := shutil.which("nox")):
        pytest.skip("needs nox")
    command = (nox, "-s", "lint", "-P", "3.99", "--install-only", "--envdir", str(tmp_path))
    own = {name: value for name, value in os.environ.items() if name != "CI"}
    ended = run_program(*command, status=1, cwd=HERE, env=own, timeout=170)
    assert "interpreter 3.99 not found" in ended.stderr


@pytest.mark.parametrize(
    "version", [PYTHONS[0], *(pytest.param(each, marks=pytest.mark.long) for each in PYTHONS[1:])]
)
def test_everything_has_a_wheel(version: str, tmp_path: Path) -> None:
    """Extras and tests install on each Python without a compiler, also where it is not at hand."""
    if not (uv := shutil.which("uv")):
        pytest.skip("needs uv")
    command = (
        *(uv, "pip", "compile", "pyproject.toml", "--all-extras", "--group", "test"),
        *("--group", "frameworks", "-c", "constraints.txt", "--python-version", version),
        *("--python-platform", "x86_64-manylinux_2_28", "--no-python-downloads"),
        *("--only-binary", ":all:", "--output-file", str(tmp_path / "resolved.txt")),
    )
    own = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    run_program(*command, status=0, cwd=HERE, env=own, timeout=170)
