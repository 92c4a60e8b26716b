"""Bearer keys with their projects, and the addresses that servers may listen on.

The keys file has one line per key, ``project sha256:<hex> rights``; ``#`` begins a comment. Keys
are random and long, so a plain hash of one reveals nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace.exceptions import CollectorError, ConfigurationError

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

    _State = tuple[int, ...]

_LINE = re.compile(r"(?P<project>[\w.-]{1,64})\s+sha256:(?P<hash>[0-9a-f]{64})\s+(?P<rights>\S.*)")

logger = logging.getLogger(__name__)
_RELOAD_SECONDS = 1.0
_MAX_KEY_LENGTH = 512


class Right(str, Enum):
    """A right that a key gives its holder, always within the key's project.

    `METRICS` alone exceeds the project: a collector's numbers are of all projects.
    """

    WRITE = "write"
    READ = "read"
    LABEL = "label"
    METRICS = "metrics"


_NAMES = ", ".join(right.value for right in Right)


class MissingRight(CollectorError):
    """The key is known, but lacks the right."""


@dataclass(frozen=True)
class Grant:
    """The grant of a key: a line of the keys file.

    Attributes:
        project: the one that the key belongs to.
        rights: those that the key has.
        hash: of the key, in hexadecimal digits.
    """

    project: str
    rights: frozenset[Right]
    hash: str

    def demand(self, right: Right) -> None:
        """Return if the key has the right.

        Raises:
            MissingRight: it lacks the right; the text names it, and the command that makes a key
                with it.
        """
        if right not in self.rights:
            raise MissingRight(
                f"this key of project {self.project!r} lacks the right to {right.value} (it has "
                f"{spelled(self.rights)}): ask for a key with it, `mast-trace collect key "
                f"{self.project} --right {right.value}`"
            )


def read_line(text: str) -> Grant | None:
    """Read ``project sha256:<hex> rights``; None if it is no such line.

    Raises:
        ConfigurationError: it names an unknown right.
    """
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    return Grant(match["project"], read_rights([match["rights"]]), match["hash"])


def line_of(grant: Grant) -> str:
    """Return the line of the keys file for a grant.

    Raises:
        ConfigurationError: the project's name has characters that cannot stand in the file.
    """
    line = f"{grant.project} sha256:{grant.hash} {spelled(grant.rights)}"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"{grant.project!r} is no project name: up to 64 letters, digits, '.', '_' and '-'"
        )
    return line


def read_rights(texts: Iterable[str]) -> frozenset[Right]:
    """Read names of rights, with commas or spaces between.

    Raises:
        ConfigurationError: an unknown name, or none at all.
    """
    names = [name for text in texts for name in re.split(r"[,\s]+", text.strip()) if name]
    if unknown := [name for name in names if name not in {right.value for right in Right}]:
        raise ConfigurationError(f"{unknown[0]!r} is no right of a key: there are {_NAMES}")
    if not names:
        raise ConfigurationError(f"a key needs a right: there are {_NAMES}")
    return frozenset(map(Right, names))


def spelled(rights: frozenset[Right]) -> str:
    """Return rights as they are written in the keys file."""
    return ",".join(right.value for right in Right if right in rights)


class ProjectKeys:
    """The keys file; changes to it take effect within a second.

    Raises:
        ConfigurationError: the file cannot be read, a line of it is no key, or there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked = time.monotonic()
        self._seen: _State | None = self._state()
        self._emptied: float | None = None
        self._grants = self._read()
        if not self._grants:
            raise ConfigurationError(f"{path} holds no keys")

    def grant_of(self, authorization: str) -> Grant | None:
        """Return the grant of a request's ``Authorization`` header; None if its key is unknown."""
        scheme, _, key = authorization.partition(" ")
        return self.grant_of_key(key.strip()) if scheme.lower() == "bearer" else None

    def grant_of_key(self, key: str) -> Grant | None:
        """Return the grant of a key; None if it is unknown."""
        return None if len(key) > _MAX_KEY_LENGTH else self.grant_of_hash(hash_of(key))

    def grant_of_hash(self, presented: str) -> Grant | None:
        """Return the grant of the key with this hash; None if it is not, or no longer, known."""
        self._refresh()
        found = None
        # Every hash is compared, so that the time taken does not reveal which one matched.
        for grant in self._grants:
            if hmac.compare_digest(grant.hash, presented):
                found = grant
        return found

    def _refresh(self) -> None:
        """Read the file again if it has changed.

        A mistake while it is edited must not lock every sender out: the keys read before stay in
        force, which is logged once.
        """
        now = time.monotonic()
        if now - self._checked < _RELOAD_SECONDS:
            return
        self._checked = now
        try:
            state = self._state()
        except ConfigurationError as error:
            if self._seen is not None:
                logger.error("the keys read before stay in force: %s", error)  # noqa: TRY400
            self._seen = None
            return
        if state == self._seen:
            self._revoke_all_if_empty(now)
            return
        self._seen, self._emptied = state, None
        try:
            grants = self._read()
        except ConfigurationError as error:
            logger.error("the keys read before stay in force: %s", error)  # noqa: TRY400
            return
        if grants:
            self._grants = grants
        else:
            self._emptied = now

    def _revoke_all_if_empty(self, now: float) -> None:
        """Forget all keys once a file without keys has stayed so.

        A program that rewrites the file leaves it empty for a moment.
        """
        if self._emptied is not None and now - self._emptied >= _RELOAD_SECONDS:
            logger.warning("%s holds no keys any more: nobody has access", self._path)
            self._grants, self._emptied = [], None

    def _state(self) -> _State:
        try:
            status = self._path.stat()
        except OSError as error:
            raise ConfigurationError(f"cannot read the keys file: {error}") from error
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def _read(self) -> list[Grant]:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"cannot read the keys file: {error}") from error
        return [
            self._grant(number, text)
            for number, line in enumerate(lines, start=1)
            if (text := line.partition("#")[0].strip())
        ]

    def _grant(self, number: int, text: str) -> Grant:
        try:
            grant = read_line(text)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._path}:{number}: {error}") from error
        if grant is None:
            raise ConfigurationError(
                f"{self._path}:{number} is no key; expected: project sha256:<64 hex digits> rights"
            )
        return grant


def hash_of(key: str) -> str:
    """The hash of a key, as the keys file keeps it."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key(project: str, rights: frozenset[Right] = frozenset({Right.WRITE})) -> tuple[str, str]:
    """Make a key.

    Returns:
        The key, to be shown once, and its line for the keys file.

    Raises:
        ConfigurationError: the project's name has characters that cannot stand in the file.
    """
    key = f"mt_{secrets.token_urlsafe(32)}"
    return key, line_of(Grant(project, rights, hash_of(key)))


def add_line(path: Path, line: str) -> None:
    """Add a key's line to a keys file, which is created for this user alone if it is missing.

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
    """Refuse to listen on an address where strangers could write.

    Raises:
        ConfigurationError: the host is not loopback, there are no keys, and the setting that
            permits this is off.
    """
    if config.keys_file or config.allow_insecure_bind or is_loopback(config.host):
        return
    raise ConfigurationError(
        f"refusing to listen on {config.host} without keys: anyone who reaches it could write. "
        "Set keys_file (MAST_TRACE_KEYS_FILE), or allow_insecure_bind to accept that"
    )


def is_loopback(host: str) -> bool:
    """Return whether the host is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
