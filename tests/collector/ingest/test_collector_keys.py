"""Only keys that are known may write, each into its own project."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector import security
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.rights import (
    FORMER_RIGHTS,
    Grant,
    MissingRight,
    Right,
    read_line,
    read_rights,
)
from mast_trace_collector.security import ProjectKeys, check_bind, is_loopback, new_key

if TYPE_CHECKING:
    from pathlib import Path


def project(keys: ProjectKeys, authorization: str) -> str | None:
    grant = keys.grant_of(authorization)
    return grant.project if grant else None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


class TestProjectKeys:
    """The keys file and what a request presents."""

    def test_a_key_decides_the_project(self, file: Path) -> None:
        (first, line), (second, other) = new_key("team-a"), new_key("team-b")
        file.write_text(f"# ours\n{line}\n\n{other}  # theirs\n")
        keys = ProjectKeys(file)
        assert project(keys, f"Bearer {first}") == "team-a"
        assert project(keys, f"bearer {second}") == "team-b"

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
        assert ProjectKeys(file).grant_of(header.replace("{key}", key)) is None

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
        assert project(keys, f"Bearer {old}") is None
        assert project(keys, f"Bearer {new}") == "b"

    def test_a_slip_leaves_the_old_keys_in_force_and_is_told_once(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A mistake in the file is logged once, not with every request."""
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        key, line = new_key("a")
        file.write_text(line)
        keys = ProjectKeys(file)
        for slip in (lambda: file.write_text("nonsense"), file.unlink):
            slip()
            for _ in range(5):
                assert project(keys, f"Bearer {key}") == "a"
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]

    def test_two_keys_of_a_project_work_until_one_is_removed(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        (old, old_line), (new, new_line) = new_key("a"), new_key("a")
        file.write_text(f"{old_line}\n{new_line}\n")
        keys = ProjectKeys(file)
        assert project(keys, f"Bearer {old}") == project(keys, f"Bearer {new}") == "a"
        file.write_text(f"{new_line}\n")
        assert project(keys, f"Bearer {old}") is None
        assert project(keys, f"Bearer {new}") == "a"

    def test_a_file_written_anew_with_the_same_size_and_time_is_read(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        (old, old_line), (_, new_line) = new_key("a"), new_key("b")
        file.write_text(old_line)
        keys, before = ProjectKeys(file), file.stat()
        file.write_text(new_line)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert keys.grant_of(f"Bearer {old}") is None

    def test_the_last_key_can_be_removed(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Removing the last key takes effect, but a program that truncates the file to rewrite it does not."""
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        key, line = new_key("a")
        file.write_text(line)
        keys = ProjectKeys(file)
        file.write_text("# none any more\n")
        assert project(keys, f"Bearer {key}") == "a"
        assert keys.grant_of(f"Bearer {key}") is None
        assert "nobody has access" in caplog.text
        file.write_text(line)
        assert project(keys, f"Bearer {key}") == "a"

    @pytest.mark.parametrize("text", ["", "# only\n", "team plain-key", "team sha256:12", "\x00"])
    def test_a_file_without_good_keys_is_an_error(self, file: Path, text: str) -> None:
        file.write_text(text)
        with pytest.raises(ConfigurationError):
            ProjectKeys(file)

    def test_a_missing_file_is_an_error(self, file: Path) -> None:
        with pytest.raises(ConfigurationError, match="keys file"):
            ProjectKeys(file)

    def test_a_project_name_must_fit_into_the_file(self) -> None:
        for name in ("two words", "p" * 65, "", "a#b"):
            with pytest.raises(ConfigurationError):
                new_key(name)
        assert new_key("p" * 64)


class TestRights:
    """The rights of a key beside its project."""

    def test_a_new_key_only_writes(self, file: Path) -> None:
        key, line = new_key("team")
        file.write_text(line)
        grant = ProjectKeys(file).grant_of_key(key)
        assert grant
        assert grant.rights == {Right.WRITE}
        with pytest.raises(
            MissingRight, match=r"lacks the right to read \(it has write\).*--right read"
        ):
            grant.demand(Right.READ)

    @pytest.mark.parametrize(
        ("written", "rights"),
        [
            ("write", {Right.WRITE}),
            ("read,label", {Right.READ, Right.LABEL}),
            ("read, write  # Ann's", {Right.READ, Right.WRITE}),
            ("metrics read", {Right.METRICS, Right.READ}),
        ],
    )
    def test_rights_stand_behind_the_hash(
        self, file: Path, written: str, rights: set[Right]
    ) -> None:
        key, line = new_key("team")
        file.write_text(f"{line.removesuffix(' write')}\t{written}\n")
        grant = ProjectKeys(file).grant_of_key(key)
        assert grant
        assert grant.rights == rights
        for right in Right:
            with nullcontext() if right in rights else pytest.raises(MissingRight):
                grant.demand(right)

    @pytest.mark.parametrize(
        "written", ["reading", "write,", "WRITE", "write,admin", "write;read", "*"]
    )
    def test_what_is_no_right_is_named_with_its_line(self, file: Path, written: str) -> None:
        _, line = new_key("team")
        file.write_text(f"# first\n{line}\n{line.removesuffix('write')}{written}\n")
        if written == "write,":
            ProjectKeys(file)
            return
        with pytest.raises(
            ConfigurationError, match=r"keys:3: .* is no right of a key.*write, read"
        ):
            ProjectKeys(file)

    def test_a_line_without_rights_keeps_what_it_had_and_is_told_of_once(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)
        key, line = new_key("team")
        former = line.removesuffix(" write")
        file.write_text(f"{former}\n{new_key('other')[1]}\n{new_key('third')[1][:-6]}\n")
        first, second = ProjectKeys(file), ProjectKeys(file)
        for keys in (first, second, first):
            grant = keys.grant_of_key(key)
            assert grant
            assert grant.rights == {Right.WRITE, Right.READ, Right.METRICS}
        (told,) = caplog.messages
        assert "name no rights (line 1, 3; 2 in all)" in told
        file.write_text(f"{former}\n")
        first.grant_of_key(key)
        assert "name no rights (line 1; 1 in all)" in caplog.messages[1]

    def test_a_line_without_rights_still_names_its_project(self) -> None:
        line = f"team sha256:{'0' * 64}"
        former = Grant("team", FORMER_RIGHTS, "0" * 64, explicit=False)
        assert read_line(line) == former
        assert read_line(f"{line} read") == Grant("team", frozenset({Right.READ}), "0" * 64)

    def test_a_key_is_made_with_a_right_at_least(self) -> None:
        for none in ([], [" , "]):
            with pytest.raises(ConfigurationError):
                read_rights(none)

    def test_the_order_of_the_file_decides_nothing(self, file: Path) -> None:
        """The first of ten thousand keys is found like the last, and none is found for a wrong one."""
        made = [new_key(f"p{number}") for number in range(2_000)]
        file.write_text("\n".join(line for _, line in made))
        keys = ProjectKeys(file)
        for number in (0, 1_000, 1_999):
            grant = keys.grant_of_key(made[number][0])
            assert grant
            assert grant.project == f"p{number}"
        assert keys.grant_of_key("mt_wrong") is None
        assert keys.grant_of_hash("") is None


class TestBind:
    """The addresses that a collector may listen on."""

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
