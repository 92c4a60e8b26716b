"""The table of patches that all instrumentations are made of."""

from __future__ import annotations

import copy
import pickle
import sys
import textwrap
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
import wrapt
from opentelemetry.sdk.trace import TracerProvider

from mast_trace.exceptions import UnsupportedVersion
from mast_trace_instrumentations.base import ImportHook, Instrumentor, Patch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FRAMEWORK = """
    class Agent:
        def run(self, task):
            return f"done: {task}"

        @staticmethod
        def count():
            return 1

    class Lead(Agent):
        pass

    def start(task):
        return Agent().run(task)
"""


class Toy(Instrumentor):
    """Instruments a framework that the test writes into a folder."""

    framework = "toy"
    distributions = ("toy",)
    versions = ("1.0", "2.0")
    patches = (
        Patch("toyframework.core", "Agent.run", wrapper="_run"),
        Patch("toyframework.core", "start", wrapper="_run"),
    )
    version = "1.5"

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def installed_version(self) -> str:
        return self.version

    def _run(self, wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        self.calls.append(wrapped.__name__)
        return wrapped(*args, **kwargs)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Toy]]:
    """A framework on the import path that nobody has imported yet."""
    package = tmp_path / "toyframework"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "core.py").write_text(textwrap.dedent(FRAMEWORK))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Toy
    for name in [name for name in sys.modules if name.partition(".")[0] == "toyframework"]:
        del sys.modules[name]


def core() -> Any:
    return import_module("toyframework.core")


class TestInstrument:
    """Putting patches in."""

    def test_nothing_is_imported(self, toy):
        """The rows of a module wait for the program to import it."""
        state = toy().instrument(TracerProvider())

        assert state.waiting == ["toyframework.core"]
        assert "toyframework" not in sys.modules

    def test_patches_go_in_when_the_program_imports_the_module(self, toy):
        """Patches are in place before anything of the module can be called."""
        instrumentor = toy()
        state = instrumentor.instrument(TracerProvider())
        assert core().start("x") == "done: x"

        assert state.patched == ["toyframework.core:Agent.run", "toyframework.core:start"]
        assert state.waiting == []
        assert instrumentor.calls == ["start", "run"]

    def test_patches_go_in_at_once_where_the_module_is_imported(self, toy):
        """Imported before, instrumented after."""
        module = core()
        instrumentor = toy()
        instrumentor.instrument(TracerProvider())
        module.start("x")

        assert instrumentor.calls == ["start", "run"]

    def test_a_second_call_changes_nothing(self, toy):
        """Instrumenting is idempotent."""
        core()
        instrumentor = toy()
        first = instrumentor.instrument(TracerProvider())
        telemetry = instrumentor.telemetry

        assert instrumentor.instrument(TracerProvider()) is first
        assert instrumentor.telemetry is telemetry
        core().start("x")
        assert instrumentor.calls == ["start", "run"]

    @pytest.mark.parametrize("version", ["0.9", "0.9.12", "2.0", "2.1rc1"])
    def test_a_version_outside_the_range_is_refused(self, toy, version):
        """The error names the version, the range and what to do."""
        instrumentor = toy()
        instrumentor.version = version
        with pytest.raises(UnsupportedVersion, match=rf"toy {version} .*1\.0 up to.* 2\.0.*pin"):
            instrumentor.instrument(TracerProvider())
        assert not instrumentor.state.active

    @pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.10.3", "1.9.dev0", "1.99"])
    def test_a_version_inside_the_range_is_taken(self, toy, version):
        """Versions compare as numbers, not as texts."""
        instrumentor = toy()
        instrumentor.version = version
        assert instrumentor.instrument(TracerProvider()).version == version


class TestMissingTargets:
    """Targets that a version lacks."""

    def warned(self, caplog: Any) -> list[str]:
        return [record.getMessage() for record in caplog.records]

    def test_a_vanished_attribute_is_reported_once_and_the_rest_works(self, toy, caplog):
        """A vanished attribute gives one warning with its name."""

        class Newer(toy):
            patches = (Patch("toyframework.core", "Agent.act", wrapper="_run"), *Toy.patches)

        instrumentor = Newer()
        state = instrumentor.instrument(TracerProvider())
        core().start("x")

        assert state.missing == ["toyframework.core:Agent.act"]
        assert instrumentor.calls == ["start", "run"]
        (warning,) = self.warned(caplog)
        assert "toy 1.5 has no toyframework.core:Agent.act" in warning

    def test_a_vanished_module_is_reported_at_once(self, toy, caplog):
        """A vanished module would be waited for in vain; its absence is determined without an import."""

        class Newer(toy):
            patches = (Patch("toyframework.engine", "Engine.run", wrapper="_run"), *Toy.patches)

        state = Newer().instrument(TracerProvider())

        assert state.missing == ["toyframework.engine:Engine.run"]
        assert state.waiting == ["toyframework.core"]
        assert len(self.warned(caplog)) == 1
        assert "toyframework" not in sys.modules

    def test_what_only_some_versions_have_is_no_reason_to_warn(self, toy, caplog):
        """A row that says since when may be absent."""

        class Wider(toy):
            patches = (
                Patch("toyframework.core", "Agent.act", wrapper="_run", optional="since 1.6"),
                Patch("toyframework.engine", "Engine.run", wrapper="_run", optional="since 1.6"),
                *Toy.patches,
            )

        state = Wider().instrument(TracerProvider())
        core()

        assert state.missing == []
        assert self.warned(caplog) == []

    @pytest.mark.parametrize(
        ("installed", "module"),
        [("1.5", "toycompanion.extras"), ("", "toyframework.agents.lead")],
    )
    def test_a_package_that_is_not_installed_lacks_nothing(self, installed, module, toy, caplog):
        """Rows of an optional companion wait, silently, and all rows where only others share the name.

        `opentelemetry-instrument` turns on what is not installed: `google` is there wherever protobuf is.
        """

        class Wider(toy):
            version = installed
            patches = (Patch(module, "Extra.run", wrapper="_run"),)

        state = Wider().instrument(TracerProvider())

        assert state.waiting == [module]
        assert self.warned(caplog) == []


class TestUninstrument:
    """Taking patches out."""

    def test_every_attribute_is_the_object_that_it_was(self, toy):
        """Compared as objects; where two rows wrap one attribute, the last that was put on is taken off first."""
        module = core()
        before = (vars(module.Agent)["run"], module.start)

        class Twice(toy):
            patches = (*toy.patches, *toy.patches)

        instrumentor = Twice()
        instrumentor.instrument(TracerProvider())
        instrumentor.uninstrument()

        assert vars(module.Agent)["run"] is before[0]
        assert module.start is before[1]
        assert not instrumentor.state.active

    @pytest.mark.parametrize("on", [False, True])
    def test_methods_are_copied_and_pickled_with_what_they_are_bound_to(self, on, toy):
        """Programs hand them to worker processes, and copy the state that holds them."""
        module = core()
        instrumentor = toy()
        if on:
            instrumentor.instrument(TracerProvider())
        agent = module.Lead()
        agent.name = "first"
        for copied in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
            there = copied({"method": agent.run, "function": module.start, "all": module.Agent.run})
            assert (there["function"], there["all"]) == (module.start, module.Agent.run)
            other = there["method"].__self__
            assert (type(other), other.name, other is agent) == (module.Lead, "first", False)
            assert there["method"]("x") == "done: x"
        assert copy.copy(agent.run).__self__ is agent
        instrumentor.uninstrument()
        assert instrumentor.calls == ["run"] * (2 * on)

    def test_an_inherited_attribute_is_inherited_again(self, toy):
        """A patch on a class that only inherits the method leaves nothing behind."""

        class Lead(toy):
            patches = (Patch("toyframework.core", "Lead.run", wrapper="_run"),)

        module = core()
        instrumentor = Lead()
        instrumentor.instrument(TracerProvider())
        assert "run" in vars(module.Lead)
        module.Agent().run("x")
        assert instrumentor.calls == []
        module.Lead().run("x")
        assert instrumentor.calls == ["run"]
        instrumentor.uninstrument()

        assert "run" not in vars(module.Lead)

    def test_a_static_method_stays_one(self, toy):
        """The descriptor itself is put back."""

        class Static(toy):
            patches = (Patch("toyframework.core", "Agent.count", wrapper="_run"),)

        module = core()
        before = vars(module.Agent)["count"]
        instrumentor = Static()
        instrumentor.instrument(TracerProvider())
        assert module.Agent.count() == module.Agent().count() == 1
        instrumentor.uninstrument()

        assert vars(module.Agent)["count"] is before

    def test_a_wrapper_that_somebody_put_around_ours_stays(self, toy):
        """Another tool patched after us: it keeps working, ours is switched off."""
        module = core()
        instrumentor = toy()
        instrumentor.instrument(TracerProvider())
        theirs: list[str] = []

        def peer(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
            theirs.append("seen")
            return wrapped(*args, **kwargs)

        wrapt.wrap_function_wrapper(module, "Agent.run", peer)
        instrumentor.uninstrument()

        assert module.Agent().run("x") == "done: x"
        assert theirs == ["seen"]
        assert instrumentor.calls == []

    def test_a_module_imported_afterwards_is_left_alone(self, toy):
        """The import hook remains, but does nothing."""
        instrumentor = toy()
        instrumentor.instrument(TracerProvider())
        instrumentor.uninstrument()
        core().start("x")

        assert instrumentor.calls == []
        assert not hasattr(core().start, "__wrapped__")

    def test_off_and_on_again(self, toy):
        """Instrumentation works again after a break, even if the module was imported in between."""
        instrumentor = toy()
        instrumentor.instrument(TracerProvider())
        instrumentor.uninstrument()
        module = core()
        for _ in range(2):
            instrumentor.instrument(TracerProvider())
            module.start("x")
            assert instrumentor.calls == ["start", "run"]
            instrumentor.uninstrument()
            instrumentor.calls.clear()


class TestImportHooks:
    """Hooks that are no patches."""

    def test_they_run_once_after_the_import(self, toy):
        """For what is registered, not patched."""

        class Registering(toy):
            import_hooks = (ImportHook("toyframework.core", "_register"),)

            def _register(self) -> None:
                self.calls.append("registered")

        instrumentor = Registering()
        instrumentor.instrument(TracerProvider())
        assert instrumentor.calls == []
        core()
        core()
        assert instrumentor.calls == ["registered"]


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        ("openai", {"": 2, "since 1.92": 2, "since 1.66": 4}),
        ("mcp", {"": 2, "since 2.0": 1}),
        ("litellm", {"": 12, "in some versions": 3}),
        (
            "anthropic",
            {"": 18, "since 0.77": 8, "with a copy for Bedrock": 4, "with a copy for Vertex": 4},
        ),
        (
            "crewai",
            {
                "": 9,
                "in some 1.x": 15,
                "since 1.0": 2,
                "since 1.7": 2,
                "since 1.9": 7,
                "before 1.9": 1,
                "with LiteLLM": 3,
            },
        ),
    ],
)
def test_what_only_some_versions_have_is_not_reported_as_missing_in_others(framework, expected):
    package = import_module(f"mast_trace_instrumentations.{framework}")
    (instrumentor,) = (
        each for name, each in vars(package).items() if name.endswith("Instrumentor")
    )
    assert Counter(patch.optional for patch in instrumentor.patches) == expected
