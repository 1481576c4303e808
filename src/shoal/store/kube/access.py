"""Where an API server is and who asks: what a kubeconfig or a pod's own service account comes to.

Secrets are held as bytes that were read once, save for a token in a file, which somebody may renew at any time. None of
them is ever shown: what is printed of an Access is its address and where it came from.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class Access(msgspec.Struct, frozen=True):
    server: str
    """As in `https://10.0.0.1:6443`, perhaps with a path; no slash at its end."""
    where: str
    """For messages: `context "shoal" of /home/me/.kube/config`."""
    authority: str = ""
    """PEM. Empty: what the system trusts."""
    is_insecure: bool = False
    """The server's certificate is not looked at."""
    tls_name: str = ""
    """The name its certificate must bear, where that is not the address."""
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: Path | None = None
    """Is read again and again; what stands there goes before `token`."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: impersonation, a name and password."""
    proxy: str = ""
    namespace: str = "default"

    def __repr__(self) -> str:
        return f"Access({self.server}, {self.where})"
