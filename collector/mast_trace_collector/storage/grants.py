"""Grants, roles and row policies of a ClickHouse server, as they work on one database."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.store import Store

_USERS = "SELECT name, storage FROM system.users ORDER BY name"
# All columns: `is_wildcard` is new.
_GRANTS = "SELECT * FROM system.grants WHERE access_type IN ('SELECT', 'ALL')"
_ROLES = "SELECT user_name, role_name, granted_role_name FROM system.role_grants"
_POLICIES = """
    SELECT table, select_filter, is_restrictive, apply_to_all, apply_to_list, apply_to_except
    FROM system.row_policies WHERE database = {database:String} AND select_filter IS NOT NULL"""
_ALWAYS = {"1", "true"}
"""Filters that leave every row: the server adds them for users of a file that has filters for others."""


@dataclass(frozen=True)
class Access:
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
    def of(cls, store: Store) -> Access:
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
