"""The settings of a client: request rate, field manager of writes, connections and watches."""

from __future__ import annotations

from functools import cache

import msgspec

from shoal.client.kind import Kind


class KubeSettings(msgspec.Struct, frozen=True):
    manager: str = "shoal"
    """The manager of the fields it writes."""
    is_dry_run: bool = False
    """Whether the server only checks what is written (dryRun=All) and keeps none of it."""
    requests_per_second: float = 1000.0
    """0: no limit. The default is high, because one process may act for a thousand kubelets, and servers protect
    themselves (requests wait after a 429). A shared server needs a lower value.
    """
    burst: int = 2000
    connections: int = 32
    """The maximum number of concurrent connections for requests; each watch has a further connection of its own."""
    timeout_s: float = 60.0
    """The time limit of a request, from its turn to its answer. Watches last for their requested time."""
    keeps_managed_fields: bool = True
    """Whether objects include managedFields: four tenths of the size of a pod, which caches omit."""
    kept: dict[Kind, type[msgspec.Struct]] = {}
    """Kinds whose objects have only these fields in lists, so that a long list is never in memory as a whole."""
    page: int = 500
    """The page size of lists."""
    watch_s: tuple[int, int] = (300, 600)
    """The range of the random duration of a watch; random, so that watches do not end at the same time."""


@cache
def user_agent() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"shoal/{version('shoal')}"
    except PackageNotFoundError:
        return "shoal/0"
