"""`migrate` and `config`: what is done, and what is in force."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from endpoint_server import WRITE_TOKEN, serve
from server_users import store_with_users

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store, check_schema
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fixture_types import Capture, Patch


@pytest.fixture(autouse=True, scope="module")
def copied() -> None:
    """Copies no tables: commands make them here."""


@pytest.fixture(autouse=True)
def bare(monkeypatch: Patch, tmp_path: Path) -> None:
    """No settings but the test's own."""
    for name in ("MAST_TRACE_DATABASE_URL", "MAST_TRACE_HTTP_PORT", "MAST_TRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MAST_TRACE_DATA_DIR", str(tmp_path / "data"))


def settings(capsys: Capture, *arguments: str) -> dict[str, dict[str, Any]]:
    assert run(["config", "--json", *arguments]) == 0
    tables = json.loads(capsys.readouterr().out)
    return {each["name"]: each for table in tables.values() for each in table}


def test_a_dry_run_prints_sql_and_touches_nothing(capsys: Capture, tmp_path: Path) -> None:
    assert run(["migrate", "--dry-run", "--database", "traces", "--cluster", "main"]) == 0
    out = capsys.readouterr().out
    assert "CREATE TABLE IF NOT EXISTS traces.otel_traces ON CLUSTER main" in " ".join(out.split())
    assert not (tmp_path / "data").exists()


def test_migrating_twice_changes_nothing_more(capsys: Capture, tmp_path: Path) -> None:
    url = f"chdb://{tmp_path}/store"
    assert run(["migrate", "--url", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_versions"]
    with Store.open(url) as store:
        check_schema(store)
    assert run(["migrate", "--url", url]) == 0
    assert "up to date already" in capsys.readouterr().out


def test_migrate_adds_and_removes_the_search_index(capsys: Capture, tmp_path: Path) -> None:
    at = ["--url", f"chdb://{tmp_path / 'store'}"]
    for option, there in (([], False), (["--search-index"], True), ([], True)):
        assert run(["migrate", *option, "--json", *at]) == 0
        assert json.loads(capsys.readouterr().out)["search_index"] is there
    assert run(["migrate", *at]) == 0
    assert "texts are indexed" in " ".join(capsys.readouterr().out.split())
    assert run(["migrate", "--no-search-index", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["search_index"] is False


def test_unusable_names_are_refused(capsys: Capture) -> None:
    assert run(["migrate", "--dry-run", "--database", "a; DROP"]) == 2
    assert "no name for a database" in capsys.readouterr().err


def test_config_names_each_origin(capsys: Capture, tmp_path: Path, monkeypatch: Patch) -> None:
    """A file is weaker than a variable, and a default weaker than both."""
    file = tmp_path / "mast-trace.toml"
    file.write_text('[collector]\nhttp_port = 1111\ngrpc_port = 2222\n[judge]\njudge_model = "m"\n')
    monkeypatch.setenv("MAST_TRACE_HTTP_PORT", "3333")
    found = settings(capsys, "--config", str(file))
    assert (found["http_port"]["value"], found["http_port"]["origin"]) == (
        "3333",
        "MAST_TRACE_HTTP_PORT",
    )
    assert (found["grpc_port"]["value"], found["grpc_port"]["origin"]) == ("2222", str(file))
    assert (found["judge_model"]["value"], found["host"]["origin"]) == ("m", "default")
    assert all(each["meaning"] for each in found.values())


def test_config_keeps_secrets(capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("MAST_TRACE_DATABASE_URL", "http://me:hunter2@db:8123/x")
    monkeypatch.setenv("MAST_TRACE_JUDGE_API_KEY", "hunter2")
    monkeypatch.setenv("MAST_TRACE_CLICKHOUSE_PASSWORD", "hunter2")
    assert run(["config"]) == 0
    assert run(["config", "--json"]) == 0
    captured = capsys.readouterr()
    assert "hunter2" not in captured.out + captured.err
    assert "me:***@db" in captured.out


def test_a_mistyped_setting_is_named(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "mast-trace.toml"
    file.write_text("[collector]\nhtp_port = 1\n")
    assert run(["config", "--config", str(file)]) == 2
    assert "did you mean http_port" in capsys.readouterr().err


WIDE = """\
CREATE USER IF NOT EXISTS team_a IDENTIFIED BY 'x';
GRANT SELECT, SHOW ON mast_trace.* TO team_a;
CREATE ROW POLICY IF NOT EXISTS of_team_a ON mast_trace.otel_traces USING Project = 'team-a' TO team_a;
"""
REVOKED = "REVOKE SELECT, SHOW ON mast_trace.* FROM team_a;"


@pytest.fixture
def server_with_a_wide_user(monkeypatch: Patch, tmp_path: Path) -> Iterator[str]:
    """The address of a server that has a user who is meant for one project, and reads more."""
    with store_with_users(tmp_path / "server", WIDE) as store:
        app = ClickHouseHTTP(store, of_owner=True)
        with serve(app) as address:
            yield f"http://any:{WRITE_TOKEN}@{address}"
        app.close()


def test_migrate_names_users_that_read_more(capsys: Capture, server_with_a_wide_user: str) -> None:
    at = ["--url", server_with_a_wide_user]
    assert run(["migrate", *at]) == 0
    told = capsys.readouterr()
    assert REVOKED in told.err
    assert REVOKED not in told.out
    assert run(["migrate", "--json", *at]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert REVOKED in warning


def test_the_doctor_names_users_of_the_configured_server(
    capsys: Capture, monkeypatch: Patch, tmp_path: Path, server_with_a_wide_user: str
) -> None:
    """The server is that of the environment or of the file; without one there is nothing to ask."""

    def problems() -> str:
        assert run(["doctor", "--quick", "--json", "--endpoint", "http://127.0.0.1:9"]) == 1
        return "\n".join(json.loads(capsys.readouterr().out)["problems"])

    assert "mast_runs" not in problems()
    assert "users of the database" not in problems()
    monkeypatch.setenv("MAST_TRACE_DATABASE_URL", server_with_a_wide_user)
    assert REVOKED in problems()
    monkeypatch.setenv("MAST_TRACE_DATABASE_URL", "http://127.0.0.1:9")
    assert "users of the database were not checked" in problems()
    monkeypatch.delenv("MAST_TRACE_DATABASE_URL")
    file = tmp_path / "mast-trace.toml"
    file.write_text(f'[collector]\ndatabase_url = "{server_with_a_wide_user}"\n')
    monkeypatch.setenv("MAST_TRACE_CONFIG", str(file))
    assert REVOKED in problems()
