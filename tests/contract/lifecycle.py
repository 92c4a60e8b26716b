"""The facts of every instrumentation: on and off, early and late, with targets gone, with telemetry that fails."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import pickle
import subprocess
import sys
import textwrap
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from recorded_calls import targets
from recorded_spans import RecordedSpans, recording

from contract.span_trees import tree_of
from mast_trace.spans import Telemetry, guard
from mast_trace.spans.open_spans import OpenSpan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mast_trace_instrumentations.base import Instrumentor

    Call = Callable[..., Any]

BROKEN: dict[str, list[tuple[Any, str]]] = {
    **{name: [(Telemetry, name)] for name in ("run", "agent", "message", "tool", "chat", "inputs")},
    "attributes": [(OpenSpan, "set")],
    "ends": [(OpenSpan, "end")],
}
BROKEN["everything"] = [place for places in BROKEN.values() for place in places]
"""The parts of telemetry that fail, one by one and all of them."""


class Lifecycle(ABC):
    """The facts of all instrumentations, on one program that a sub-class names.

    Attributes:
        instrumentor: the class under test.
        operations: those of the program's spans; without any, there are only the facts without a program.
        absent: modules of it that are not installed, whose absence is no problem.
        lost: for each row whose loss the program shows, the operations of which no span remains without it.
    """

    instrumentor: ClassVar[type[Instrumentor]]
    operations: ClassVar[Sequence[str]] = ()
    lost: ClassVar[Mapping[str, Sequence[str]]] = {}
    absent: ClassVar[Sequence[str]] = ()

    needs: ClassVar[Mapping[str, str]] = {
        "test_a_target_that_vanished_is_one_warning": "operations",
        "test_an_error_of_ours_stays_ours": "operations",
        "test_the_framework_may_be_imported_afterwards": "operations",
    }
    """Needs of a fact, by the name of its test: a sub-class without them does not have the fact."""

    def __init_subclass__(cls) -> None:
        """Take away the facts that the sub-class cannot have."""
        for test, attribute in cls.needs.items():
            # A contract itself has all facts.
            if "instrumentor" in vars(cls) and not getattr(cls, attribute):
                setattr(cls, test, None)

    # -- to be brought by a sub-class ---------------------------------------------------------------

    @abstractmethod
    def work(self, call: Call, recorded: RecordedSpans | None) -> Any:
        """Run the program; return what it computed and what its models were sent."""

    def around(self, _recorded: RecordedSpans | None) -> AbstractContextManager[None]:
        """Return the surroundings of the program: those of a client are an agent's turn."""
        return nullcontext()

    def beside(self) -> dict[str, Any]:
        """Return further objects that the instrumentation replaces, by name."""
        return {}

    # -- fixtures -----------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Return the values of parameters, by the names under which tests take them."""
        rows = [patch.path for patch in self.instrumentor.patches]
        return {"row": rows, "broken": list(BROKEN), "capture": [True, "full"]}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give each test the values of its parameters."""
        values = self.parameters()
        for name in metafunc.fixturenames:
            if name in values:
                given = values[name]
                metafunc.parametrize(name, given, ids=[_named(each) for each in given])

    @pytest.fixture
    def call(self) -> Iterator[Call]:
        """Calls a function, and drives its coroutine in one event loop of the test."""
        loop = asyncio.new_event_loop()

        def run(function: Callable[..., Any], *args: Any) -> Any:
            result = function(*args)
            if not inspect.isawaitable(result):
                return result
            return loop.run_until_complete(asyncio.ensure_future(result, loop=loop))

        yield run
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    @pytest.fixture
    def recorded(self) -> Iterator[RecordedSpans]:
        """The spans of the test."""
        with recording(self.instrumentor()) as spans:
            yield spans

    @pytest.fixture(scope="class")
    @classmethod
    def plain(cls) -> Any:
        """Results of the program without an instrumentation."""
        return cls().work(lambda function, *args: _driven(function(*args)), None)

    # -- facts --------------------------------------------------------------------------------------

    def test_off_again_everything_is_as_it_was(self) -> None:
        """Each attribute is the very object that it was; twice on and off is as good as once."""
        before = {**targets(self.instrumentor), **self.beside()}
        instrumentor = self.instrumentor()
        for _ in range(2):
            state = RecordedSpans.of(instrumentor).instrumentor.state
            telemetry = instrumentor.telemetry
            assert instrumentor.instrument() is state
            assert instrumentor.telemetry is telemetry
            assert state.missing == []
            assert state.waiting == list(self.absent)
            during = {**targets(self.instrumentor), **self.beside()}
            assert [path for path in before if during[path] is before[path]] == []
            assert {*state.patched, *self.beside()} == set(before)
            instrumentor.uninstrument()
            instrumentor.uninstrument()
            after = {**targets(self.instrumentor), **self.beside()}
            assert [path for path in before if after[path] is not before[path]] == []

    def test_functions_look_and_are_copied_as_before(self) -> None:
        """Programs that look at what they call, copy it, or send it to other processes, see what they saw."""

        def is_itself_in_copies(target: Any) -> bool:
            for copied in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
                try:
                    there = copied(target)
                except (AttributeError, TypeError, pickle.PicklingError):
                    continue  # made by a decorator
                if there is not target and there != target:
                    return False
            return True

        def seen() -> dict[str, Any]:
            return {
                path: (
                    str(inspect.signature(target)),
                    inspect.iscoroutinefunction(target),
                    isinstance(target, staticmethod) or is_itself_in_copies(target),
                )
                for path, target in targets(self.instrumentor).items()
                if inspect.isroutine(target) or callable(target)
            }

        before = seen()
        instrumentor = self.instrumentor()
        instrumentor.instrument()
        try:
            during = seen()
            # A class holds itself now, in place of inheriting it.
            assert {path: during[path] for path in before} == before
        finally:
            instrumentor.uninstrument()

    def test_a_target_that_vanished_is_one_warning(
        self, row: str, plain: Any, call: Call, monkeypatch: Any, caplog: Any
    ) -> None:
        """A version without one of the targets: the target is named once, and all the rest is recorded."""
        rows = self.instrumentor.patches
        (gone,) = [patch for patch in rows if patch.path == row]
        kept = tuple(replace(p, target=f"{p.target}_gone") if p is gone else p for p in rows)
        monkeypatch.setattr(self.instrumentor, "patches", kept)
        caplog.set_level(logging.WARNING, logger="mast_trace")
        with recording(self.instrumentor()) as spans:
            with self.around(spans):
                done = self.work(call, spans)
            missing = list(spans.instrumentor.state.missing)
        assert done == plain
        assert missing == ([] if gone.optional else [f"{row}_gone"])
        warned = [r.getMessage() for r in caplog.records if r.name == "mast_trace"]
        assert [f"{row}_gone" in warning for warning in warned] == [True] * len(missing)
        assert sorted({*self.operations} - set(spans.counts())) == sorted(self.lost.get(row, ()))

    def test_an_error_of_ours_stays_ours(
        self, broken: str, plain: Any, call: Call, recorded: Any, monkeypatch: Any, caplog: Any
    ) -> None:
        """Telemetry that raises changes nothing in the program, and is logged."""
        raised: list[str] = []

        def raising(*_args: Any, **_kwargs: Any) -> Any:
            raised.append(broken)
            raise RuntimeError("telemetry is out of order")

        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        monkeypatch.setattr(guard, "_reported", set())
        with self.around(recorded), monkeypatch.context() as patching:
            for owner, name in BROKEN[broken]:
                patching.setattr(owner, name, raising)
            assert self.work(call, recorded) == plain
        assert ("telemetry is out of order" in caplog.text) is bool(raised)
        if broken == "everything":
            assert raised
            assert not {*self.operations} & set(recorded.counts())

    def test_the_framework_may_be_imported_afterwards(self, call: Call, recorded: Any) -> None:
        """Instrumenting imports nothing of it; the patches come with the program's own import."""
        with self.around(recorded):
            self.work(call, recorded)
        program = """
            import importlib, sys
            from recorded_spans import RecordedSpans, recording
            ours, name, theirs = sys.argv[1:4]
            instrumentor = getattr(importlib.import_module(ours), name)()
            assert instrumentor.present()
            spans = RecordedSpans.of(instrumentor)
            packages = {row.module.partition(".")[0] for row in instrumentor.patches}
            assert not packages & {name.partition(".")[0] for name in sys.modules}
            assert instrumentor.state.waiting and not instrumentor.state.missing
            contract = importlib.import_module(theirs)
            contract.TestContract().work_by_itself(spans)
        """
        done = subprocess.run(
            [
                *(sys.executable, "-c", textwrap.dedent(program)),
                *(self.instrumentor.__module__, self.instrumentor.__name__),
                type(self).__module__,
                *self.more_arguments(),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert done.returncode == 0, done.stderr
        told = done.stdout.partition("SPANS\n")[2]
        assert told == f"{tree_of(recorded)}\nmissing []\n"

    def more_arguments(self) -> list[str]:
        """Return further arguments of the process of its own."""
        return []

    def work_by_itself(self, recorded: RecordedSpans) -> None:
        """Run the program in a process of its own, and print its spans."""
        with self.around(recorded):
            self.work(lambda function, *args: _driven(function(*args)), recorded)
        missing = recorded.instrumentor.state.missing
        sys.stdout.write(f"SPANS\n{tree_of(recorded)}\nmissing {missing}\n")


def _named(value: Any) -> str:
    return str(getattr(value, "__name__", value)).replace(" ", "-")


def _driven(result: Any) -> Any:
    """Return the result of a coroutine, or what is no coroutine as it is."""

    async def awaited() -> Any:
        return await result

    return asyncio.run(awaited()) if inspect.isawaitable(result) else result
