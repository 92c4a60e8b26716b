"""The frameworks' test suites: their sources, requirements and tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import tomllib
from environments import CACHE, environment

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("suites.toml")


@dataclass(frozen=True)
class Suite:
    """A framework's own tests.

    Attributes:
        name: of the framework.
        package: the source distribution, with its version.
        reason: says why the suite cannot be run; empty where it can.
        tests: folders and files of tests, below the distribution's folder.
        needs: requirements of the tests.
        options: arguments of pytest.
        variables: set for the tests.
    """

    name: str
    package: str
    reason: str = ""
    tests: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    def python(self) -> Path:
        """Make an environment with the framework, its tests' needs and mast-trace.

        Raises:
            subprocess.CalledProcessError: they cannot be installed together.
        """
        ours = ["pytest>=9", "pytest-timeout>=2.3", "-e", str(ROOT)]
        return environment(f"transparency/{self.name}", [self.package, *self.needs, *ours])

    def source(self) -> Path:
        """Download and unpack the source distribution; return its folder.

        Raises:
            subprocess.CalledProcessError: it cannot be downloaded, or describes itself by code that fails.
        """
        folder = CACHE / "transparency" / "sources" / self.package
        if not folder.exists():
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
            ]
            downloads = folder.with_name(f"{folder.name}.downloads")
            subprocess.run([*pip, "-d", str(downloads), self.package], check=True)
            (archive,) = downloads.glob("*.tar.gz")
            unpacked = folder.with_name(f"{folder.name}.{os.getpid()}")
            with tarfile.open(archive) as held:
                held.extractall(unpacked, filter="data")
            unpacked.rename(folder)
        (source,) = folder.iterdir()
        return source


def suites() -> list[Suite]:
    """Read the list of suites."""
    listed = tomllib.loads(LISTED.read_text("utf-8"))
    return [Suite(name, **row) for name, row in listed.items()]
