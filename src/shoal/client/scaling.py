"""Defines the protocol of an autoscaler's requests: the scale of an object of any kind, and the metrics APIs.

They are no part of `client/port.py`, because only autoscalers make them: a Scale is no object of its own, and the
answers of metrics APIs have neither versions nor watches. Implementations: `client/http/api.py` for any server, and
`embedded/apiserver/inside/scaling.py` for the embedded one in the same process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shoal.client.item import Obj
from shoal.client.kind import Kind

SCALE = "scale"


class ScalingApi(Protocol):
    """Refusals are raised as the errors of `refusals.py`."""

    async def scale(self, kind: Kind, namespace: str, name: str) -> Obj:
        """The Scale (autoscaling/v1) of an object."""
        ...

    async def rescale(self, kind: Kind, scale: Obj) -> None:
        """Write the replicas of a Scale that was read."""
        ...

    async def ask(self, path: str, query: Mapping[str, str]) -> Obj:
        """The answer of an aggregated API, such as metrics.k8s.io. `path` is escaped already."""
        ...
