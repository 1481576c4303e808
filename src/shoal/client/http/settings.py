"""The rate of requests of a client, and the field manager of its writes."""

from __future__ import annotations

from functools import cache

import msgspec


class KubeSettings(msgspec.Struct, frozen=True):
    manager: str = "shoal"
    """The manager of the fields it writes."""
    requests_per_second: float = 1000.0
    """0 is no limit. Generous, because one process may speak for a thousand kubelets, and servers guard themselves
    (429 is waited out). On a server shared with others, less."""
    burst: int = 2000
    connections: int = 32
    """For requests, at once; each watch has a connection of its own beside them."""
    timeout_s: float = 60.0
    """Of one request, from its turn to its answer. Watches last as long as they were asked for."""
    keeps_managed_fields: bool = True
    """Whether objects come with who manages which of their fields: four tenths of a pod, which caches do without."""
    page: int = 500
    """Objects in one answer of a list."""
    watch_s: tuple[int, int] = (300, 600)
    """How long a watch is asked for: at random between these, so that many do not end together."""


@cache
def user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"shoal/{version('shoal')}"
    except PackageNotFoundError:
        return "shoal/0"
