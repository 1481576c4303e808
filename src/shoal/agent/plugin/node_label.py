"""Follows the label of a Node that names the device plugin's configuration of this machine."""

from __future__ import annotations

import random
from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import NODES
from shoal.client.port import Api, Select
from shoal.client.refusals import NotFoundError
from shoal.devices.labelled_config import LABEL


async def read_config_label(api: Api, node: str) -> str:
    """Its value; empty without one, and without such a Node. Raises the refusals of the API server."""
    try:
        return _label(await api.get(NODES, "", node))
    except NotFoundError:
        return ""


async def follow_config_label(api: Api, clock: Clock, node: str, apply: Callable[[str], None]) -> None:
    """Until cancelled; `apply` gets the value, empty without one."""
    informer = Informer(api, NODES, clock, random.Random(), Select(fields=f"metadata.name={node}"))

    def follow(_: Item | None, after: Item | None) -> None:
        if after is not None:
            apply(_label(after))

    informer.on_change(follow)
    await informer.run()


def _label(node: Item) -> str:
    return str((node.obj()["metadata"].get("labels") or {}).get(LABEL, ""))
