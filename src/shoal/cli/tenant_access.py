"""Runs the work of `shoal tenant` on a cluster: a client with its own field manager, the served kinds, and a clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from shoal.cli.cluster_access import ended

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.client.served_writer import ServedWriter

T = TypeVar("T")
_PATIENCE_S = 30.0


def tenanting(
    access: Access, work: Callable[[Api, ServedWriter, Clock], Awaitable[T]], *, is_dry_run: bool = False
) -> T:
    """`is_dry_run`: the server checks what is written and keeps none of it."""

    async def worked() -> T:
        from shoal.client.clock import WallClock
        from shoal.client.served_writer import ServedWriter

        api = client(access, is_dry_run=is_dry_run)
        try:
            return await work(api, await ServedWriter.of(api), WallClock())
        finally:
            await api.close()

    return ended(access, worked)


def client(access: Access, *, is_dry_run: bool = False) -> Api:
    import random

    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings
    from shoal.client.kueue_versions import KueueVersionsApi
    from shoal.policy.tenants.labels import MANAGER

    settings = KubeSettings(manager=MANAGER, timeout_s=_PATIENCE_S, is_dry_run=is_dry_run)
    return KueueVersionsApi(KubeApi(access, random.Random(), settings))
