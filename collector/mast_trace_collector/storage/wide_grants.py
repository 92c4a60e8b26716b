"""Users of a ClickHouse server that are meant for some rows, and can read others.

A row policy shows that somebody meant to confine a user. Such a user reads everything through an
object that it may read and that no policy filters: a materialised view, a table that a later version
has brought, in a cluster all tables. Users without a policy are nobody's concern here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.declarations import DECLARED, LOCAL, READABLE, Rows
from mast_trace_collector.storage.grants import Access
from mast_trace_collector.storage.project_reader import SAFE_VERSIONS, policies_hold
from mast_trace_collector.storage.readers import SEATS, seat
from mast_trace_collector.storage.store import error_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage.store import Store

_ACCESS_DENIED = 497
_OBJECTS = """
    SELECT name, engine, match(create_table_query, 'SQL SECURITY (DEFINER|NONE)') AS by_definer
    FROM system.tables WHERE database = {database:String} AND NOT is_temporary ORDER BY name"""
_SEATS = {seat(number) for number in range(SEATS)}
"""Users of the embedded engine, whose statements the endpoint reads before."""
_PLAIN = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class WideUser:
    """A user that a row policy confines, and that reads beyond it.

    Attributes:
        name: of the user.
        storage: place of its definition on the server; `users_xml` is a file.
        objects: tables and views of which it can read every row.
        statements: SQL that takes the rights away, and grants what is filtered.
        reason: what lets it read them.
    """

    name: str
    storage: str
    objects: tuple[str, ...]
    statements: tuple[str, ...] = field(repr=False)
    reason: str = "no policy filters them"

    def __str__(self) -> str:
        where = f" (change it where it is defined, in {self.storage})" if self._in_a_file else ""
        return (
            f"user {self.name} is confined by a row policy, but reads every project through "
            f"{', '.join(self.objects)}: {self.reason}. Run as an administrator{where}:\n"
            + "\n".join(f"    {statement};" for statement in self.statements)
        )

    @property
    def _in_a_file(self) -> bool:
        return self.storage.startswith(("users_xml", "users.xml"))


def wide_users(store: Store) -> list[WideUser]:
    """Return the users of the server that a row policy confines and that read beyond it.

    Args:
        store: on a database with our tables, opened with the right to see users (SHOW ACCESS).

    Raises:
        StorageError: the account may not see users, or the database does not answer.
    """
    objects = store.query(_OBJECTS, {"database": store.database})
    access = Access.of(store)
    void = _void(store, objects)
    found = (_examine(user, access, objects, void) for user in access.users if user not in _SEATS)
    return [user for user in found if user]


def warnings_of(store: Store) -> Iterator[str]:
    """Yield each such user as text for people, or the reason why users could not be seen.

    Raises:
        StorageError: the database does not answer.
    """
    try:
        yield from map(str, wide_users(store))
    except StorageError as error:
        if error_code(error) != _ACCESS_DENIED:
            raise
        yield (
            "users of the database were not checked: this account may not see them. If a user was "
            "made for one project (project-reader.sql), GRANT SHOW ACCESS ON *.* to this account and "
            "run `mast-trace migrate` again"
        )


def _void(store: Store, objects: list[dict[str, Any]]) -> str:
    """Return the reason for which no row policy holds here; empty if they do."""
    if any(each["engine"] == "Distributed" for each in objects):
        return "in a cluster row policies do not hold"
    (row,) = store.query(f"SELECT version() AS version, {policies_hold()} AS hold")
    if row["hold"]:
        return ""
    return f"table functions of ClickHouse {row['version']} read past row policies (upgrade to {SAFE_VERSIONS})"


def _examine(
    user: str, access: Access, objects: list[dict[str, Any]], void: str
) -> WideUser | None:
    known = [each["name"] for each in objects]
    if not access.is_confined(user):
        return None
    open_ones = [each["name"] for each in objects if _is_open(each, user, access, void)]
    read = [name for name in open_ones if access.holders(user, [name])]
    if not read:
        return None
    kept = [] if void else [name for name in known if name in READABLE and name not in open_ones]
    remedy = _remedy(user, access.holders(user, read), kept, access.database)
    reason = void or WideUser.reason
    return WideUser(user, access.users[user], tuple(read), tuple(remedy), reason)


def _is_open(each: dict[str, Any], user: str, access: Access, void: str) -> bool:
    """Return whether everybody who may read an object reads rows of every project."""
    rows = DECLARED.get(each["name"].removesuffix(LOCAL), Rows.NONE)
    if rows is Rows.ALL:
        return False
    if void:
        return True
    if rows is Rows.OF_VIEW and not each["by_definer"]:
        return False
    return not access.is_filtered(user, each["name"])


def _remedy(user: str, holders: list[str], kept: list[str], database: str) -> Iterator[str]:
    database = _quoted(database)
    for holder in holders:
        if holder == user:
            yield f"REVOKE SELECT, SHOW ON {database}.* FROM {_quoted(user)}"
        else:
            yield f"REVOKE {_quoted(holder)} FROM {_quoted(user)}"
    for table in kept:
        yield f"GRANT SELECT ON {database}.{_quoted(table)} TO {_quoted(user)}"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
