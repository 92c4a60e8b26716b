"""Only keys that are known may write, each into its own project."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector import security
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.security import ProjectKeys, check_bind, is_loopback, new_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


class TestProjectKeys:
    """The keys file and what a request presents."""

    def test_a_key_decides_the_project(self, file: Path) -> None:
        (first, line), (second, other) = new_key("team-a"), new_key("team-b")
        file.write_text(f"# ours\n{line}\n\n{other}  # theirs\n")
        keys = ProjectKeys(file)
        assert keys.project_of(f"Bearer {first}") == "team-a"
        assert keys.project_of(f"bearer {second}") == "team-b"

    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer x",
            "Basic {key}",
            "{key}",
            "Bearer {key}x",
            "Bearer \udcff",
        ],
    )
    def test_anything_else_may_not_write(self, file: Path, header: str) -> None:
        key, line = new_key("team")
        file.write_text(line)
        assert ProjectKeys(file).project_of(header.replace("{key}", key)) is None

    def test_the_file_does_not_hold_the_key(self, file: Path) -> None:
        key, line = new_key("team")
        assert key not in line
        assert key.removeprefix("mt_") not in line

    def test_a_change_of_the_file_takes_effect(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        (old, old_line), (new, new_line) = new_key("a"), new_key("b")
        file.write_text(old_line)
        keys = ProjectKeys(file)
        file.write_text(new_line)
        os.utime(file, (time.time() + 5, time.time() + 5))
        assert keys.project_of(f"Bearer {old}") is None
        assert keys.project_of(f"Bearer {new}") == "b"

    def test_a_slip_in_a_change_leaves_the_old_keys_in_force(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        key, line = new_key("a")
        file.write_text(line)
        keys = ProjectKeys(file)
        file.write_text("nonsense")
        assert keys.project_of(f"Bearer {key}") == "a"
        file.unlink()
        assert keys.project_of(f"Bearer {key}") == "a"

    @pytest.mark.parametrize("text", ["", "# only\n", "team plain-key", "team sha256:12", "\x00"])
    def test_a_file_without_good_keys_is_an_error(self, file: Path, text: str) -> None:
        file.write_text(text)
        with pytest.raises(ConfigurationError):
            ProjectKeys(file)

    def test_a_missing_file_is_an_error(self, file: Path) -> None:
        with pytest.raises(ConfigurationError, match="keys file"):
            ProjectKeys(file)

    def test_a_project_name_must_fit_into_the_file(self) -> None:
        with pytest.raises(ConfigurationError):
            new_key("two words")


class TestBind:
    """Where a collector may listen."""

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
    def test_loopback_needs_no_keys(self, host: str) -> None:
        assert is_loopback(host)
        check_bind(CollectorConfig(host=host))

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
    def test_anything_else_is_refused_without_keys(self, host: str, file: Path) -> None:
        with pytest.raises(ConfigurationError, match="refusing to listen"):
            check_bind(CollectorConfig(host=host))
        check_bind(CollectorConfig(host=host, keys_file=file))
        check_bind(CollectorConfig(host=host, allow_insecure_bind=True))
