"""Who may write: bearer keys and the projects they belong to, and where the receivers may listen.

The keys file has one line per key, ``project sha256:<hex>``; ``#`` begins a comment. Keys are
random and long, so a plain hash of one reveals nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.config import CollectorConfig

logger = logging.getLogger(__name__)

_LINE = re.compile(r"(?P<project>[\w.-]{1,64})\s+sha256:(?P<hash>[0-9a-f]{64})")
_RELOAD_SECONDS = 1.0
_MAX_KEY_LENGTH = 512


class ProjectKeys:
    """The keys file; changes to it take effect within a second.

    Raises:
        ConfigurationError: the file cannot be read, or a line of it is no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked = time.monotonic()
        self._changed = self._modified()
        self._keys = self._read()

    def project_of(self, authorization: str) -> str | None:
        """The project of a request's ``Authorization`` header; None when it may not write."""
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or len(key) > _MAX_KEY_LENGTH:
            return None
        self._refresh()
        presented = hash_of(key.strip())
        project = None
        # Every hash is compared, so that the time taken says nothing about which one matched.
        for known, owner in self._keys:
            if hmac.compare_digest(known, presented):
                project = owner
        return project

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._checked < _RELOAD_SECONDS:
            return
        self._checked = now
        try:
            modified = self._modified()
            if modified != self._changed:
                self._keys = self._read()
                self._changed = modified
        except ConfigurationError as error:
            # A slip while editing the file must not lock every sender out.
            logger.error("the keys read before stay in force: %s", error)  # noqa: TRY400

    def _modified(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError as error:
            raise ConfigurationError(f"cannot read the keys file: {error}") from error
        return status.st_mtime_ns, status.st_size

    def _read(self) -> list[tuple[str, str]]:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"cannot read the keys file: {error}") from error
        keys = []
        for number, line in enumerate(lines, start=1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                raise ConfigurationError(
                    f"{self._path}:{number} is no key; expected: project sha256:<64 hex digits>"
                )
            keys.append((match["hash"], match["project"]))
        if not keys:
            raise ConfigurationError(f"{self._path} holds no keys")
        return keys


def hash_of(key: str) -> str:
    """What the keys file keeps of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key(project: str) -> tuple[str, str]:
    """Make a key.

    Returns:
        The key, to be shown once, and its line for the keys file.

    Raises:
        ConfigurationError: the project's name has characters that cannot stand in the file.
    """
    key = f"mt_{secrets.token_urlsafe(32)}"
    line = f"{project} sha256:{hash_of(key)}"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"{project!r} is no project name: up to 64 letters, digits, '.', '_' and '-'"
        )
    return key, line


def add_line(path: Path, line: str) -> None:
    """Add a key's line to a keys file, which is made for this user alone if it is missing.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    try:
        path.touch(mode=0o600)
        with path.open("r+", encoding="utf-8") as file:
            text = file.read()
            separator = "" if not text or text.endswith("\n") else "\n"
            file.write(f"{separator}{line}\n")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot write the keys file: {error}") from error


def check_bind(config: CollectorConfig) -> None:
    """Refuse to listen where strangers could write.

    Raises:
        ConfigurationError: the host is not loopback, there are no keys, and nobody said that
            this is wanted.
    """
    if config.keys_file or config.allow_insecure_bind or is_loopback(config.host):
        return
    raise ConfigurationError(
        f"refusing to listen on {config.host} without keys: anyone who reaches it could write. "
        "Set keys_file (MAST_TRACE_KEYS_FILE), or allow_insecure_bind to accept that"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
