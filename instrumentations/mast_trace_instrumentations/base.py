"""The base of all instrumentations: a table of patches, applied when their module is imported.

No framework is imported from here. `wrapt` calls back after the program imports a module (at once
if it has done so already), then the rows of that module are applied; `uninstrument` reverts them. A
target that a version lacks is reported, and the others work.
"""

from __future__ import annotations

import copy
import logging
import pkgutil
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import wrapt

from mast_trace.content_settings import content_from_environment
from mast_trace.exceptions import UnsupportedVersion
from mast_trace.fork_safe import reentrant_lock
from mast_trace.spans import Telemetry, handler

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from mast_trace.content import ContentPolicy


logger = logging.getLogger("mast_trace")

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


@dataclass(frozen=True)
class Patch:
    """One row of an instrumentation's table.

    Attributes:
        module: module of the target, such as ``langgraph.pregel.main``.
        target: dotted path inside it, such as ``Pregel.stream``.
        begin: name of the method of the instrumentor that begins to trace a call of the target. It
            takes the instance, the arguments and the keyword arguments, and returns a
            `mast_trace.spans.Call`, or None to trace nothing. It runs when the target's code begins
            to run: the target may be a function, a coroutine, a generator or an asynchronous
            generator.
        optional: why the target may be absent ("since 1.1"); empty when every supported version has
            it. Only targets without this are reported as missing.
        only_if: name of a method of the instrumentor that returns whether a call is to be traced;
            otherwise the target is called without a Python frame in between.
        wrapper: name of a method that calls the target itself, instead of ``begin``, for rows that
            change the target's arguments or its result; its signature is wrapt's ``(wrapped,
            instance, args, kwargs)``.
    """

    module: str
    target: str
    begin: str = ""
    optional: str = ""
    only_if: str = ""
    wrapper: str = ""

    @property
    def path(self) -> str:
        """Module and target in one, as reports print them."""
        return f"{self.module}:{self.target}"


@dataclass(frozen=True)
class ImportHook:
    """An action beside patching, taken once the program has imported a module.

    Attributes:
        module: module to which the action applies, such as registering a callback handler.
        method: name of the method of the instrumentor that does it; `Instrumentor.stopped` has to
            revert it.
    """

    module: str
    method: str


class _BoundWrapper(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    """A patched function as a method, copied and pickled by its instance and its name, as methods are."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._self_instance is None:
            return self
        return getattr(copy.deepcopy(self._self_instance, memo), self._name())

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._self_instance is None:
            return self._self_parent.__reduce_ex__(protocol)
        return getattr, (self._self_instance, self._name())

    def _name(self) -> str:
        path: str = self._self_parent._self_path  # noqa: SLF001  # wrapt keeps what has this prefix
        return path.rpartition(".")[2]


class _Wrapper(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A patched function, copied and pickled by its name, as functions are; wrapt refuses both."""

    __bound_function_wrapper__ = _BoundWrapper

    def __init__(self, original: Any, handle: Any, needed: Any, path: str) -> None:
        super().__init__(original, handle, needed)
        self._self_path = path

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        return pkgutil.resolve_name, (self._self_path,)


@dataclass
class _Applied:
    owner: Any
    attribute: str
    original: Any
    wrapper: Any
    own: bool
    """True if the owner held the attribute itself, or inherited it."""

    def revert(self) -> None:
        if vars(self.owner).get(self.attribute) is not self.wrapper:
            # Another tool has wrapped our wrapper: removing ours would remove theirs. It stays,
            # switched off.
            return
        if self.own:
            setattr(self.owner, self.attribute, self.original)
        else:
            delattr(self.owner, self.attribute)


@dataclass
class InstrumentationState:
    """The status of one framework's instrumentation; `mast_trace.instrument()` reports it."""

    framework: str
    version: str = ""
    active: bool = False
    patched: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Modules that the program has not imported yet."""


class Instrumentor:
    """Instruments one framework. Sub-classes set the class attributes and define the methods of rows.

    The methods that the rows name run inside of `mast_trace.spans.guarded`, so their errors are
    logged and the framework goes on; the framework's own call runs outside of it, so that its
    exceptions pass through untouched. Only a ``wrapper`` has to ensure both by itself.
    """

    framework: ClassVar[str]
    """The framework's name in `instrument(frameworks=[...])` and on the spans."""
    distributions: ClassVar[tuple[str, ...]]
    """Names on PyPI under which the framework is installed; its version is read from them."""
    versions: ClassVar[tuple[str, str]]
    """Supported versions: the first supported one, and the first unsupported one after it."""
    patches: ClassVar[tuple[Patch, ...]]
    import_hooks: ClassVar[tuple[ImportHook, ...]] = ()

    telemetry: Telemetry

    def __init__(self) -> None:
        self.state = InstrumentationState(self.framework)
        self._applied: list[_Applied] = []
        self._done: set[str] = set()
        self._hooked: set[str] = set()
        self._lock = reentrant_lock()

    # -- hooks for frameworks --------------------------------------------------------------------

    def present(self) -> bool:
        """Return whether the framework is installed, without importing it."""
        return bool(self.installed_version())

    def installed_version(self) -> str:
        """Return the installed version, or an empty string."""
        for name in self.distributions:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return ""

    def is_optional(self, module: str) -> bool:
        """Return whether the framework works without ``module``, because all rows of it are optional."""
        rows = [patch for patch in self.patches if patch.module == module]
        return bool(rows) and all(patch.optional for patch in rows)

    def checking(self) -> AbstractContextManager[None]:
        """Return a context manager in which `mast-trace doctor` imports the framework for inspection.

        It provides what the import expects of a program, such as a configuration, and keeps it from
        leaving files behind.
        """
        return nullcontext()

    def started(self) -> None:
        """Hook called once instrumentation is on: for work that is neither a patch nor an import hook."""

    def stopped(self) -> None:
        """Hook called once instrumentation is off: reverts the work of `started` and of the import hooks."""

    # -- life cycle -----------------------------------------------------------------------------

    def instrument(
        self,
        tracer_provider: TracerProvider | None = None,
        content: ContentPolicy | None = None,
        **_ignored: Any,
    ) -> InstrumentationState:
        """Install the patches, now or when their modules are imported. Idempotent.

        Raises:
            UnsupportedVersion: the installed version is outside `versions`.
        """
        with self._lock:
            if self.state.active:
                return self.state
            version = self.installed_version()
            self._check(version)
            # `opentelemetry-instrument` makes an instance of its own: two would record everything
            # twice.
            other = _instrumenting.get(type(self))
            if other is not None and other is not self:
                other.uninstrument()
            _instrumenting[type(self)] = self
            if tracer_provider is None:
                from opentelemetry import trace

                tracer_provider = trace.get_tracer_provider()
            self.telemetry = Telemetry(
                tracer_provider,
                content or content_from_environment(),
                framework=self.framework,
                version=version,
            )
            self.state.version = version
            self.state.active = True
            rows: tuple[Patch | ImportHook, ...] = (*self.patches, *self.import_hooks)
            for module in dict.fromkeys(row.module for row in rows):
                if module in sys.modules:
                    self._apply(module)
                elif version and _is_gone(module):
                    self._report_module(module)
                else:
                    self._wait_for(module)
            self.started()
            return self.state

    def uninstrument(self, **_ignored: Any) -> None:
        """Restore every patched attribute. Idempotent."""
        with self._lock:
            if not self.state.active:
                return
            self.state.active = False
            for applied in reversed(self._applied):
                applied.revert()
            self._applied.clear()
            self._done.clear()
            self.state.patched.clear()
            self.state.missing.clear()
            self.state.waiting.clear()
            self.stopped()

    # -- patching -------------------------------------------------------------------------------

    def _check(self, version: str) -> None:
        lowest, beyond = self.versions
        if version and not _key(lowest) <= _key(version) < _key(beyond):
            raise UnsupportedVersion(
                f"{self.framework} {version} is not supported (supported: {lowest} up to, "
                f"not including, {beyond}). Upgrade mast-trace, or pin {self.distributions[0]}."
            )

    def _wait_for(self, module: str) -> None:
        self.state.waiting.append(module)
        if module not in self._hooked:
            self._hooked.add(module)
            wrapt.register_post_import_hook(self._imported, module)

    def _imported(self, module: Any) -> None:
        with self._lock:
            if self.state.active:
                self._apply(module.__name__)

    def _apply(self, module: str) -> None:
        if module in self._done:
            return
        self._done.add(module)
        if module in self.state.waiting:
            self.state.waiting.remove(module)
        for patch in self.patches:
            if patch.module == module:
                self._patch(patch)
        for hook in self.import_hooks:
            if hook.module == module:
                getattr(self, hook.method)()

    def _patch(self, patch: Patch) -> None:
        try:
            owner, attribute, original = wrapt.resolve_path(sys.modules[patch.module], patch.target)
        except AttributeError:
            self._report(patch)
            return
        own = attribute in vars(owner)
        # Evaluated at every call of the target, without a Python frame.
        is_on = partial(getattr, self.state, "active")
        needed = getattr(self, patch.only_if) if patch.only_if else is_on
        wrapper = _Wrapper(original, self._handler(patch, original), needed, patch.path)
        setattr(owner, attribute, wrapper)
        self._applied.append(_Applied(owner, attribute, original, wrapper, own))
        self.state.patched.append(patch.path)

    def _handler(self, patch: Patch, original: Any) -> Any:
        if patch.wrapper:
            return getattr(self, patch.wrapper)
        return handler(original, getattr(self, patch.begin), f"recording {patch.path}")

    def _report_module(self, module: str) -> None:
        for patch in self.patches:
            if patch.module == module:
                self._report(patch)

    def _report(self, patch: Patch) -> None:
        if patch.optional:
            return
        self.state.missing.append(patch.path)
        logger.warning(
            "mast-trace: %s %s has no %s; what it would record is missing from traces, "
            "the rest is recorded. Look for a newer mast-trace.",
            self.framework,
            self.state.version,
            patch.path,
        )


def _is_gone(module: str) -> bool:
    """Return whether a package is installed without this module of it, determined without an import.

    A package that the import path does not hold at all (not installed, or provided by an import
    hook) is not known to lack anything.
    """
    names = module.split(".")
    spec = PathFinder.find_spec(names[0])
    if spec is None:
        return False
    for depth in range(2, len(names) + 1):
        if spec.submodule_search_locations is None:
            return True
        try:
            places = list(spec.submodule_search_locations)
            spec = PathFinder.find_spec(".".join(names[:depth]), places)
        except KeyError:  # a folder without an `__init__` is only found below imported packages
            return False
        if spec is None:
            return True
    return False


_instrumenting: dict[type[Instrumentor], Instrumentor] = {}
"""The instance of each class that was turned on last."""


def _key(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version, without suffixes (rc1, .dev0)."""
    numbers: list[int] = []
    for piece in version.split("."):
        digits = "".join(ch for i, ch in enumerate(piece) if piece[: i + 1].isdigit())
        if not digits:
            break
        numbers.append(int(digits))
        if digits != piece:
            break
    return tuple(numbers)
