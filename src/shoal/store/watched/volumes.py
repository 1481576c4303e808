"""Determines from which nodes of a live cluster the volumes of a pod can be reached, or why it must wait for them.

Guarantees: a pod is listed (`stirred`) when its claims, their volumes or their classes have changed, and only then; the
messages are those of kube-scheduler. Volumes of a decision that is being written (`needs.reserve`) are reserved for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import msgspec

from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod
from shoal.client.context import Context
from shoal.client.index import Index
from shoal.client.informer import Handler
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.needs import Mounts, Needed, VolumeNeeds, WantedClaim, mounts_of
from shoal.client.volumes.values import Known, StorageClass, Volume, VolumeClaim
from shoal.store.volumes.rules import VolumeRules
from shoal.store.watched.dependents import Dependents
from shoal.store.watched.template_volumes import TemplateVolumes
from shoal.store.watched.volume_heads import labels_of, places, touched_by

_KINDS = (VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES)
_MOUNTS = (b'"persistentVolumeClaim"', b'"ephemeral"')
_ENDED = (b'"phase":"Succeeded"', b'"phase":"Failed"')
_NODES = "nodes"
_USERS = "volume-claim-users"


class _VolumeSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Placed(msgspec.Struct, gc=False):
    spec: _VolumeSpec


class WatchedVolumes:
    """`wake` is called when the result of a pod may have changed."""

    def __init__(self, context: Context, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._informers = of = context.informers
        self._pods = of.of(PODS)
        self._asked = Dependents()
        self._users: Index | None = None
        """Pods on nodes, by the claims that they use; built when a claim is for one pod only."""
        self.needs = VolumeNeeds(
            Known(of.of(VOLUME_CLAIMS), VolumeClaim),
            Known(of.of(VOLUMES), Volume),
            Known(of.of(STORAGE_CLASSES), StorageClass),
        )
        self._rules = VolumeRules(self.needs, partial(places, of.of(NODES)), self._is_used)
        # This handler runs after the values above have read the same change.
        of.of(VOLUME_CLAIMS).on_change(self._stirring(lambda item: ("claim", item.key)))
        of.of(STORAGE_CLASSES).on_change(self._stirring(lambda item: ("class", item.name)))
        of.of(VOLUMES).on_change(self._volume_changed)
        of.of(NODES).on_change(lambda before, after: None if before and after else self._stir(_NODES))
        self._pods.on_change(self._pod_changed)
        self.templates = TemplateVolumes(context, self.needs, wake)

    async def synced(self) -> None:
        await self._informers.synced((*_KINDS, PODS, NODES))

    # -- queries -----------------------------------------------------------------------------------------------------

    def rule(self, pod: Pod) -> NodeAffinity | str | None:
        """The nodes that can reach the pod's volumes; a text gives the reason why the pod must wait for them."""
        meta, mounts = pod.metadata, self._mounts(pod)
        if not mounts.claims:
            self._asked.put(meta.key, ())
            return None
        needed = self.needs.needed(mounts)
        self._asked.put(meta.key, self._hangs_on(mounts, needed))
        if isinstance(needed, str):
            return needed
        return self._rules.of(meta.key, needed)

    def refused(self, pod: Pod) -> str:
        """kube-scheduler's message for nodes that cannot reach them; empty where no node is considered."""
        mounts = self._mounts(pod)
        needed = self.needs.needed(mounts) if mounts.claims else ""
        if isinstance(needed, str):
            return ""
        return self._rules.refused(pod.metadata.key, needed)

    def _mounts(self, pod: Pod) -> Mounts:
        item = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        return mounts_of(item) if item is not None and any(word in item.data for word in _MOUNTS) else Mounts(())

    def stirred(self) -> set[str]:
        """Pods (namespace/name) for which the result above may have changed."""
        return self._asked.take()

    def reserve(self, wanted: list[WantedClaim]) -> None:
        """Reserve these volumes for decisions that are not written yet."""
        self.needs.reserve(wanted)
        self._stir_rivals(wanted)

    def withdraw(self, wanted: list[WantedClaim]) -> None:
        self.needs.withdraw(wanted)
        self._stir_rivals(wanted)

    def labels_of(self, node: str) -> dict[str, str]:
        item = self._informers.of(NODES).get("", node)
        return labels_of(item) if item is not None else {}

    def _hangs_on(self, mounts: Mounts, needed: Needed | str) -> list[Hashable]:
        found: list[Hashable] = [("claim", key) for key in mounts.claims]
        if not isinstance(needed, str) and len(needed.waiting) > 1:
            found.append(_NODES)
        for key in mounts.claims:
            claim = self.needs.claims.get(key)
            if claim is None:
                continue
            found.append(("class", claim.class_name))
            if claim.spec.volume_name:
                found.append(("volume", claim.spec.volume_name))
            if not claim.is_bound and not isinstance(needed, str):
                found.append(("volumes", claim.class_name))
        return found

    # -- claims for one pod only ------------------------------------------------------------------------------------

    def _is_used(self, claim: VolumeClaim, pod: str) -> bool:
        if self._users is None:
            self._users = self._pods.index(_USERS, _claims_in_use)
        return any(f"{item.namespace}/{item.name}" != pod for item in self._users["/".join(claim.key)])

    # -- event handlers
    # ----------------------------------------------------------------------------------------------------

    def _stirring(self, name: Callable[[Item], Hashable]) -> Handler:
        def changed(before: Item | None, after: Item | None) -> None:
            item = after or before
            if item is not None:
                self._stir(name(item))

        return changed

    def _stir(self, what: Hashable) -> None:
        if self._asked.stir(what):
            self._wake()

    def _volume_changed(self, before: Item | None, after: Item | None) -> None:
        for item in (before, after):
            if item is not None:
                for what in touched_by(item):
                    self._stir(what)

    def _stir_rivals(self, wanted: list[WantedClaim]) -> None:
        for one in wanted:
            if one.volume is not None:
                self._stir(("volumes", one.claim.class_name))

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None and before is not None:
            self._asked.drop(f"{before.namespace}/{before.name}")
        item = after or before
        if self._users is None or item is None or _MOUNTS[0] not in item.data:
            return
        if after is None or any(word in after.data for word in _ENDED):
            for key in mounts_of(item).claims:
                self._stir(("claim", key))


def _claims_in_use(item: Item) -> list[str]:
    """The claims that a pod on a node uses."""
    if not any(word in item.data for word in _MOUNTS) or any(word in item.data for word in _ENDED):
        return []
    if not item.read(_Placed).spec.node_name:
        return []
    return ["/".join(key) for key in mounts_of(item).claims]
