"""Damaged files of a spool, set aside with a note about the loss."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from mast_trace_collector.spool.segment import make_folder

if TYPE_CHECKING:
    from mast_trace_collector.spool.reading import Damage

logger = logging.getLogger(__name__)

FOLDER = "damaged"
_NOTE = ".json"
_MAX_AREAS = 100


@dataclass(frozen=True)
class Loss:
    """The damage of a file.

    Attributes:
        name: of the segment or dead letter.
        reason: one clause that describes it.
        lost: number of acknowledged spans that can no longer be read, as far as known.
        kept: number of spans that can be read, and are stored.
        areas: unreadable byte ranges.
    """

    name: str
    reason: str
    lost: int
    kept: int = 0
    areas: tuple[Damage, ...] = ()


class DamagedFiles:
    """The folder of damaged files beside a spool; nothing in it is ever deleted by us.

    Args:
        directory: the spool's; the files are moved to a folder in it, on the same disk.
        items: noun for the counted items.
    """

    def __init__(self, directory: Path, items: str) -> None:
        self._folder = directory / FOLDER
        self._items = items

    def __len__(self) -> int:
        if not self._folder.is_dir():
            return 0
        return len({path.stem for path in self._folder.iterdir()})

    def report(self, loss: Loss, advice: str = "") -> None:
        """Log the loss, and the remedy."""
        logger.error(
            "%s is damaged: %s. %d acknowledged %s are lost, which senders do not send again; %d "
            "are kept. The file goes to %s, with a note. %s",
            *(loss.name, loss.reason, loss.lost, self._items, loss.kept, self._folder),
            advice
            or "Look for the cause (the system's log, the disk's own checks, other programs that "
            "write there), and delete the files there when they are of no more use: then the "
            "alert ends.",
            extra={"segment": loss.name, "lost": loss.lost, "kept": loss.kept},
        )

    def set_aside(self, loss: Loss, paths: Iterable[Path]) -> None:
        """Move a damaged file, and the files that belong to it, into the folder.

        Raises:
            OSError: the folder cannot be written.
        """
        make_folder(self._folder)
        for path in paths:
            if os.path.lexists(path):
                path.rename(self._free(path.name))
        note = self._free(f"{loss.name}{_NOTE}")
        note.write_bytes(
            orjson.dumps(
                {
                    "name": loss.name,
                    "reason": loss.reason,
                    "lost": loss.lost,
                    "kept": loss.kept,
                    "counted": self._items,
                    "found": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "unreadable": [
                        {"offset": area.offset, "bytes": area.size}
                        for area in loss.areas[:_MAX_AREAS]
                    ],
                },
                option=orjson.OPT_INDENT_2,
            )
        )

    def _free(self, name: str) -> Path:
        """Return a path that does not exist yet."""
        path = self._folder / name
        number = 1
        while os.path.lexists(path):
            path = self._folder / f"{number}.{name}"
            number += 1
        return path
