"""Users of a ClickHouse server on the embedded engine, made from the SQL that makes them there.

The engine has no CREATE USER, CREATE ROW POLICY or GRANT: it reads users from a file at its start. So the
statements are rewritten as that file, and the engine applies the same grants and row filters. A
user reads through a view that runs with the definer's rights.
"""

import re
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr

import pytest

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import SchemaOptions, Store, embedded, migrate, render
from mast_trace_collector.storage.store import error_code

SHARD = "<shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>"
CLUSTERED = SchemaOptions(cluster="main", distributed=True)
_PLAIN_USER = """<no_password/><networks><ip>::/0</ip></networks>
    <profile>default</profile><quota>default</quota>"""
_FILE = """<clickhouse><profiles><default/><reader><readonly>1</readonly></reader></profiles>
<quotas><default/></quotas><users>
<default>{plain}<access_management>{manages}</access_management>
<databases>{filters}</databases></default>{users}
</users>
<roles><staff><grants><query>GRANT SELECT ON mast_trace.*</query></grants></staff></roles></clickhouse>"""
_USER = "<{name}>{plain}<grants>{grants}</grants><databases>{filters}</databases></{name}>"
_SHARDED = re.compile(r"Distributed\('main', 'mast_trace', '(\w+)', (.*)\)$", re.DOTALL)
_POLICY = re.compile(
    r"CREATE ROW POLICY (?:IF NOT EXISTS|OR REPLACE) \S+ ON\s+(.*?)\s+USING (.*) TO (\S+)$",
    re.DOTALL,
)


def statements(sql):
    """The statements of a file, without comments."""
    text = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return [part.strip() for part in re.split(r";(?:\n|$)", text) if part.strip()]


def users_file(*files, manages=True, filters=""):
    """The engine's users file, with the users that the SQL of each file makes anew; ``filters``: the account's own."""
    users = "".join(map(_user, files))
    return _FILE.format(plain=_PLAIN_USER, users=users, manages=int(manages), filters=filters)


def _user(sql):
    made, granted, filters = [], [], {}
    for statement in statements(sql):
        if name := re.match(r"CREATE USER IF NOT EXISTS (\S+)", statement):
            made.append(name[1])
        elif grant := re.match(r"(GRANT .*) TO (\S+)$", statement, re.DOTALL):
            assert [grant[2]] == made
            granted.append(grant[1])
        elif policy := _POLICY.match(statement):
            assert [policy[3]] == made
            for name in re.split(r",\s*", policy[1]):
                database, _, table = name.partition(".")
                filters.setdefault(database, {})[table] = policy[2]
        else:
            assert re.match("SELECT throwIf|REVOKE", statement), statement
    return _USER.format(
        name=made[0],
        plain=_PLAIN_USER,
        grants="".join(f"<query>{escape(grant)}</query>" for grant in granted),
        filters="".join(f"<{name}>{_filters(of)}</{name}>" for name, of in filters.items()),
    )


def _filters(tables):
    # A filter of a whole database is one of a table without a name.
    named = {"" if table == "*" else table: condition for table, condition in tables.items()}
    return "".join(
        f"<table name={quoteattr(table)}><filter>{escape(condition)}</filter></table>"
        for table, condition in named.items()
    )


def _shares(made, shards):
    """Filters of the local tables by the number of the shard that asks; 0 is a query of the table itself."""
    keys = dict(match.groups() for sql in made if (match := _SHARDED.search(sql)))
    return _filters(
        {table: f"shardNum() IN (0, 1 + ({key}) % {shards})" for table, key in keys.items()}
    )


@contextmanager
def store_with_users(folder, *files, shards=0, manages=True):
    """A store with all tables and the users of the files; Distributed tables over ``shards`` of this process.

    All shards read the same local tables, and a row filter shows each those rows alone that the sharding key
    gives it. ``manages``: whether the store's own account may see users.
    """
    made = [sql.replace("ON CLUSTER main", "") for sql in render(CLUSTERED)] if shards else []
    with pytest.MonkeyPatch.context() as patch:
        if files or shards > 1:
            split = f"<mast_trace>{_shares(made, shards)}</mast_trace>" if shards > 1 else ""
            users = users_file(*files, manages=manages, filters=split)
            patch.setattr(embedded, "users_file", lambda _: users)
        if shards:
            cluster = (
                "<clickhouse><tcp_port>9000</tcp_port>"
                f"<remote_servers><main>{SHARD * shards}</main></remote_servers>"
            )
            config = embedded._CONFIG.replace("<clickhouse>", cluster)
            patch.setattr(embedded, "_CONFIG", config)
        # A database that is named gets no copy of other tests' tables.
        with Store.open(f"chdb://{folder}", database="mast_trace") as store:
            if shards:
                for statement in made:
                    store.command(statement, use_database=False)
            else:
                migrate(store)
            yield store


def read_as(store, user, sql):
    """The answer as text, or the engine's error code, when ``user`` asks."""
    view = f"CREATE OR REPLACE VIEW default.seen DEFINER = {user} SQL SECURITY DEFINER AS {sql}"
    try:
        store.command(view, use_database=False)
        return str(store.query("SELECT * FROM default.seen"))
    except StorageError as error:
        if (code := error_code(error)) is None:
            raise
        return code
