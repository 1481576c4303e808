"""Writes labels as a NodeFeature object, which Node Feature Discovery copies to the Node.

The object has the name that GPU feature discovery gives it, and belongs to the pod and the DaemonSet of the agent, so
it ends with them. Its labels outside `feature.node.kubernetes.io` reach the Node only if NFD allows their namespace
(`extraLabelNs`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import PODS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError
from shoal.devices.node_metadata import NodeMetadata
from shoal.units.errors import UserError

NODE_FEATURES = Kind("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")
_OF_NODE = "nfd.node.kubernetes.io/node-name"


class Owner(msgspec.Struct, frozen=True):
    namespace: str
    pod: str = ""
    """The pod of this agent; empty: the object belongs to none."""


class NodeFeatureObject:
    """Implements LabelTarget."""

    def __init__(self, api: Api, node: str, owner: Owner) -> None:
        self._api, self._node, self._owner = api, node, owner
        self._name = f"nvidia-features-for-{node}"

    async def write(self, found: NodeMetadata) -> str:
        """Raises `UserError` if Node Feature Discovery is not installed."""
        namespace = self._owner.namespace
        before = await self._before()
        body: Obj = {
            "apiVersion": NODE_FEATURES.api_version,
            "kind": NODE_FEATURES.name,
            "metadata": {
                "name": self._name,
                "namespace": namespace,
                "labels": {_OF_NODE: self._node},
                "ownerReferences": await self._owners(),
            },
            "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": dict(found.labels)},
        }
        if before is not None and all(_of(before, *path) == _of(body, *path) for path in _COMPARED):
            return ""
        try:
            await self._api.patch(NODE_FEATURES, namespace, self._name, Patch("apply", body, force=True))
        except NotFoundError as error:
            fix = "install Node Feature Discovery, or write labels on the Node with --write node"
            raise UserError(f"NodeFeature {namespace}/{self._name} cannot be written: {error}", fix=fix) from error
        return f"NodeFeature {namespace}/{self._name}: {len(found.labels)} labels"

    async def close(self) -> None:
        """The object ends with its owners."""

    async def _before(self) -> Obj | None:
        try:
            return (await self._api.get(NODE_FEATURES, self._owner.namespace, self._name)).obj()
        except NotFoundError:
            return None

    async def _owners(self) -> list[Obj]:
        if not self._owner.pod:
            return []
        metadata = (await self._api.get(PODS, self._owner.namespace, self._owner.pod)).obj()["metadata"]
        pod = {"apiVersion": "v1", "kind": "Pod", "name": self._owner.pod, "uid": metadata["uid"]}
        return [*(one for one in metadata.get("ownerReferences") or () if one.get("controller")), pod]


_COMPARED = (("metadata", "labels"), ("metadata", "ownerReferences"), ("spec", "labels"))


def _of(obj: Obj, *path: str) -> Any:
    value: Any = obj
    for name in path:
        value = (value or {}).get(name)
    return value or None
