"""ProcessSettings come from arguments, environment, file and defaults, and say which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig

if TYPE_CHECKING:
    from pathlib import Path


def setting(config: CollectorConfig, name: str) -> tuple[str, str]:
    (found,) = [entry for entry in config.effective() if entry.name == name]
    return found.value, found.origin


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mast-trace.toml"
    path.write_text(
        "[collector]\nhttp_port = 1000\ngrpc_port = 1001\nmax_nesting = 7\n[judge]\nmodel = 'x'\n"
    )
    return path


class TestPrecedence:
    """The nearest source wins."""

    def test_the_nearest_source_wins(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MAST_TRACE_GRPC_PORT", "2001")
        monkeypatch.setenv("MAST_TRACE_HTTP_PORT", "2000")
        config = CollectorConfig.load(file, http_port=3000)
        assert setting(config, "http_port") == ("3000", "argument")
        assert setting(config, "grpc_port") == ("2001", "MAST_TRACE_GRPC_PORT")
        assert setting(config, "max_nesting") == ("7", str(file))
        assert setting(config, "host") == ("127.0.0.1", "default")

    def test_an_argument_that_is_none_was_not_given(self, file: Path) -> None:
        assert CollectorConfig.load(file, http_port=None).http_port == 1000

    def test_settings_of_others_are_left(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file and the variables also hold what the judge reads."""
        monkeypatch.setenv("MAST_TRACE_JUDGE_MODEL", "some-model")
        assert CollectorConfig.load(file).http_port == 1000

    def test_an_empty_variable_was_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MAST_TRACE_HTTP_PORT", "")
        assert setting(CollectorConfig.load(), "http_port") == ("4318", "default")


class TestErrors:
    """The error names the unusable setting, with the place to correct it."""

    def test_an_unknown_setting_is_named_with_the_likeliest_one(self, tmp_path: Path) -> None:
        path = tmp_path / "c.toml"
        path.write_text("[collector]\nhtpp_port = 1\n")
        with pytest.raises(ConfigurationError, match="htpp_port; did you mean http_port"):
            CollectorConfig.load(path)

    def test_a_bad_value_is_placed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "c.toml"
        path.write_text("[collector]\nhttp_port = 'many'\n")
        monkeypatch.setenv("MAST_TRACE_GRPC_PORT", "-1")
        with pytest.raises(ConfigurationError) as error:
            CollectorConfig.load(path)
        assert f"{path}: http_port: " in str(error.value)
        assert "grpc_port (MAST_TRACE_GRPC_PORT): " in str(error.value)

    def test_a_file_that_is_no_toml(self, tmp_path: Path) -> None:
        path = tmp_path / "c.toml"
        path.write_text("[collector")
        with pytest.raises(ConfigurationError, match="TOML"):
            CollectorConfig.load(path)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"none\.toml"):
            CollectorConfig.load(tmp_path / "none.toml")

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"tls_cert_file": "cert.pem"}, "tls_key_file"),
            ({"tls_key_file": "key.pem"}, "tls_key_file"),
            ({"max_body_bytes": 1001, "max_inflight_bytes": 1000}, "max_inflight_bytes"),
        ],
    )
    def test_settings_that_do_not_go_together(self, given: dict[str, Any], named: str) -> None:
        with pytest.raises(ConfigurationError, match=named):
            CollectorConfig.load(**given)


class TestSecrets:
    """Printed settings hold no secrets."""

    def test_a_password_is_not_shown(self) -> None:
        config = CollectorConfig.load(database_url="http://me:geheim@db:8123/spans")
        assert setting(config, "database_url") == ("http://me:***@db:8123/spans", "argument")
        assert config.store_url == "http://me:geheim@db:8123/spans"

    def test_a_bad_value_is_not_repeated(self) -> None:
        with pytest.raises(ConfigurationError) as error:
            CollectorConfig.load(max_nesting="geheim")
        assert "geheim" not in str(error.value)


@pytest.mark.parametrize(("data", "parent"), [("/data", "/data"), ("", "/home/me/.local/share")])
def test_the_folder_of_data_is_where_the_user_keeps_them(
    data: str, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", data)
    monkeypatch.setenv("HOME", "/home/me")
    assert CollectorConfig().data_dir.as_posix() == f"{parent}/mast-trace"


def test_the_embedded_database_is_the_default(tmp_path: Path) -> None:
    assert CollectorConfig(data_dir=tmp_path).store_url == f"chdb://{tmp_path}/clickhouse"
