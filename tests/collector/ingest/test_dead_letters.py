"""Dead letters can be listed, retried and dropped while a collector runs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forgetful_disk import ForgetfulDisk
from ingest_support import body_of
from opened_spool import failing, flip
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.exceptions import CollectorError
from mast_trace_collector.dead_letters import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "dead-letters")


def add_due(letters: DeadLetters, payload: bytes = b"x") -> None:
    """Set a letter aside, and ask for another try."""
    letters.add("a", payload, 1, "why")
    letters.retry(["a"])


def test_a_letter_keeps_its_bytes_and_its_reason(letters: DeadLetters) -> None:
    payload = b'with\nlines {"and": "json"}\n\x00'
    letters.add("a", payload, 3, "why")
    (letter,) = letters.letters()
    assert (letter.id, letter.items, letter.reason, letter.size) == ("a", 3, "why", len(payload))
    assert letters.payload("a") == payload


def test_letters_come_in_the_order_of_their_failure(letters: DeadLetters) -> None:
    for name in ("b", "c", "a"):
        letters.add(name, b"", 0, "why")
    assert [letter.id for letter in letters.letters()] == ["b", "c", "a"]


def test_the_same_letter_twice_is_one(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "first")
    letters.add("a", b"x", 1, "second")
    assert [letter.reason for letter in letters.letters()] == ["second"]


def test_only_letters_that_somebody_asked_for_are_due(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "why")
    letters.add("b", b"y", 1, "why")
    assert list(letters.due()) == []
    letters.retry(["b"])
    assert [(letter.id, payload) for letter, payload in letters.due()] == [("b", b"y")]
    assert len(letters) == 2


@pytest.mark.parametrize("command", ["payload", "retry", "drop"])
def test_a_command_reaches_a_letter_while_a_collector_gives_its_file_the_other_name(
    letters: DeadLetters, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    add_due(letters)
    find = DeadLetters._find
    found: list[Path] = []

    def meanwhile(self: DeadLetters, identity: str) -> Path:
        found.append(find(self, identity))
        # A command that takes several looks for all of them first.
        if len(found) == (1 if command == "payload" else 2):
            self.failed_again(*next(self.due()), "again")
        return found[-1]

    monkeypatch.setattr(DeadLetters, "_find", meanwhile)
    if command == "payload":
        assert letters.payload("a") == b"x"
    else:
        getattr(letters, command)(["a"])
        left = [(letter.attempts, letter.retrying) for letter in letters.letters()]
        assert left == ([(2, True)] if command == "retry" else [])


@pytest.mark.parametrize("meanwhile", ["dropped", "set aside once more"])
def test_a_letter_is_gone_once_it_is_stored(letters: DeadLetters, meanwhile: str) -> None:
    add_due(letters)
    (letter, _), *_ = letters.due()
    if meanwhile == "dropped":
        letters.drop(["a"])
    else:
        letters.add("a", b"x", 1, "why")
    letters.settle(letter)
    assert not letters


def test_one_unreadable_is_due_later(letters: DeadLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    add_due(letters)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing(errno.EMFILE))
        with pytest.raises(OSError, match="Too many"):
            list(letters.due())
    assert [payload for _, payload in letters.due()] == [b"x"]
    assert letters.damaged_files == 0


@pytest.fixture
def once_listed(
    letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], None]], None]:
    """A way to have something happen right after the folder's next listing."""
    files = DeadLetters._files

    def arrange(event: Callable[[], None]) -> None:
        def listed(self: DeadLetters) -> list[Path]:
            paths = files(self)
            monkeypatch.undo()
            event()
            return paths

        add_due(letters)
        monkeypatch.setattr(DeadLetters, "_files", listed)

    return arrange


def test_a_letter_that_is_dropped_before_it_is_read_is_not_due(letters, once_listed) -> None:
    once_listed(lambda: letters.drop(["a"]))
    assert list(letters.due()) == []


def test_a_letter_is_listed_while_a_collector_renames_its_file(letters, once_listed) -> None:
    once_listed(lambda: letters.failed_again(*next(letters.due()), "again"))
    assert [(letter.id, letter.attempts) for letter in letters.letters()] == [("a", 2)]


def test_a_letter_with_dots_in_its_name(letters: DeadLetters) -> None:
    letters.add("000001-abc.17", b"x", 1, "why")
    letters.retry(["000001-abc.17"])
    letters.drop(["000001-abc.17"])
    assert len(letters) == 0


def test_an_unknown_letter_is_an_error_and_nothing_else_happens(letters: DeadLetters) -> None:
    letters.add("a", b"x", 1, "why")
    for act in (letters.retry, letters.drop):
        with pytest.raises(CollectorError, match="no dead letter b"):
            act(["a", "b"])
    assert list(letters.due()) == []
    assert len(letters) == 1


@pytest.mark.parametrize("suffix", [".dead", ".retry"])
def test_a_letter_that_is_damaged_hides_no_other_and_claims_no_spans(
    letters: DeadLetters, tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    letters.add("a", b"x", 1, "why")
    (tmp_path / "dead-letters" / f"b{suffix}").write_bytes(b"oops")
    found = {letter.id: letter for letter in letters.letters()}
    assert found.keys() == {"a", "b"}
    assert (found["a"].reason, "damaged" in found["b"].reason) == ("why", True)
    asked = suffix == ".retry"
    assert (found["b"].items, found["b"].size, found["b"].retrying) == (0, 4, asked)
    assert list(letters.due()) == []
    assert [each.__dict__["lost"] for each in caplog.records] == [0] * asked


def test_no_folder_means_no_letters(letters: DeadLetters) -> None:
    assert letters.letters() == []
    assert list(letters.due()) == []


class TestDamage:
    """A damaged file is distinguished from a request, and is never deleted."""

    @pytest.mark.parametrize("at", [-1, -20, -30, -60])
    def test_one_changed_is_set_aside(self, letters: DeadLetters, tmp_path: Path, at: int) -> None:
        letters.add("a", b"precious" * 10, 1, "why")
        letters.add("b", b"other", 1, "why")
        letters.retry(["a", "b"])
        path = tmp_path / "dead-letters" / "a.retry"
        flip(path, at)
        data = path.read_bytes()
        with pytest.raises(CollectorError, match="dead letter a is damaged"):
            letters.payload("a")
        assert [letter.id for letter, _ in letters.due()] == ["b"]
        assert letters.damaged_files == 1
        assert (tmp_path / "dead-letters" / "damaged" / "a.retry").read_bytes() == data
        assert [letter.id for letter in letters.letters()] == ["b"]

    @pytest.mark.parametrize("content", [b"", bytes(200), b"\0\n"])
    def test_an_emptied_one(self, letters: DeadLetters, tmp_path: Path, content: bytes) -> None:
        add_due(letters, b"precious")
        (tmp_path / "dead-letters" / "a.retry").write_bytes(content)
        assert list(letters.due()) == []
        assert letters.damaged_files == 1

    @pytest.mark.parametrize("kept", [1, 60, 100, 180])
    def test_the_list_tells_of_a_cut(self, letters: DeadLetters, tmp_path: Path, kept: int) -> None:
        letters.add("a", b"precious" * 10, 1, "why")
        path = tmp_path / "dead-letters" / "a.dead"
        path.write_bytes(path.read_bytes()[:kept])
        (letter,) = letters.letters()
        assert "damaged" in letter.reason

    def test_a_folder_instead_hides_no_other(
        self, letters: DeadLetters, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        add_due(letters)
        (tmp_path / "dead-letters" / "b.retry").mkdir()
        told = {letter.id: (letter.items, letter.size) for letter in letters.letters()}
        assert told == {"a": (1, 1), "b": (0, 0)}
        assert [letter.id for letter, _ in letters.due()] == ["a"]
        assert [each.__dict__["lost"] for each in caplog.records] == [0]
        assert letters.damaged_files == 1

    def test_an_earlier_version_has_no_digest(self, letters: DeadLetters, tmp_path: Path) -> None:
        head = (
            b'{"id":"a","reason":"why","items":1,"size":7,"set_aside":1.0,"attempts":1,'
            b'"retrying":false}\n'
        )
        (tmp_path / "dead-letters").mkdir()
        path = tmp_path / "dead-letters" / "a.retry"
        path.write_bytes(head + b"request")
        assert [payload for _, payload in letters.due()] == [b"request"]
        path.write_bytes(head + b"reque")
        assert list(letters.due()) == []

    def test_earlier_versions_store_the_same(self, letters: DeadLetters, tmp_path: Path) -> None:
        """An earlier version takes everything after the line for the request.

        The digest is a field that OTLP lacks.
        """
        letters.add("a", body_of("one", "two"), 2, "why")
        rest = (tmp_path / "dead-letters" / "a.dead").read_bytes().partition(b"\n")[2]
        parsed = ExportTraceServiceRequest.FromString(rest)
        names = [span.name for span in parsed.resource_spans[0].scope_spans[0].spans]
        assert names == ["one", "two"]

    def test_one_that_fails_again_stays_whole_also_without_power(
        self, letters: DeadLetters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its segment is removed next, so the letter must be on the disk."""
        disk = ForgetfulDisk(monkeypatch)
        letters.add("a", b"request", 1, "why")
        left = disk.after_power_failure(tmp_path / "dead-letters", tmp_path / "first")
        assert DeadLetters(left).payload("a") == b"request"
        letters.retry(["a"])
        ((letter, payload),) = letters.due()
        letters.failed_again(letter, payload, "still")
        left = disk.after_power_failure(tmp_path / "dead-letters", tmp_path / "second")
        for after in (letters, DeadLetters(left)):
            assert after.payload("a") == b"request"
            (letter,) = after.letters()
            assert (letter.reason, letter.attempts, letter.size) == ("still", 2, 7)
