"""Several prepared processes, from which the replays of one program are forked at the same time."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

from mast_trace_judge.replay.forking import PreparedParent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self


class PreparedParents:
    """Processes that have imported a program's libraries; each forks one replay at a time.

    Args:
        command: the program and its arguments.
        modules: modules that are imported before the first fork.
        count: number of processes; replays beyond it wait.

    Raises:
        NotForkable: as for `PreparedParent`.
        OSError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], modules: Sequence[str], count: int = 1) -> None:
        self._all: list[PreparedParent] = []
        self._free: SimpleQueue[PreparedParent] = SimpleQueue()
        try:
            for _ in range(count):
                self._all.append(PreparedParent(command, modules))
                self._free.put(self._all[-1])
        except BaseException:
            self.close()
            raise

    def run(self, environment: Mapping[str, str], output: str, timeout: float) -> int | None:
        """Fork the program from a process that is free; see `PreparedParent.run`.

        Raises:
            NotForkable: the process has ended.
        """
        parent = self._free.get()
        try:
            return parent.run(environment, output, timeout)
        finally:
            self._free.put(parent)

    def close(self) -> None:
        """End the processes; may be called twice."""
        for parent in self._all:
            parent.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes."""
        self.close()
