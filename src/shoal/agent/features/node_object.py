"""Writes labels and annotations on the Node of this machine, by server-side apply.

Guarantees: only this node is written, and none is created. A label that no longer applies is removed if this agent
wrote it and no other component claims it; labels of others are neither changed nor removed. Where another component has
written a different value, it keeps its label, and the message names both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError, StaleError
from shoal.devices.node_metadata import NodeMetadata
from shoal.units.errors import UserError

MANAGER = "shoal-agent-labels"
"""The field manager; what it has applied before and does not apply again is removed by the server."""
DISCOVERY_MANAGER = "shoal-agent-discovery"
"""That of the process which labels PCI devices only. It may run beside one that writes all labels."""
_CONFLICT = "FieldManagerConflict"
_MOST_NAMED = 3
_FIELDS = ("labels", "annotations")


class NodeObject:
    """Implements LabelTarget."""

    def __init__(self, api: Api, node: str) -> None:
        """`api`: of a client whose field manager is `MANAGER`."""
        self._api, self._node = api, node

    async def write(self, found: NodeMetadata) -> str:
        """Raises `UserError` if there is no such node."""
        try:
            node = (await self._api.get(NODES, "", self._node)).obj()
        except NotFoundError as error:
            fix = "name the node of this machine with --node; in a pod, set NODE_NAME to spec.nodeName"
            raise UserError(f"the cluster has no node {self._node}", fix=fix) from error
        metadata = node["metadata"]
        wanted = {"labels": found.labels, "annotations": found.annotations}
        claimed: list[str] = []
        try:
            after = await self._apply(metadata["uid"], wanted)
        except StaleError as error:
            conflicts = dict(_conflicts(error))
            if not conflicts:
                raise
            claimed = list(_left(conflicts))
            kept = {
                field: {name: value for name, value in values.items() if f"{field}.{name}" not in conflicts}
                for field, values in wanted.items()
            }
            after = await self._apply(metadata["uid"], kept)
        changed = sum(_changes(metadata.get(field) or {}, after.get(field) or {}) for field in _FIELDS)
        said = [f"node {self._node}: {changed} labels and annotations changed"] if changed else []
        return "; ".join((*said, *claimed))

    async def close(self) -> None:
        """The labels remain while the agent is restarted."""

    async def _apply(self, uid: str, wanted: Mapping[str, Mapping[str, str]]) -> Mapping[str, Any]:
        # The uid makes the server refuse a node that was deleted meanwhile, instead of creating it.
        body: Obj = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._node, "uid": uid, **{field: dict(values) for field, values in wanted.items()}},
        }
        metadata: Mapping[str, Any] = (await self._api.patch(NODES, "", self._node, Patch("apply", body))).obj()[
            "metadata"
        ]
        return metadata


def _conflicts(error: StaleError) -> Iterable[tuple[str, str]]:
    """`labels.nvidia.com/gpu.count` and the component that has written it, for each."""
    for cause in error.details.get("causes") or ():
        field, message = str(cause.get("field", "")), str(cause.get("message", ""))
        if cause.get("reason") == _CONFLICT and field.startswith(".metadata."):
            yield field.removeprefix(".metadata."), message.partition('"')[2].partition('"')[0] or "another component"


def _left(conflicts: Mapping[str, str]) -> Iterable[str]:
    """A line for each other component."""
    for manager in sorted({*conflicts.values()}):
        paths = sorted(path for path, other in conflicts.items() if other == manager)
        more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
        yield f"{', '.join(paths[:_MOST_NAMED])}{more}: left to {manager}, which has written different values"


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    return sum(before.get(name) != after.get(name) for name in {*before, *after})
