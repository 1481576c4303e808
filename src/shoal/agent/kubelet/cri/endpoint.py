"""Finds the socket of this machine's container runtime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shoal.units.errors import UserError

NONE = "none"
USUAL = (
    Path("/run/containerd/containerd.sock"),
    Path("/run/crio/crio.sock"),
    Path("/run/k3s/containerd/containerd.sock"),
)
_SCHEME = "unix://"
_INSTALL = "install containerd or CRI-O and start Shoal as a user who may open its socket"


def runtime_socket(given: str, usual: Sequence[Path] = USUAL) -> tuple[Path, str]:
    """The socket, and why it cannot be used; empty if it can. `given`: the user's choice; empty: the first usual one
    that exists. Raises UserError for a choice that is no socket."""
    if given == NONE:
        return usual[0], f"containers are switched off by --runtime-endpoint {NONE}"
    if given:
        path = Path(given.removeprefix(_SCHEME))
        if not path.is_socket():
            what = "is not a socket" if path.exists() else "does not exist"
            fix = "start the container runtime, or name its socket, such as /run/containerd/containerd.sock"
            raise UserError(f"--runtime-endpoint: {path} {what}", fix=fix)
        return path, "" if _may_open(path) else _not_allowed(path)
    found = [path for path in usual if path.is_socket()]
    for path in found:
        if _may_open(path):
            return path, ""
    if found:
        return found[0], _not_allowed(found[0])
    return usual[0], f"no container runtime was found; {_INSTALL}"


def _may_open(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def _not_allowed(path: Path) -> str:
    return f"the user who started Shoal may not open {path}; add it to the group of that file, or start Shoal as root"
