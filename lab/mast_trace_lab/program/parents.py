"""Several prepared processes, from which the replays of one program are forked at the same time."""

from __future__ import annotations

from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING

from mast_trace_lab.program.forking import PreparedParent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.program.own_process import Output


class PreparedParents(ExitStack):
    """Processes that have imported a program's libraries; each forks one replay at a time.

    The end of the ``with`` block ends the processes.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork.
        count: number of processes; replays beyond it wait.

    Raises:
        NotForkable: as for `PreparedParent`.
        OSError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str], count: int = 1) -> None:
        super().__init__()
        self._free: SimpleQueue[PreparedParent] = SimpleQueue()
        try:
            for _ in range(count):
                self._free.put(self.enter_context(PreparedParent(command, modules)))
        except BaseException:
            self.close()
            raise

    def run(self, environment: Mapping[str, str], output: Output, timeout: float) -> int | None:
        """Fork the program from a process that is free; see `PreparedParent.run`.

        Raises:
            NotForkable: the process has ended.
        """
        parent = self._free.get()
        try:
            return parent.run(environment, output, timeout)
        finally:
            self._free.put(parent)
