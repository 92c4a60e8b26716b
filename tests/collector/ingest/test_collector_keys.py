"""Only keys that are known may write, each into its own project."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector import security
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.security import (
    Grant,
    MissingRight,
    ProjectKeys,
    Right,
    check_bind,
    is_loopback,
    new_key,
    read_line,
    read_rights,
)

if TYPE_CHECKING:
    from pathlib import Path


def project(keys: ProjectKeys, authorization: str) -> str | None:
    grant = keys.grant_of(authorization)
    return grant.project if grant else None


def rights(keys: ProjectKeys, key: str) -> set[Right]:
    """The rights of a key that is known."""
    grant = keys.grant_of_key(key)
    assert grant
    return set(grant.rights)


class Clock:
    """The clock by which the file is looked at again."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(security, "time", made)
    return made


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

    @pytest.mark.parametrize("way", ["added", "replaced", "same size and time", "renamed over it"])
    def test_a_change_counts_within_a_second(self, file: Path, clock: Clock, way: str) -> None:
        """A key that stays works all the time; one that is removed works for a second at most."""
        (old, old_line), (new, new_line), (stays, line) = new_key("a"), new_key("b"), new_key("a")
        file.write_text(f"{line}\n{old_line}\n")
        keys, before = ProjectKeys(file), file.stat()
        written = file.with_name("new") if way == "renamed over it" else file
        written.write_text("\n".join([line, *([old_line] if way == "added" else []), new_line, ""]))
        written.rename(file)
        if way == "same size and time":
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        shown = [f"Bearer {key}" for key in (old, new, stays)]
        for later, expected in (
            (0.99, ["a", None, "a"]),
            (0.01, ["a" if way == "added" else None, "b", "a"]),
        ):
            clock.now += later
            assert [project(keys, each) for each in shown] == expected

    def test_a_slip_in_a_change_leaves_the_old_keys_in_force(
        self, file: Path, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is logged once, not with every request, until the file is mended."""
        (old, old_line), (new, new_line) = new_key("a"), new_key("b")
        file.write_text(old_line)
        keys = ProjectKeys(file)
        for slip in (lambda: file.write_text(f"{new_line}\nnonsense"), file.unlink):
            slip()
            for _ in range(5):
                clock.now += 1.0
                assert project(keys, f"Bearer {old}") == "a"
                assert project(keys, f"Bearer {new}") is None
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
        file.write_text(new_line)
        clock.now += 1.0
        assert project(keys, f"Bearer {old}") is None
        assert project(keys, f"Bearer {new}") == "b"

    def test_the_last_key_can_be_removed(self, file: Path, clock: Clock) -> None:
        """A program that truncates the file to rewrite it locks nobody out in between."""
        key, line = new_key("a")
        file.write_text(line)
        keys = ProjectKeys(file)
        for written, later, known in (
            ("# none any more\n", 1.0, "a"),
            (line, 1.0, "a"),
            ("", 1.0, "a"),
            ("", 0.99, "a"),
            ("", 0.01, None),
            (line, 1.0, "a"),
        ):
            if file.read_text() != written:
                file.write_text(written)
            clock.now += later
            assert project(keys, f"Bearer {key}") == known

    @pytest.mark.parametrize("text", ["", "# only\n", "team plain-key", "team sha256:12", "\x00"])
    def test_a_file_without_good_keys_is_an_error(self, file: Path, text: str) -> None:
        file.write_text(text)
        with pytest.raises(ConfigurationError):
            ProjectKeys(file)

    def test_a_missing_file_is_an_error(self, file: Path) -> None:
        with pytest.raises(ConfigurationError, match="keys file"):
            ProjectKeys(file)

    @pytest.mark.parametrize("name", ["two words", "", "p" * 65, "a\nb", "a#b", "a,b", "a/b"])
    def test_a_project_name_must_fit_into_the_file(self, name: str) -> None:
        with pytest.raises(ConfigurationError, match="is no project name: up to 64 letters"):
            new_key(name)
        for fits in ("p" * 64, "Größe_1.x-y"):
            read = read_line(new_key(fits)[1])
            assert read
            assert read.project == fits


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
    def test_rights_follow_the_hash(self, file: Path, written: str, rights: set[Right]) -> None:
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

    def test_a_line_without_rights_is_no_key(self, file: Path) -> None:
        line = f"team sha256:{'0' * 64}"
        assert read_line(line) is None
        assert read_line(f"{line} read") == Grant("team", frozenset({Right.READ}), "0" * 64)
        file.write_text(f"{new_key('team')[1]}\n{line}\n")
        with pytest.raises(ConfigurationError, match="keys:2 is no key"):
            ProjectKeys(file)

    def test_a_key_is_made_with_a_right_at_least(self) -> None:
        for none in ([], [" , "]):
            with pytest.raises(
                ConfigurationError, match=r"needs a right: .*write, read, label, metrics"
            ):
                read_rights(none)

    def test_the_order_of_the_file_decides_nothing(self, file: Path) -> None:
        made = [new_key(f"p{number}") for number in range(200)]
        file.write_text("\n".join(line for _, line in made))
        keys = ProjectKeys(file)
        for number in (0, 100, 199):
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
