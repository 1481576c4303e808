"""Resolves the address and credentials of an API server from a kubeconfig or a pod's service account.

Files are read again, since they may be renewed at any time; programs are called when their result is needed
(`credentials.py`). No secret is printed: the text of an Access is its address and its source.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec


class ExecProgram(msgspec.Struct, frozen=True):
    """Another program that says who asks: `exec` of a kubeconfig."""

    command: str
    """A name to be found in PATH, or a path."""
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Beside the environment of this process."""
    hint: str = ""
    """How to install it."""
    mode: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    """Whether it may ask the person at the terminal."""
    cluster: dict[str, Any] | None = None
    """The description of the server for the program, if it asks for it."""


def is_header_text(value: str) -> bool:
    """Whether the text may be sent in a header: it has no line break and no other control character."""
    return value.isprintable()


class Access(msgspec.Struct, frozen=True):
    server: str
    """As in `https://10.0.0.1:6443`, perhaps with a path; no slash at its end."""
    where: str
    """For messages: `context "shoal" of /home/me/.kube/config`."""
    authority: str = ""
    """PEM. Empty: what the system trusts."""
    authority_file: Path | None = None
    is_insecure: bool = False
    """The server's certificate is not looked at."""
    tls_name: str = ""
    """The name its certificate must bear, where that is not the address."""
    certificate: bytes = b""
    key: bytes = b""
    certificate_file: Path | None = None
    key_file: Path | None = None
    token: str = ""
    token_file: Path | None = None
    """What stands in files is read again and again, and goes before what was read first."""
    program: ExecProgram | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: impersonation, a name and password."""
    proxy: str = ""
    namespace: str = "default"
    compresses: bool = False
    """Large answers may come compressed: worth its time over a slow line only."""
    again: Callable[[], Access] | None = None
    """Reads all of this once more from where it stands, when the server does not take it any more."""

    def __repr__(self) -> str:
        return f"Access({self.server}, {self.where})"
