"""Grants, roles and row policies of a ClickHouse server, as they work on one database.

Users of a ClickHouse server that are meant for some rows, and can read others.

A row policy shows that somebody meant to confine a user. Such a user reads everything through an
object that it may read and that no policy filters: a materialised view, a table that a later version
has brought, in a cluster all tables. Users without a policy are nobody's concern here.

The statements that make a user of one project on a ClickHouse server.

They are written from the declarations of the tables (`declarations`). Everything is closed twice:
nothing is granted but what is declared, and row policies on whole databases leave no row of what has
no policy of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.address import DEFAULT_DATABASE, identifier
from mast_trace_collector.storage.readers import (
    DECLARED,
    LOCAL,
    READABLE,
    SEATS,
    Rows,
    condition_of,
    seat,
)
from mast_trace_collector.storage.span_sql import literal
from mast_trace_collector.storage.store import Store, error_code

OPEN_SYSTEM_TABLES: Final = (
    "aggregate_function_combinators",
    "collations",
    "columns",
    "current_roles",
    "data_type_families",
    "database_engines",
    "databases",
    "enabled_roles",
    "formats",
    "functions",
    "one",
    "settings",
    "table_engines",
    "table_functions",
    "tables",
    "time_zones",
)
"""Tables of the server that clients ask: they list what the user may see, and no statement or error."""

_HEAD: Final = """\
-- A user that sees one project, on one ClickHouse server. Run by an administrator with access management, with the
-- project's name and a password put in; run `mast-trace migrate` before. It may be run again: a user that an earlier
-- version made loses what was granted too widely. Written from what the tables declare.
--
-- The first two statements fail, and no user is made, where row policies do not hold. In a cluster they cannot filter a
-- Distributed table, and those on the tables under it do not hold on other shards, which are asked as another user.
-- Earlier versions of ClickHouse have table functions (loop, mergeTreeIndex, mergeTreeTextIndex) that read past
-- them. There, give readers a key: the web view, its MCP endpoint and its downloads show a project alone.
--
-- Users without a policy, such as the collector's, go on to see everything, unless the server was told otherwise
-- (users_without_row_policies_can_read_rows). ClickHouse tells the user the sizes of the tables that it may read, and
-- whether a key that it guesses is there (EXPLAIN ESTIMATE). It runs functions of LowCardinality columns on the dictionary
-- of a whole part, whatever a policy says: a function that fails for some values tells a determined reader of other
-- projects' names of services, agents and attributes. Give such a user to colleagues; to strangers, the
-- web view with a key.
"""
_CLUSTER: Final = """\
SELECT throwIf(count() > 0, 'the tables are spread over a cluster: give readers keys of the web view')
FROM system.tables WHERE database = {database} AND engine = 'Distributed';
"""
_VERSION: Final = """\
SELECT throwIf(NOT ({hold}), 'row policies do not hold in this version: upgrade to {safe}');
"""
SAFE_VERSIONS: Final = "ClickHouse 26.9 or newer, or 26.3.33.101 or a later 26.3"
"""The versions in which no table function is known that reads past row policies."""

_USERS = "SELECT name, storage FROM system.users ORDER BY name"
# All columns: `is_wildcard` is new.
_GRANTS = "SELECT * FROM system.grants WHERE access_type IN ('SELECT', 'ALL')"
_ROLES = "SELECT user_name, role_name, granted_role_name FROM system.role_grants"
_POLICIES = """
    SELECT table, select_filter, is_restrictive, apply_to_all, apply_to_list, apply_to_except
    FROM system.row_policies WHERE database = {database:String} AND select_filter IS NOT NULL"""
_ALWAYS = {"1", "true"}
"""Filters that leave every row: the server adds them for users of a file that has filters for others."""
_ACCESS_DENIED = 497
_OBJECTS = """
    SELECT name, engine, match(create_table_query, 'SQL SECURITY (DEFINER|NONE)') AS by_definer
    FROM system.tables WHERE database = {database:String} AND NOT is_temporary ORDER BY name"""
_SEATS = {seat(number) for number in range(SEATS)}
"""Users of the embedded engine, whose statements the endpoint reads before."""
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def policies_hold(version: str = "version()") -> str:
    """Return SQL that tells whether row policies hold in a version of ClickHouse.

    Source: pull requests 97682, 115304 and 119032 of ClickHouse, and the versions that have them.

    Args:
        version: SQL of the version's text.
    """
    numbers = f"arrayMap(x -> toUInt32OrZero(x), splitByChar('.', {version}))"
    return f"{numbers} >= [26, 9] OR ({numbers} >= [26, 3, 33, 101] AND {numbers} < [26, 4])"


def project_reader(
    user: str = "team_a", project: str = "team-a", database: str = DEFAULT_DATABASE
) -> str:
    """Return the SQL, with comments, for a user that reads the rows of ``project`` alone.

    Raises:
        ConfigurationError: ``user`` or ``database`` is no plain name.
    """
    user, database = identifier(user), identifier(database)
    tables: dict[str, list[str]] = {}
    for table, rows in READABLE.items():
        # A view has the column, too: its policy holds even where it runs with its definer's rights.
        own = Rows.OF_PROJECT if rows is Rows.OF_VIEW else rows
        condition = condition_of(own, database, literal(project)) or "1"
        tables.setdefault(condition, []).append(f"{database}.{table}")
    open_tables = [f"system.{table}" for table in OPEN_SYSTEM_TABLES]
    statements = [
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY 'change me' SETTINGS PROFILE 'reader';\n",
        "-- Nothing of what has no policy of its own, whatever is granted.",
        _policy(user, [f"{database}.*", "system.*"], "0"),
        *(_policy(user, names, condition) for condition, names in tables.items()),
        _policy(user, open_tables, "1"),
        f"\nREVOKE SELECT, SHOW ON {database}.* FROM {user};",
        *(f"GRANT SELECT ON {database}.{table} TO {user};" for table in READABLE),
    ]
    guard = _CLUSTER.format(database=literal(database))
    guard += _VERSION.format(hold=policies_hold(), safe=SAFE_VERSIONS)
    return f"{_HEAD}{guard}\n" + "\n".join(statements) + "\n"


def _policy(user: str, names: list[str], condition: str) -> str:
    on = ",\n    ".join(names)
    return f"CREATE ROW POLICY OR REPLACE of_{user} ON\n    {on}\n    USING {condition} TO {user};"


@dataclass(frozen=True)
class DatabaseAccess:
    """Rights to read one database, and the policies on its tables.

    Attributes:
        database: in which they work.
        users: the place of each user's definition, by name.
        grants: rows of `system.grants` about reading.
        roles: roles that a user or role was granted, by its name.
        policies: rows of `system.row_policies` about the database.
    """

    database: str
    users: Mapping[str, str]
    grants: tuple[dict[str, Any], ...]
    roles: Mapping[str, list[str]]
    policies: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, store: Store) -> DatabaseAccess:
        """Read the server's users as they are now.

        Raises:
            StorageError: the store's account may not see users.
        """
        roles: dict[str, list[str]] = defaultdict(list)
        for row in store.query(_ROLES):
            roles[row["user_name"] or row["role_name"]].append(row["granted_role_name"])
        return cls(
            store.database,
            {row["name"]: row["storage"] for row in store.query(_USERS)},
            tuple(store.query(_GRANTS)),
            roles,
            tuple(store.query(_POLICIES, {"database": store.database})),
        )

    def is_confined(self, user: str) -> bool:
        """Return whether somebody has made a policy that leaves ``user`` some rows of a table alone."""
        names = {user, *self._roles_of(user)}
        return any(_narrows(policy) and _applies(policy, names) for policy in self.policies)

    def is_filtered(self, user: str, table: str) -> bool:
        """Return whether row policies leave ``user`` some rows of ``table`` alone.

        Permissive policies are combined by OR, so that one of them may open the table again.
        """
        names = {user, *self._roles_of(user)}
        on = [p for p in self.policies if p["table"] in {"", table} and _applies(p, names)]
        permissive = [_narrows(policy) for policy in on if not policy["is_restrictive"]]
        restrictive = [_narrows(policy) for policy in on if policy["is_restrictive"]]
        return any(restrictive) or (bool(permissive) and all(permissive))

    def holders(self, user: str, tables: list[str]) -> list[str]:
        """Return ``user`` and those of its roles through which it may read one of ``tables``."""
        ways = {user: [user], **{r: [r, *self._roles_of(r)] for r in self.roles.get(user, ())}}
        return [
            way
            for way, names in ways.items()
            if any(self._holds(name, table) for name in names for table in tables)
        ]

    def _roles_of(self, name: str) -> list[str]:
        """Return the roles of a user or role, and theirs."""
        found: list[str] = []
        waiting = list(self.roles.get(name, ()))
        while waiting:
            role = waiting.pop()
            if role not in found:
                found.append(role)
                waiting += self.roles.get(role, ())
        return found

    def _holds(self, name: str, table: str) -> bool:
        on = [
            grant
            for grant in self.grants
            if name == (grant["user_name"] or grant["role_name"]) and self._covers(grant, table)
        ]
        if any(grant["column"] and not grant["is_partial_revoke"] for grant in on):
            return True
        whole = [grant for grant in on if not grant["column"]]
        # A revocation on a table takes from a grant on the database, and a grant on a table adds to it again.
        return bool(whole) and not max(whole, key=_narrowness)["is_partial_revoke"]

    def _covers(self, grant: dict[str, Any], table: str) -> bool:
        # A server of before `is_wildcard` does not tell prefixes from names: both are taken for prefixes.
        is_prefix = bool(grant.get("is_wildcard", True))
        database, name = grant["database"], grant["table"]
        if name is None:
            return database is None or _matches(database, self.database, is_prefix)
        return bool(database == self.database) and _matches(name, table, is_prefix)


def _matches(given: str, name: str, is_prefix: bool) -> bool:
    return given == name or (is_prefix and name.startswith(given))


def _narrowness(grant: dict[str, Any]) -> tuple[int, int]:
    return len(grant["database"] or ""), len(grant["table"] or "")


def _narrows(policy: dict[str, Any]) -> bool:
    return policy["select_filter"] not in _ALWAYS


def _applies(policy: dict[str, Any], names: set[str]) -> bool:
    if policy["apply_to_all"]:
        return not names & set(policy["apply_to_except"])
    return bool(names & set(policy["apply_to_list"]))


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
    access = DatabaseAccess.of(store)
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
    user: str, access: DatabaseAccess, objects: list[dict[str, Any]], void: str
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


def _is_open(each: dict[str, Any], user: str, access: DatabaseAccess, void: str) -> bool:
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
