"""Closes the network to the Python code of a program that is being replayed.

Connections and datagrams to hosts that are not allowed are refused and noted as a divergence. Names are not
looked up, which is an ordinary failure for the program, as on a machine without network; it is not
noted, because libraries look their makers up in the background. Unix sockets stay open. Code that does
not use Python's sockets (gRPC, drivers of databases, child processes such as ``curl``) is not seen.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final

from mast_trace.replay.live import in_live_call

_SENDING: Final = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_LOOKING_UP: Final = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_OF_THIS_MACHINE: Final = {"", "localhost"}
_IP: Final = {socket.AF_INET, socket.AF_INET6}


class Network:
    """The hosts that a replayed program may reach.

    Args:
        refuse: notes the text about a refused connection.
        hosts: addresses and names; the addresses of a name are allowed once it has been looked up.
    """

    def __init__(self, refuse: Callable[[str], object], hosts: Iterable[str]) -> None:
        self._refuse = refuse
        self._hosts = set(hosts)
        self._names_of_live_calls: set[str] = set()
        self._inside = threading.local()

    def close(self) -> None:
        """Refuse what is not allowed, until the process ends."""
        sys.addaudithook(self._hook)

    def allow_lookup(self, host: str) -> None:
        """Let the name of a model's server be looked up; its connections are let through one by one."""
        self._names_of_live_calls.add(host)

    def allows(self, host: str) -> bool:
        """Return whether the program may connect to a host."""
        return host in self._hosts

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _SENDING:
            self._check_address(args[0], args[1])
        elif event in _LOOKING_UP and not getattr(self._inside, "on", False):
            self._check_name(args[0])

    def _check_address(self, sock: Any, address: Any) -> None:
        if sock.family not in _IP or not isinstance(address, tuple):
            return  # Unix sockets, which event loops use, and the second send on a connection
        host = str(address[0])
        if self.allows(host) or in_live_call.get():
            return  # the player has let a live call through, and no other code runs inside it
        text = f"The program connects to {host}:{address[1]}, which the record cannot answer."
        self._refuse(f"{text} --set allow_hosts={host} lets it through.")
        raise ConnectionRefusedError(f"mast-trace: the replay is offline. {text}")

    def _check_name(self, name: Any) -> None:
        host = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name or "")
        if host in _OF_THIS_MACHINE or _is_address(host):
            return
        if self.allows(host):
            self._hosts |= self._addresses(host)
            return
        if in_live_call.get() or host in self._names_of_live_calls:
            return
        raise socket.gaierror(
            socket.EAI_FAIL,
            f"mast-trace: the replay is offline, so {host} is not looked up. --set allow_hosts={host} lets "
            "it through.",
        )

    def _addresses(self, host: str) -> set[str]:
        self._inside.on = True
        try:
            return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
        except OSError:
            return set()
        finally:
            self._inside.on = False


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
