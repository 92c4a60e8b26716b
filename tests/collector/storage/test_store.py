"""Opening, reading and writing a store."""

import contextlib
import errno
import gc
import os
import subprocess
import sys
import threading
import weakref
from datetime import datetime, timezone

import pytest
from stores import SERVER

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.address import parse_address
from mast_trace_collector.storage.store import error_code


def label(number, **fields):
    """A row of mast_human_labels."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc)
    return {"Project": "p", "TraceId": f"{number:032x}", "LabelledAt": at, **fields}


class TestAddress:
    """`Store.open` says what is wrong with an address before it connects."""

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("chdb://relative/path", "three slashes"),
            ("chdb:///", "three slashes"),
            ("postgres://host/db", "expected chdb:///absolute/path"),
            ("not an address", "expected chdb:///absolute/path"),
            ("clickhouse://host:9000/db", "native protocol"),
            ("http://host:8123/bad-name", "names no usable database"),
            ("http://host:8123/db?secure=true", "none of a store"),
            ("http://host:8123/db?max_threads=4", "none of a store"),
            ("http://host:8123/db?interface=chdb", "none of a store"),
            ("http://host:8123/db?token_provider=x", "none of a store"),
            ("http://host:8123/db?=x", "none of a store"),
            ("https://host/db?verify=maybe", "verify in .* must be true, false or proxy"),
            ("https://host/db?verify=", "true, false or proxy"),
            ("https://host/db?tls_mode=none", "strict, mutual or proxy"),
            ("http://host:8123/db?connect_timeout=0", "at least 1"),
            ("http://host:8123/db?connect_timeout=-1", "at least 1"),
            ("http://host:8123/db?send_receive_timeout=1e9", "at least 1"),
            ("http://host:8123/db?send_receive_timeout=99999999999999999999", "at least 1"),
            ("http://host:8123/db?query_limit=-5", "nine digits"),
            ("http://host:8123/db?query_retries=\u00b2", "nine digits"),
            ("http://host:8123/db?server_host_name=%0d%0aX-Odd:+1", "line breaks"),
            ("http://host:8123/db?form_encode_query_params=x", "true or false"),
        ],
    )
    def test_unusable_addresses_are_explained(self, url, message):
        with pytest.raises(ConfigurationError, match=message):
            Store.open(url)

    @pytest.mark.parametrize(
        "url",
        [
            "http://host:8123/db;password=secret",
            "http://host:8123/?database=db;password=secret",
            "http://host:8123/db?passwd=secret",
        ],
    )
    def test_what_cannot_be_a_name_is_not_repeated_where_it_may_be_a_secret(self, url):
        with pytest.raises(ConfigurationError) as refused:
            Store.open(url)
        assert "secret" not in str(refused.value)

    def test_a_database_among_the_parameters_is_not_opened_before_it_is_made(self):
        address = parse_address("http://host:8123/?database=mine&verify=false")
        assert (address.database, address.dsn) == ("mine", "http://host:8123?verify=false")

    def test_the_password_is_never_shown(self):
        store = Store.open("https://me:secret@host:8443/db", connect=False)
        assert (store.url, store.database) == ("https://me:***@host:8443/db", "db")

    def test_the_password_is_not_in_the_error_of_a_server_that_is_away(self):
        with pytest.raises(StorageError) as caught:
            Store.open("http://me:secret@127.0.0.1:1/db", connect_timeout=0.5)
        assert "does not answer" in str(caught.value)
        assert "secret" not in str(caught.value)


@pytest.mark.skipif(bool(SERVER), reason="about the embedded engine, while a server is tested")
class TestEmbedded:
    """Peculiarities of the embedded engine."""

    def test_a_folder_that_another_process_uses_is_refused_with_its_number(self, embedded):
        program = (
            "from mast_trace_collector.storage import Store\n"
            f"Store.open('chdb://{embedded.embedded_path}')"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert "another `mast-trace up`" in last
        assert "is using this folder" in last
        # The engine would write its own words before ours.
        assert "DB::Exception" not in done.stderr

    @pytest.mark.parametrize("runs_out", [False, True])
    def test_a_folder_of_temporary_files_that_cannot_be_used_is_named(self, tmp_path, runs_out):
        full = "embedded.tempfile.TemporaryDirectory = full\n" if runs_out else ""
        program = (
            "from mast_trace_collector.storage import Store, embedded\n"
            f"def full(**_): raise OSError({errno.ENOSPC}, 'No space left on device')\n"
            f"{full}Store.open('chdb://{tmp_path}/store')"
        )
        # Nobody may make a folder there, not even root.
        given = {} if runs_out else {"env": {**os.environ, "TMPDIR": "/proc"}}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, **given
        )
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("mast_trace.exceptions.StorageError")
        assert "the folder for temporary files; name another one by TMPDIR" in last
        assert ("No space left" in last, "/proc," in last) == (runs_out, not runs_out)

    def test_what_was_written_in_one_zone_is_found_in_another(self, tmp_path):
        """Partitions are days, and conditions on times leave out those that cannot match; programs keep their zone."""
        program = (
            "import os, sys\n"
            "from mast_trace_collector.storage import Store\n"
            f"with Store.open('chdb://{tmp_path}/store') as store:\n"
            "    if sys.argv[1:]:\n"
            "        store.command('CREATE DATABASE mast_trace', use_database=False)\n"
            "        store.command('CREATE TABLE hours (At DateTime64(9)) ENGINE = MergeTree '\n"
            "                      'PARTITION BY toDate(At) ORDER BY At')\n"
            "        store.command('INSERT INTO hours SELECT toDateTime64(3600 * number, 9) FROM numbers(48)')\n"
            "    found = 'SELECT count() FROM hours WHERE At = toDateTime64({0}, 9)'\n"
            "    hours = [store.command(found.format(3600 * hour)) for hour in range(48)]\n"
            "    print(store.command('SELECT timezone()'), sum(hours), os.environ['TZ'])"
        )
        for zone, *write in (("Asia/Tokyo", "write"), ("America/Los_Angeles",)):
            done = subprocess.run(
                [sys.executable, "-c", program, *write],
                env={**os.environ, "TZ": zone},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout.split() == ["UTC", "48", zone], done.stderr

    def test_a_killed_process_leaves_nothing_among_the_temporary_files(self, tmp_path):
        program = (
            "import os, signal\n"
            "from mast_trace_collector.storage import Store, migrate\n"
            f"migrate(Store.open('chdb://{tmp_path}/data'))\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TMPDIR": str(temporary)},
            check=False,
        )
        assert (tmp_path / "data" / "store").exists()
        assert list(temporary.iterdir()) == []

    def test_settings_that_are_given_stand_where_the_store_has_some_too(self, embedded, engine):
        asked = "SELECT getSetting('compile_expressions') AS compiles"
        assert not embedded.query(asked)[0]["compiles"]
        with Store.open(engine.url, settings={"compile_expressions": 1}) as store:
            assert store.query(asked)[0]["compiles"]

    def test_a_second_folder_in_one_process_is_refused(self, embedded, tmp_path):
        with pytest.raises(StorageError, match="one folder per process"):
            Store.open(f"chdb://{tmp_path}/other")

    def test_the_memory_limit_reaches_the_engine_in_a_folder_with_an_ampersand(self, folder):
        (folder.parent / "a").mkdir()
        with Store.open(
            f"chdb://{folder.parent}/a&b?database=default", memory_limit=2**29
        ) as store:
            rows = store.query(
                "SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'"
            )
        assert rows == [{"value": str(2**29)}]


def test_rows_come_back_as_they_were_inserted(store):
    row = label(1, Annotator="ann", Modes=["1.3", "2.6"], DecisiveStep=None, Note="a'b\n\0 ü 🙂")
    assert store.insert("mast_human_labels", [row]) == 1
    assert store.query(f"SELECT {', '.join(row)} FROM mast_human_labels") == [row]


def test_lone_surrogates_are_replaced_not_refused(store):
    for note in ("before \ud800 after", "sent again \ud800"):
        store.insert("mast_human_labels", [label(1, Note=note, Modes=["\udfff"])], token="batch")
    (row,) = store.query("SELECT Note, Modes FROM mast_human_labels")
    assert row == {"Note": "before ? after", "Modes": ["?"]}


def test_what_was_inserted_is_let_go_at_once(store):
    """Garbage is collected rarely where little is made: columns of many megabytes would add up."""

    class Column(list):
        """A list that can be watched."""

    column = Column(f"{number:032x}" for number in range(9))
    watched = weakref.ref(column)
    gc.disable()
    try:
        store.insert_columns("mast_human_labels", ["TraceId"], [column])
        del column
        assert watched() is None
    finally:
        gc.enable()


def test_parameters_are_bound_by_the_server(store):
    values = ["it's", 'a "b" \\ c', "semi; -- colon", "🙂\n\t"]
    (row,) = store.query(
        "SELECT {values:Array(String)} AS v, {n:UInt8} AS n", {"values": values, "n": 7}
    )
    assert row == {"v": values, "n": 7}


def test_an_empty_result_still_has_columns(store):
    sql = "SELECT TraceId, JudgedAt FROM mast_verdicts WHERE TraceId = {id:String}"
    assert store.query(sql, {"id": "x"}) == []
    assert store.describe(sql, {"id": "x"}) == [
        ("TraceId", "String"),
        ("JudgedAt", "DateTime64(3)"),
    ]


def test_rows_with_different_keys_are_refused(store):
    with pytest.raises(ValueError, match="same keys"):
        store.insert("mast_human_labels", [label(1), label(2, Note="x")])


def test_the_same_token_stores_nothing_the_second_time(store):
    store.insert("mast_human_labels", [label(1)], token="batch-1")
    store.insert("mast_human_labels", [label(2)], token="batch-1")
    store.insert("mast_human_labels", [label(3)], token="batch-2")
    rows = store.query("SELECT TraceId FROM mast_human_labels ORDER BY TraceId")
    assert [int(row["TraceId"], 16) for row in rows] == [1, 3]


def test_a_failing_statement_says_what_to_do(store):
    with pytest.raises(StorageError, match="mast-trace migrate") as caught:
        store.query("SELECT * FROM no_such_table")
    assert error_code(caught.value) == 60


def test_threads_read_and_write_at_once(store):
    problems = []

    def work(first):
        try:
            for number in range(first, first + 5):
                store.insert("mast_human_labels", [label(number)])
                store.query("SELECT count() FROM mast_human_labels")
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(100 * index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert store.query("SELECT uniqExact(TraceId) AS n FROM mast_human_labels") == [{"n": 30}]


def test_each_connection_is_closed_once_nobody_needs_it(folder, monkeypatch):
    """Those that nobody has with the store, and lent, broken and unprepared ones as they come back."""
    closed = []

    def seen(client):
        monkeypatch.setattr(client, "close", lambda: closed.append(client))
        return client

    def unprepared(client):
        raise StorageError(seen(client).database)

    store = Store.open(f"chdb://{folder}")
    clients = store._clients
    with contextlib.suppress(StorageError), clients.prepared(unprepared).borrow():
        pass
    with contextlib.suppress(ZeroDivisionError), clients.borrow() as broken:
        monkeypatch.setattr(seen(broken), "raw_query", lambda *_, **__: 1 / 0)
        raise ZeroDivisionError
    assert (len(closed), closed[1:]) == (2, [broken])
    with clients.borrow() as lent:
        with clients.borrow() as idle:
            assert broken not in (seen(lent), seen(idle))
        store.close()
        assert closed[2:] == [idle]
    assert closed[2:] == [idle, lent]


def test_a_closed_store_says_so(folder):
    store = Store.open(f"chdb://{folder}")
    store.close()
    store.close()
    with pytest.raises(StorageError, match="has been closed"):
        store.query("SELECT 1")
