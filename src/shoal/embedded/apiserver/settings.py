"""Settings of an embedded control plane, which the command line can set."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from shoal.units.errors import Where
from shoal.units.listening import check_listening

AuthorizationMode = Literal["always-allow", "rbac"]

KUBE_VERSIONS = ("1.34", "1.35", "1.36")
DEFAULT_PORT = 6443
LOOPBACK = "127.0.0.1"


class Settings(msgspec.Struct, frozen=True):
    """Read once at start; a running server never changes them."""

    state_dir: Path | None
    """Where objects and keys are kept; None keeps everything in memory, for one life."""
    kubeconfig: Path
    """Where the administrator's kubeconfig goes; a file that is there already is merged into, never replaced."""
    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    """0 takes any free one."""
    kube_version: str = KUBE_VERSIONS[-1]
    """Chooses schemas and what `/version` says, nothing of what is stored."""
    is_host_chosen: bool = False
    """Whether the user named the host: then other machines may join."""
    authorization: AuthorizationMode = "always-allow"
    history_events: int = 100_000
    """How many changes are remembered at most for watches and lists that go on from an older revision."""
    history_s: int = 300
    """And for how long."""
    accepts_loss: bool = False
    """Whether a state that has lost acknowledged writes is gone on with."""

    @property
    def keys(self) -> Path | None:
        """The folder of keys and tokens."""
        return None if self.state_dir is None else self.state_dir / "keys"

    @property
    def joining_fault(self) -> str:
        """Why no other machine can join; empty if machines can."""
        if not self.is_host_chosen:
            return "it listens on loopback; start it with --host and an address of this machine that the others reach"
        if self.state_dir is None:
            return "its keys are lost when it ends; start it without --memory"
        if self.authorization != "rbac":
            return "every user may do everything, and so could a node; start it with --authorization rbac"
        return ""

    def __post_init__(self) -> None:
        check_listening(self.host, Where(path="--host"))
