"""Determines the nodes that the volume claims of pods in manifests allow, or why a pod must wait for them, as for a
live cluster.

A pod of a cluster (with a uid) is checked against its claims if claims, volumes or classes of the cluster are among the
manifests. For a pod without a uid the claims of its cluster are unknown: known claims restrict it where that is
certain, and all others allow any node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from shoal.api.decode import convert
from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.node import Node
from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod
from shoal.client.item import Key
from shoal.client.volumes.needs import Mounts, VolumeNeeds
from shoal.client.volumes.values import StorageClass, Volume, VolumeClaim, Written
from shoal.engine.events import PodArrived
from shoal.engine.node_rules import both_rules
from shoal.engine.reasons import Code
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory
from shoal.store.volumes.rules import VolumeRules
from shoal.store.volumes.templates import TemplateMounts, needed_by, with_default_class
from shoal.units.errors import UserError
from shoal.units.near_texts import near_texts

T = TypeVar("T", VolumeClaim, Volume, StorageClass)
_MOST_CLASSES = 8
_HELP = {
    "not found": "Create the claim, or correct its name in the pod.",
    "unbound immediate": "Its claims are bound once a matching volume exists or their class provisions one.",
    "non-existent": "The data is gone with the volume: create the claim again.",
    "being deleted": "Wait until the claim is gone, and create it anew.",
}


class ManifestVolumes:
    def __init__(self, inventory: Inventory, warnings: list[str]) -> None:
        """Invalid objects are left out, with a warning."""
        self._inventory = inventory
        self._warnings = warnings
        classes = Written(self._read("storage.k8s.io/v1", "StorageClass", StorageClass))
        claims = Written(
            with_default_class(claim, tuple(classes))
            for claim in self._read("v1", "PersistentVolumeClaim", VolumeClaim)
        )
        volumes = Written(self._read("v1", "PersistentVolume", Volume))
        self._are_known = bool(len(claims) or len(volumes) or len(classes))
        self._needs = VolumeNeeds(claims, volumes, classes)
        self._rules = VolumeRules(self._needs, self._places, self._is_used)

    def within(self, event: PodArrived, pod: Pod) -> PodArrived | HeldPod:
        """A pending pod, restricted to the nodes that can reach its volumes; or the reason why it must wait for
        them.
        """
        rule = self._rule(pod)
        if isinstance(rule, str):
            return HeldPod(Code.VOLUMES, rule, self._help(rule, pod))
        ask = event.ask
        return event if rule is None else replace(event, ask=replace(ask, nodes=both_rules(ask.nodes, rule)))

    def _help(self, rule: str, pod: Pod) -> str:
        """What the user can do, with the name that a misspelled one resembles."""
        usual = next((help_ for part, help_ in _HELP.items() if part in rule), "")
        wanted = mounts_of_pod(pod).claims
        if "not found" in rule:
            namespace = pod.metadata.namespace
            known = [claim.metadata.name for claim in self._needs.claims if claim.key[0] == namespace]
            missing = [name for _, name in wanted if name not in known]
            return f"{usual}{_did_you_mean(missing[0], known)}" if missing else usual
        if "unbound immediate" in rule:
            claims = (claim for key in wanted if (claim := self._needs.claims.get(key)) is not None)
            classes = [one.metadata.name for one in self._needs.classes]
            for claim in claims:
                name = claim.class_name
                if name and name not in classes and not claim.is_bound:
                    exist = f" Those that exist: {', '.join(sorted(classes)[:_MOST_CLASSES])}." if classes else ""
                    near = _did_you_mean(name, classes) or exist
                    fix = f"Create the claim again with another storageClassName, which cannot be changed.{near}"
                    return f'StorageClass "{name}" of claim {"/".join(claim.key)} not found. {fix}'
        return usual

    def _rule(self, pod: Pod) -> NodeAffinity | str | None:
        mounts = mounts_of_pod(pod) if self._are_known else Mounts(())
        if not mounts.claims:
            return None
        if not pod.metadata.uid:
            rule = self._rules.of(pod.metadata.key, needed_by(self._needs, TemplateMounts(mounts.claims)))
            return None if isinstance(rule, str) else rule
        needed = self._needs.needed(mounts)
        return needed if isinstance(needed, str) else self._rules.of(pod.metadata.key, needed)

    def _read(self, version: str, kind: str, wanted: type[T]) -> Iterator[T]:
        for placed in self._inventory.others():
            value = placed.value
            if (value.api_version, value.kind) != (version, kind):
                continue
            raw = dict(value.raw)
            if wanted is VolumeClaim:
                meta = dict(raw.get("metadata") or {})
                raw["metadata"] = {**meta, "namespace": meta.get("namespace") or DEFAULT_NAMESPACE}
            try:
                yield convert(raw, wanted, placed.where)
            except UserError as error:
                self._warnings.append(f"{placed.reported(error)}; it is left out")

    def _places(self) -> Iterable[tuple[str, dict[str, str]]]:
        for placed in self._inventory.of(Node):
            yield placed.value.metadata.name, dict(placed.value.metadata.labels)

    def _is_used(self, claim: VolumeClaim, pod: str) -> bool:
        return any(user != pod for user in self._users.get(claim.key, ()))

    @cached_property
    def _users(self) -> dict[Key, list[str]]:
        """Pods on nodes, by the claims that they use."""
        found: dict[Key, list[str]] = {}
        for placed in self._inventory.of(Pod):
            pod = placed.value
            if pod.spec.node_name and not pod.is_finished():
                for key in mounts_of_pod(pod).claims:
                    found.setdefault(key, []).append(pod.metadata.key)
        return found


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    near = near_texts(name, known)
    return f" Did you mean {near[0]}?" if near else ""


def mounts_of_pod(pod: Pod) -> Mounts:
    """The claims that the pod mounts."""
    found: dict[Key, bool] = {}
    namespace = pod.metadata.namespace
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found[namespace, volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            found[namespace, f"{pod.metadata.name}-{volume.name}"] = True
    return Mounts(tuple(found), frozenset(key for key, is_own in found.items() if is_own))
