"""The public names of `mast_trace`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

import mast_trace
from mast_trace import replay
from mast_trace.replay.recording import NotReplayable
from mast_trace.replayed_run import ReplayedRun, replayed

if TYPE_CHECKING:
    from types import ModuleType


def test_are_few_sorted_and_documented() -> None:
    """At most fifteen, each with a docstring."""
    assert mast_trace.__all__ == sorted(mast_trace.__all__)
    assert len(mast_trace.__all__) <= 15
    for name in mast_trace.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(mast_trace, name)), name


def test_are_all_there_is() -> None:
    """A name without a leading underscore is meant to be used, and is found by dir()."""
    public = {name for name in dir(mast_trace) if not name.startswith("_")}
    submodules = {name for name in public if inspect.ismodule(getattr(mast_trace, name))}
    assert public - submodules - {"annotations", "import_module", "TYPE_CHECKING", "Any"} == {
        name for name in mast_trace.__all__ if name != "__version__"
    }


@pytest.mark.parametrize("module", [mast_trace, replay])
def test_a_name_that_is_not_there_is_an_attribute_error(module: ModuleType) -> None:
    """An unknown name raises AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def test_names_of_replay_are_those_of_its_modules() -> None:
    named = (replay.NotReplayable, replay.ReplayedRun, replay.replayed)
    assert named == (NotReplayable, ReplayedRun, replayed)
    assert replay.__all__ == ["NotReplayable", "ReplayedRun", "normalize", "replayed"]


def test_the_version_is_the_installed_one() -> None:
    """The version is the installed package's, not a second copy of it."""
    from importlib.metadata import version

    assert mast_trace.__version__ == version("mast-trace")
