"""The dashboards satisfy Grafana's own types, checked by the TypeScript compiler."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program

from mast_trace_dashboards.grafana.dashboards import DASHBOARDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js and npm"),
]

PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9")
# JSON has texts where the types have enums: each enum also stands for its values. A query has what its plugin reads, too.
HEAD = """import type { Dashboard } from '@grafana/schema';
type Plain<T> = T extends string ? `${T}` : T extends (infer U)[] ? Plain<U>[]
  : T extends { refId: string } ? T & Record<string, unknown> : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""
COMPILE = (
    *("npx", "tsc", "--strict", "--noEmit", "--skipLibCheck"),
    *("--moduleResolution", "bundler", "--module", "esnext", "--target", "es2022", "boards.ts"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Grafana's types and the compiler in it."""
    folder = tmp_path_factory.mktemp("schema")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
    done = run_program(*install, cwd=folder)
    if done.returncode != 0:
        pytest.skip(f"the npm registry cannot be reached: {done.stderr[-200:]}")
    return folder


def check(project: Path, *boards: object) -> str:
    """Return what the compiler has to say about dashboards."""
    declared = [
        f"export const d{number}: Plain<Dashboard> = {json.dumps(board)};"
        for number, board in enumerate(boards)
    ]
    (project / "boards.ts").write_text(HEAD + "\n".join(declared), encoding="utf-8")
    done = run_program(*COMPILE, cwd=project)
    return done.stdout


def test_every_dashboard_has_the_right_type(project: Path) -> None:
    assert check(project, *(dashboard.to_json() for dashboard in DASHBOARDS)) == ""


def test_the_check_finds_a_mistyped_property(project: Path) -> None:
    board = DASHBOARDS[0].to_json()
    board["panels"][0]["heading"] = board["panels"][0].pop("title")
    assert "heading" in check(project, board)
