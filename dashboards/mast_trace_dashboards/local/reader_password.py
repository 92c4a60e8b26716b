"""The password with which other programs read the embedded database, kept as a hash alone."""

from __future__ import annotations

import logging
import re
import secrets
from pathlib import Path
from typing import Final

from mast_trace_collector.security import hash_of
from mast_trace_dashboards.whole_files import write_whole

logger = logging.getLogger(__name__)

NAME: Final = "clickhouse-password"
_KEPT = re.compile(r"sha256:([0-9a-f]{64})\s*")


class ReaderPassword:
    """The password of a data folder.

    It is long and random, so that a plain hash of it reveals nothing. A file of an earlier version,
    which holds the password itself, is replaced by its hash: the password stays valid.

    Args:
        data_dir: the folder.
        renew: generate a new password; the old one becomes invalid.

    Attributes:
        hash: of the password; see `security.hash_of`.
        made: the password, if it was generated now; it is not stored anywhere. Empty otherwise.
    """

    def __init__(self, data_dir: Path, *, renew: bool = False) -> None:
        self._path = Path(data_dir, NAME)
        self.made = ""
        kept = "" if renew else self._kept()
        if not kept:
            self.made = secrets.token_urlsafe(18)
            kept = hash_of(self.made)
            self._keep(kept)
        self.hash = kept

    def _kept(self) -> str:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        if match := _KEPT.fullmatch(text):
            return match[1]
        if not text.strip():
            return ""
        kept = hash_of(text.strip())
        self._keep(kept)
        logger.info(
            "%s held the password itself; it holds its hash now, and the password stays in force",
            self._path,
        )
        return kept

    def _keep(self, kept: str) -> None:
        write_whole(self._path, f"sha256:{kept}\n", private=True)
