"""The settings of `instrument()`: from its arguments, OpenTelemetry's variables, or defaults."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Generic, TypeVar

from opentelemetry.util.re import parse_env_headers

from mast_trace import running_up
from mast_trace.content import Capture, ContentPolicy
from mast_trace.content_settings import (
    CAPTURE_VARIABLE,
    capture_from_environment,
    limit_from_environment,
)
from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import masked, parse_url

T = TypeVar("T")

DISABLED_VARIABLE = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
_DEFAULT_ENDPOINTS = {
    "http/protobuf": "http://127.0.0.1:4318",
    "grpc": "http://127.0.0.1:4317",
}
_TRACES_PATH = "/v1/traces"
_COMPRESSIONS = ("none", "gzip", "deflate")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """A value with its origin: ``argument``, the name of a variable, or ``default``."""

    value: T
    origin: str = "default"


@dataclass(frozen=True)
class SDKSettings:
    """All settings of the SDK, resolved."""

    disabled: Setting[bool]
    endpoint: Setting[str]
    protocol: Setting[str]
    headers: Setting[Mapping[str, str]] = field(repr=False)
    timeout: Setting[float]
    compression: Setting[str]
    certificate: Setting[str]
    client_certificate: Setting[str]
    client_key: Setting[str]
    service_name: Setting[str]
    capture_content: Setting[Capture]
    redact: Setting[Callable[[str], str] | None]
    content_limit: Setting[int]
    disabled_instrumentations: Setting[tuple[str, ...]]
    flush_on_sigterm: Setting[bool]
    carry_runs: Setting[bool]

    @property
    def content(self) -> ContentPolicy:
        """The policy that decides how much of the texts is recorded."""
        return ContentPolicy(
            self.capture_content.value, self.redact.value, self.content_limit.value
        )

    def conflicts(self, earlier: SDKSettings) -> tuple[str, ...]:
        """Return the names of settings that were given as arguments here and differ from ``earlier``."""
        return tuple(
            each.name
            for each in fields(self)
            if getattr(self, each.name).origin == "argument"
            and getattr(self, each.name).value != getattr(earlier, each.name).value
        )

    @classmethod
    def resolve(
        cls,
        *,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        service_name: str | None = None,
        capture_content: Capture | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> SDKSettings:
        """Look each setting up: argument, then variable, then default.

        Raises:
            ConfigurationError: a value cannot be used; the text names it and the accepted ones.
        """
        protocol = _protocol()
        return cls(
            disabled=_flag("OTEL_SDK_DISABLED"),
            endpoint=_endpoint(endpoint, protocol.value),
            protocol=protocol,
            headers=_headers(headers),
            timeout=_timeout(),
            compression=_compression(),
            certificate=_exporter_variable("CERTIFICATE", ""),
            client_certificate=_exporter_variable("CLIENT_CERTIFICATE", ""),
            client_key=_exporter_variable("CLIENT_KEY", ""),
            service_name=_given(service_name, "OTEL_SERVICE_NAME", ""),
            capture_content=_capture(capture_content),
            redact=Setting(redact, "argument") if redact else Setting(None),
            content_limit=_content_limit(),
            disabled_instrumentations=_names(DISABLED_VARIABLE),
            flush_on_sigterm=_flag("MAST_TRACE_FLUSH_ON_SIGTERM", default=True),
            carry_runs=_flag("MAST_TRACE_CARRY_RUNS", default=True),
        )


def _given(argument: str | None, variable: str, default: str) -> Setting[str]:
    if argument is not None:
        return Setting(argument, "argument")
    value = os.environ.get(variable, "").strip()
    return Setting(value, variable) if value else Setting(default)


def _exporter_variable(suffix: str, default: str) -> Setting[str]:
    """Read an OTLP exporter variable; the one for traces wins over the general one."""
    for variable in (f"OTEL_EXPORTER_OTLP_TRACES_{suffix}", f"OTEL_EXPORTER_OTLP_{suffix}"):
        value = os.environ.get(variable, "").strip()
        if value:
            return Setting(value, variable)
    return Setting(default)


def _flag(variable: str, *, default: bool = False) -> Setting[bool]:
    value = os.environ.get(variable, "").strip().lower()
    return Setting(value == "true", variable) if value else Setting(default)


def _names(variable: str) -> Setting[tuple[str, ...]]:
    names = tuple(name.strip() for name in os.environ.get(variable, "").split(",") if name.strip())
    return Setting(names, variable) if names else Setting(())


def _protocol() -> Setting[str]:
    protocol = _exporter_variable("PROTOCOL", "http/protobuf")
    if protocol.value not in _DEFAULT_ENDPOINTS:
        raise ConfigurationError(
            f"{protocol.origin}={protocol.value!r} is not supported; use 'http/protobuf' or 'grpc'."
        )
    return protocol


def _endpoint(argument: str | None, protocol: str) -> Setting[str]:
    if argument is not None:
        given = Setting(argument.strip(), "argument")
    else:
        given = _exporter_variable("ENDPOINT", "")
    if not given.value and given.origin == "default":
        given = _local(protocol)
    text = given.value
    if protocol == "grpc" and "://" not in text:
        text = f"https://{text}"  # OTLP: a gRPC endpoint without a scheme is a secure one
    try:
        parts = parse_url(text)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The endpoint of {given.origin}: {error}. "
            f"Give one such as {_DEFAULT_ENDPOINTS[protocol]}."
        ) from None
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise ConfigurationError(
            f"The endpoint {masked(text)!r} ({given.origin}) is no address of a collector; "
            f"give one such as {_DEFAULT_ENDPOINTS[protocol]}."
        )
    # The variable for traces holds the full address, every other source the base of it.
    if protocol != "grpc" and given.origin != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":
        path = parts.path.rstrip("/")
        if not path.endswith(_TRACES_PATH):
            path += _TRACES_PATH
        parts = replace(parts, path=path)
    return Setting(parts.text, given.origin)


def _local(protocol: str) -> Setting[str]:
    """Return the address of the one `mast-trace up` that runs here, else the default."""
    running = running_up.found() if protocol != "grpc" else []
    if len(running) == 1:
        return Setting(running[0], running_up.ORIGIN)
    return Setting(_DEFAULT_ENDPOINTS[protocol])


def _headers(argument: Mapping[str, str] | None) -> Setting[Mapping[str, str]]:
    if argument is not None:
        return Setting(dict(argument), "argument")
    text = _exporter_variable("HEADERS", "")
    return Setting(parse_env_headers(text.value, liberal=True), text.origin)


def _timeout() -> Setting[float]:
    text = _exporter_variable("TIMEOUT", "10")
    try:
        seconds = float(text.value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigurationError(f"{text.origin}={text.value!r} is not a number of seconds.")
    return Setting(seconds, text.origin)


def _compression() -> Setting[str]:
    text = _exporter_variable("COMPRESSION", "none")
    name = text.value.lower()
    if name not in _COMPRESSIONS:
        raise ConfigurationError(
            f"{text.origin}={text.value!r} is not supported; use one of {', '.join(_COMPRESSIONS)}."
        )
    return Setting(name, text.origin)


def _content_limit() -> Setting[int]:
    limit, variable = limit_from_environment()
    return Setting(limit, variable) if variable else Setting(limit)


def _capture(argument: Capture | None) -> Setting[Capture]:
    if argument is not None:
        if argument not in (True, False, "full"):
            raise ConfigurationError(f"capture_content={argument!r} is not True, False or 'full'.")
        return Setting(argument, "argument")
    captured = capture_from_environment()
    if captured is None:
        return Setting[Capture](value=True)
    return Setting(captured, CAPTURE_VARIABLE)
