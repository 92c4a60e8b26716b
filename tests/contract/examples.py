"""The facts of a framework's example program, of its replays, and of the page about the framework."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from code_blocks import PAGES, blocks_of, run
from coverage_programs import truth_and_record
from replays import EXAMPLES, check_earlier, check_person, check_replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_NEEDED = {
    "answers": "test_it_runs_against_its_script",
    "page": "test_the_page_about_it_runs_as_written",
    "replayed": "test_its_replays_are_identical",
    "earlier": "test_an_earlier_record_is_identical",
    "person": "test_a_person_is_asked_again",
    "covered": "test_the_record_is_the_truth",
}


class ExampleContract:
    """The facts of an example; a framework has those for which its class gives values.

    Attributes:
        framework: its name.
        example: the program, below ``examples/``.
        answers: its scripts, each with a line that it prints.
        replayed: the scripts whose runs are replayed.
        earlier: the script of a run that was recorded before there were replays.
        page: the page, an agent of its program, and the tools that this calls.
        person: a program that asks a person, and the typed lines.
        keep: a beginning of variables that reach the recorded program.
    """

    framework: ClassVar[str]
    example: ClassVar[str]
    answers: ClassVar[Mapping[str, str]] = {}
    replayed: ClassVar[Sequence[str]] = ()
    earlier: ClassVar[Sequence[str]] = ()
    page: ClassVar[Sequence[tuple[str, str, list[str]]]] = ()
    person: ClassVar[Sequence[tuple[Path, str]]] = ()
    covered: ClassVar[bool] = True
    keep: ClassVar[str] = "none"

    def __init_subclass__(cls) -> None:
        """Take away the facts for which there are no values."""
        for attribute, test in _NEEDED.items():
            if not getattr(cls, attribute):
                setattr(cls, test, None)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give each test the values of its parameters."""
        values: dict[str, Sequence[Any]] = {
            "script": list(self.answers),
            "replay_of": self.replayed,
            "earlier_of": self.earlier,
            "page_of": self.page,
            "asked": self.person,
        }
        for name, given in values.items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, given, ids=[str(number) for number in range(len(given))])

    def home(self, _folder: Path) -> dict[str, str]:
        """Return variables that the program needs."""
        return {}

    def prepare(self, _folder: Path) -> Callable[[str], None] | None:
        """Return a function of the model's address that prepares the page's program."""
        return None

    def test_it_runs_against_its_script(self, script: str, tmp_path: Path) -> None:
        """Well and badly, with nobody there to take the spans."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / self.example), script],
            capture_output=True,
            text=True,
            check=False,
            env={**env, **self.home(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        assert self.answers[script] in done.stdout.splitlines()

    def test_the_page_about_it_runs_as_written(self, page_of: Any, tmp_path: Path) -> None:
        """Its program, against a model that calls the tool once: the turn, the call and the end are recorded."""
        page, agent, tools = page_of
        [block] = [each for each in blocks_of(PAGES / page) if "run" in each.words]
        prepare = self.prepare(tmp_path)
        more: dict[str, Any] = {"prepare": prepare} if prepare else {}
        ran = run(block, tmp_path, **more, **self.home(tmp_path))
        assert ran.named("invoke_agent")[0] == agent
        assert ran.named("execute_tool") == tools
        assert ran.named("chat")
        assert "record_outcome success" in [span.name for span in ran.spans]

    def test_its_replays_are_identical(
        self, replay_of: str, tmp_path: Path, monkeypatch: Any
    ) -> None:
        """In a child and here, and a replay of a replay, without live calls."""
        for name, value in self.home(tmp_path).items():
            monkeypatch.setenv(name, value)
        check_replay(EXAMPLES / self.example, replay_of, folder=tmp_path, keep=self.keep)

    def test_an_earlier_record_is_identical(self, earlier_of: str, tmp_path: Path) -> None:
        """A run that was recorded before there were replays is replayed, and its replay is, too."""
        check_earlier(self.framework, EXAMPLES / self.example, earlier_of, folder=tmp_path)

    def test_a_person_is_asked_again(self, asked: tuple[Path, str], tmp_path: Path) -> None:
        """A replay is given the text that a person typed, and is identical."""
        check_person(*asked, tmp_path)

    def test_the_record_is_the_truth(self, monkeypatch: Any) -> None:
        """Ours equals the truth in every cell of the coverage benchmark's table."""
        truth, recorded = truth_and_record(self.framework, monkeypatch)
        assert recorded == truth
