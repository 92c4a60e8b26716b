"""A fresh, migrated store for every test: embedded, and the same through a ClickHouse address."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from endpoint_server import PASSWORD, WRITE_TOKEN, serve
from endpoint_sweep import OURS, THEIRS
from otlp_requests import two_runs
from stores import SERVER, Tables, copied_tables, new_store, server_address

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.clickhouse_http.confinement import Confinement
from mast_trace_collector.security import ProjectKeys, Right, new_key
from mast_trace_collector.storage import Store


class Engine:
    """The process's one engine: kept open from test to test, because opening costs half a second."""

    def __init__(self, folder):
        self.url = f"chdb://{folder}"
        self._folder = str(folder)
        self._open = None
        self._tables = None
        self._kept = ExitStack()

    def renew(self):
        """Have all tables, without what earlier tests stored."""
        if self._open is None:
            is_new = not Path(self._folder).exists()
            with copied_tables():
                self._open = self._kept.enter_context(Store.open(self.url))
            self._tables = Tables(self._open, made=is_new)
            # The objects that an endpoint creates for its readers are the same for every test.
            readers = Confinement.of(self._folder, self._open.database, {})
            self._kept.enter_context(readers)
        self._tables.renew()

    def close(self):
        """Let a test open a folder of its own."""
        self._kept.close()
        self._open = None


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """The folder of `embedded`; closed with the module, since other tests open other folders."""
    if SERVER:
        pytest.skip("about the embedded engine, while a server is tested")
    folder = tmp_path_factory.mktemp("engine")
    engine = Engine(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        # The engine keeps schemas that a client sends as text in its working directory.
        patch.chdir(folder)
        yield engine
    engine.close()


@pytest.fixture
def embedded(engine):
    """A store in the embedded engine, with all tables."""
    engine.renew()
    with Store.open(engine.url) as store:
        yield store


@pytest.fixture(scope="module")
def both(engine):
    """A run of each of two projects in the embedded engine, for the tests of a module that only read."""
    engine.renew()
    with Store.open(engine.url) as store:
        two_runs(store, projects=(OURS, THEIRS))
        yield store


@pytest.fixture(scope="module")
def of_key(both, tmp_path_factory):
    """host:port of an endpoint over the two projects, and a key that reads the first of them."""
    key, line = new_key(OURS, frozenset({Right.READ}))
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(line)
    keys = ProjectKeys(file)
    app = ClickHouseHTTP(both, password=PASSWORD, keys=keys, write_token=WRITE_TOKEN)
    with serve(app) as address:
        yield address, key
    app.close()


@pytest.fixture
def folder(engine, tmp_path):
    """A folder in which a test opens an engine itself."""
    engine.close()
    return tmp_path / "data"


@pytest.fixture
def endpoint(embedded):
    """host:port of the ClickHouse endpoint over the embedded store."""
    app = ClickHouseHTTP(embedded, password=PASSWORD, write_token=WRITE_TOKEN)
    with serve(app) as address:
        yield address
    app.close()


@pytest.fixture(scope="session")
def on_server(tmp_path_factory):
    """The database that tests on a server share, and its tables."""
    with new_store(tmp_path_factory.mktemp("server")) as opened:
        yield opened.database, Tables(opened, made=True)


@pytest.fixture(params=["server"] if SERVER else ["embedded", "http"])
def store(request):
    """The store that a test writes to and reads from, by both ways to ClickHouse.

    Where no server is named, the HTTP way goes through the endpoint that `mast-trace up` serves,
    with the same client that talks to a real server.
    """
    if request.param == "server":
        database, tables = request.getfixturevalue("on_server")
        tables.renew()
        with Store.open(server_address(), database=database) as store:
            yield store
        return
    if request.param == "embedded":
        yield request.getfixturevalue("embedded")
        return
    address = request.getfixturevalue("endpoint")
    with Store.open(f"http://tests:{WRITE_TOKEN}@{address}") as store:
        yield store


@pytest.fixture
def none_bad(store):
    """No span may be called bad; taken back, because tables are made anew only where they differ."""
    store.command("ALTER TABLE otel_traces ADD CONSTRAINT none_bad CHECK SpanName != 'bad'")
    yield
    store.command("ALTER TABLE otel_traces DROP CONSTRAINT none_bad")
