"""Resolves the address and credentials of an API server from a kubeconfig or a pod's service account.

Files are read again, because they may be renewed at any time; exec plugins are called when their result is needed
(`credentials.py`). No secret is printed: the text of an Access has its address and its source.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec


class ExecProgram(msgspec.Struct, frozen=True):
    """A program that returns the user's credentials: `exec` of a kubeconfig."""

    command: str
    """A name in PATH, or a path."""
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Variables in addition to the environment of this process."""
    hint: str = ""
    """The installation hint of the kubeconfig."""
    mode: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    """Whether the program may ask the user at the terminal."""
    cluster: dict[str, Any] | None = None
    """The description of the server, for programs that request it."""


def is_header_text(value: str) -> bool:
    """Whether the text is valid in a header: without line breaks and other control characters."""
    return value.isprintable()


class Access(msgspec.Struct, frozen=True):
    server: str
    """For example `https://10.0.0.1:6443`, optionally with a path; without a final slash."""
    where: str
    """For messages: `context "shoal" of /home/me/.kube/config`."""
    name: str = ""
    """The name of the context or cluster in the kubeconfig; empty without one."""
    file: Path | None = None
    """The kubeconfig with the context."""
    origin: str = ""
    """What named the cluster, for messages: `--kubeconfig`, `KUBECONFIG`."""
    timeout_s: float = 0.0
    """The time limit of each request that the user asked for; 0: the default of the client."""
    authority: str = ""
    """The trusted authorities, as PEM. Empty: those of the system."""
    authority_file: Path | None = None
    is_insecure: bool = False
    """Whether the server's certificate is not verified."""
    tls_name: str = ""
    """The name in the server's certificate, where it differs from the address."""
    certificate: bytes = b""
    key: bytes = b""
    certificate_file: Path | None = None
    key_file: Path | None = None
    token: str = ""
    token_file: Path | None = None
    """Files are read repeatedly, and take precedence over the values that were read first."""
    program: ExecProgram | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every request: impersonation, or a name and password."""
    proxy: str = ""
    namespace: str = "default"
    compresses: bool = False
    """Whether large answers may be compressed, which saves time on slow networks only."""
    again: Callable[[], Access] | None = None
    """Reads these settings again from their source, when the server rejects the credentials."""

    def without_user(self) -> Access:
        """The same server without credentials and without impersonation."""
        return msgspec.structs.replace(
            self,
            certificate=b"",
            key=b"",
            certificate_file=None,
            key_file=None,
            token="",
            token_file=None,
            program=None,
            headers=(),
            again=None,
        )

    def __repr__(self) -> str:
        return f"Access({self.server}, {self.where})"
