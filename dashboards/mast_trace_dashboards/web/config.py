"""The settings of the web view, in `mast-trace web` and in `mast-trace up`."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path  # pydantic reads it
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PositiveFloat, SecretStr, model_validator

from mast_trace_collector.security import Right, is_loopback, read_rights
from mast_trace_collector.settings import ProcessSettings

if TYPE_CHECKING:
    from typing_extensions import Self

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MAPPED_BITS = 96
_HEADER = re.compile(r"[A-Za-z0-9-]+")


def _joined(value: Any) -> Any:
    """Accept a list, as in TOML, besides its items with commas between, as in a variable."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


Listed = Annotated[str, BeforeValidator(_joined)]


class WebConfig(ProcessSettings):
    """The settings of the web view: `[web]` in the configuration file."""

    table: ClassVar[str] = "web"
    fallback_table: ClassVar[str] = "up"

    web_host: str = Field(
        "127.0.0.1",
        description="Address on which the web view is served; any but loopback needs web_token, "
        "keys_file or web_trusted_proxies.",
    )
    web_port: int = Field(
        8680, ge=0, le=65535, description="Port of the web view; 0 takes a free one."
    )
    web_token: SecretStr = Field(
        SecretStr(""),
        description="Token with which the operator signs in and sees all projects; empty: on loopback "
        "nobody has to sign in.",
    )
    web_mcp_writes: bool = Field(
        False,
        description="Lets programs that use the MCP endpoint of the web view with the right to label "
        "record labels and outcomes.",
    )
    web_public_names: Listed = Field(
        "",
        description="Host names under which people reach the view, with commas between; others are "
        "not answered. Empty: any name, where people sign in.",
    )
    web_trusted_proxies: Listed = Field(
        "",
        description="Addresses or networks of proxies that tell who their user is, with commas "
        "between; needs web_user_header and web_public_names.",
    )
    web_user_header: str = Field(
        "",
        description="Header in which they do, such as X-Auth-Request-Email; taken from those "
        "addresses alone.",
    )
    web_project_header: str = Field(
        "",
        description="Header in which they name the one project that the user sees; empty: their "
        "users see all projects.",
    )
    web_rights: Listed = Field(
        "read,label", description="Rights of their users: read, or read,label."
    )
    web_session_hours: PositiveFloat = Field(
        168.0, description="Hours after which people sign in again."
    )
    web_tls_cert_file: Path | None = Field(
        None, description="PEM certificate chain of the web view."
    )
    web_tls_key_file: Path | None = Field(None, description="PEM private key to the certificate.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.web_tls_cert_file is None) != (self.web_tls_key_file is None):
            raise ValueError(
                "web_tls_cert_file and web_tls_key_file are set together or not at all"
            )
        if bool(self.trusted_proxies) != bool(self.web_user_header):
            raise ValueError(
                "web_trusted_proxies and web_user_header are set together or not at all"
            )
        # A page elsewhere could reach the view through a host name of its own that leads to a
        # proxy's machine, and send the header itself.
        if self.trusted_proxies and not self.public_names:
            raise ValueError("web_trusted_proxies needs web_public_names")
        for header in (self.web_user_header, self.web_project_header):
            if header and not _HEADER.fullmatch(header):
                raise ValueError(f"{header!r} is no name of a header")
        return self

    @model_validator(mode="after")
    def _proxied_rights_fit(self) -> Self:
        if self.proxied_rights - {Right.READ, Right.LABEL}:
            raise ValueError("web_rights are read, or read,label: nothing else is done in the view")
        return self

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The proxies whose header is trusted."""
        return tuple(map(_network, _items(self.web_trusted_proxies)))

    @property
    def public_names(self) -> frozenset[str]:
        """The names under which the view is served, in lower case."""
        return frozenset(name.lower().rstrip(".") for name in _items(self.web_public_names))

    @property
    def shown_host(self) -> str:
        """The host in the address that people are told: one that is served, as 0.0.0.0 is not."""
        if is_loopback(self.web_host):
            return self.web_host
        everywhere = self.web_host in {"", "0.0.0.0", "::"}  # noqa: S104  # it is compared
        own = "127.0.0.1" if everywhere else self.web_host
        return next(iter(_items(self.web_public_names)), own)

    def ways_in(self, keys_file: Path | None) -> str:
        """Return how people sign in where they have to, in words."""
        ways = {
            "with the web_token": bool(self.web_token.get_secret_value()),
            f"with a key of {keys_file}": keys_file is not None,
            "through your proxy": bool(self.trusted_proxies),
        }
        return ", or ".join(way for way, there in ways.items() if there)

    @property
    def proxied_rights(self) -> frozenset[Right]:
        """The rights of users of trusted proxies."""
        return read_rights([self.web_rights])

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Certificate and key; None without TLS."""
        if self.web_tls_cert_file is None or self.web_tls_key_file is None:
            return None
        return self.web_tls_cert_file, self.web_tls_key_file


def _network(text: str) -> Network:
    """Parse an address or a network; an IPv4 address in IPv6's form becomes IPv4, as for visitors."""
    read = ipaddress.ip_network(text)
    if isinstance(read, ipaddress.IPv6Network) and read.prefixlen >= _MAPPED_BITS:
        mapped = read.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.ip_network((mapped, read.prefixlen - _MAPPED_BITS))
    return read


def _items(text: str) -> list[str]:
    return [item for item in (each.strip() for each in text.split(",")) if item]
