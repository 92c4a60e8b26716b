"""A prepared process that is made for the first replay, where nobody is there to be told that it cannot be."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mast_trace_lab.program.forking import NotForkable, PreparedParent
from mast_trace_lab.program.own_process import run_alone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.program.own_process import Output

_LOG = logging.getLogger(__name__)


class ForkedLater(ExitStack):
    """The replays of one program, one at a time, forked from a process that the first of them makes.

    Where they cannot be forked, this is logged once, and each runs in a process of its own. The end of
    the ``with`` block ends the process.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork; none for processes of their own.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str]) -> None:
        super().__init__()
        self._command, self._modules = command, modules
        self._parent: PreparedParent | None = None

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Run the program and return its exit status; see `PreparedParent.run`.

        Raises:
            NotForkable: the process from which it is forked has ended.
            OSError: the command cannot be started.
        """
        if self._modules:
            modules, self._modules = self._modules, ()
            try:
                self._parent = self.enter_context(PreparedParent(self._command, modules))
            except NotForkable as error:
                _LOG.warning("%s", error)
        if self._parent is None:
            return run_alone(self._command, environment, output, timeout)
        return self._parent.run(environment, output, timeout)
