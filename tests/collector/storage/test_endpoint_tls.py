"""A store's address that begins with https is spoken to by TLS, whatever its port."""

import socket
import threading
from contextlib import contextmanager

import pytest
from certificates import self_signed
from endpoint_server import PASSWORD, WRITE_TOKEN, serve

from mast_trace.exceptions import StorageError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store

TLS_HANDSHAKE = 0x16


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secured(embedded, certificate):
    """host:port of the ClickHouse endpoint behind a certificate of its own."""
    cert, key = map(str, certificate)
    app = ClickHouseHTTP(embedded, password=PASSWORD, write_token=WRITE_TOKEN)
    with serve(app, ssl_certfile=cert, ssl_keyfile=key) as address:
        yield address
    app.close()


@pytest.mark.parametrize("scheme", ["https", "clickhouses"])
def test_a_trusted_server_is_read(secured, certificate, scheme):
    with Store.open(f"{scheme}://tests:{WRITE_TOKEN}@{secured}?ca_cert={certificate[0]}") as store:
        assert store.query("SELECT 1 AS n") == [{"n": 1}]


@pytest.mark.parametrize("options", ["", "?verify=true", "?verify=1", "?connect_timeout=5"])
def test_a_certificate_that_nobody_trusts_is_refused(secured, options):
    url = f"https://tests:{WRITE_TOKEN}@{secured}{options}"
    with pytest.raises(StorageError, match=r"is not trusted: .*ca_cert"):
        Store.open(url)


def test_the_check_is_turned_off_by_its_name_alone(secured):
    with Store.open(f"https://tests:{WRITE_TOKEN}@{secured}?verify=false") as store:
        assert store.query("SELECT 1 AS n") == [{"n": 1}]


@pytest.mark.parametrize("option", ["ca_cert", "client_cert"])
@pytest.mark.parametrize(
    ("content", "advice"), [(None, "is not there"), ("no certificate", "is no certificate")]
)
def test_a_file_that_is_no_certificate_is_named(secured, tmp_path, option, content, advice):
    file = tmp_path / "odd.pem"
    if content is not None:
        file.write_text(content)
    url = f"https://tests:{WRITE_TOKEN}@{secured}?verify={option == 'ca_cert'}&{option}={file}"
    with pytest.raises(StorageError, match=rf"odd\.pem.*{advice}"):
        Store.open(url)


def test_a_server_without_tls_is_told_from_one_that_is_away(endpoint):
    with pytest.raises(StorageError, match="speaks no TLS"):
        Store.open(f"https://{endpoint}")
    away = r"127\.7\.7\.7 does not answer: .*\(127\.7\.7\.7:8443: "
    with pytest.raises(StorageError, match=away):
        Store.open("https://127.7.7.7")


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:the-password@{place}/traces",
        "clickhouses://ada:the-password@{place}/traces",
        "HTTPS://ada:the-password@{place}/traces",
        "https://{place}/traces?user=ada&password=the-password",
        "https://{place}/traces?verify=false&access_token=the-password",
    ],
)
def test_no_password_leaves_in_clear(url):
    """A server without TLS receives nothing but a greeting in TLS."""
    with listening() as (place, heard), pytest.raises(StorageError):
        Store.open(url.format(place=place))
    assert heard
    for greeting in heard:
        assert greeting[0] == TLS_HANDSHAKE
        assert b"the-password" not in greeting


@contextmanager
def listening():
    """Take connections and close them after their first bytes, which are kept."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536))

        thread = threading.Thread(target=take)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
