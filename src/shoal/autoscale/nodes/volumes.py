"""Determines the nodes that the volume claims of a pod allow, or why the pod must wait for its claims.

A bound claim allows the nodes that its volume allows. A claim that waits for its first consumer allows the topologies
of its class. Alternatives stay alternatives: each is tried in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.requirement import Requirement
from shoal.api.topology import HOSTNAME_LABEL

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"

Alternative = tuple[Requirement, ...]
ANYWHERE: Final[tuple[Alternative, ...]] = ((),)

Raw = Mapping[str, Any]


class Volumes:
    """The claims, volumes and classes of a cluster."""

    def __init__(self, claims: Iterable[Raw] = (), volumes: Iterable[Raw] = (), classes: Iterable[Raw] = ()) -> None:
        self._claims = {(_namespace(each), _name(each)): each for each in claims}
        self._volumes = {_name(each): each for each in volumes}
        self._classes = {_name(each): each for each in classes}
        marked = (
            name
            for name, each in self._classes.items()
            if (each.get("metadata", {}).get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
        )
        self._default_class = next(marked, "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Volumes) and (self._claims, self._volumes, self._classes) == (
            other._claims,
            other._volumes,
            other._classes,
        )

    __hash__ = None  # type: ignore[assignment]  # it holds objects that have none

    def alternatives(self, pod: Pod) -> tuple[Alternative, ...] | str:
        """What nodes must satisfy, one of the alternatives; or the reason why the pod must wait."""
        found: list[tuple[Alternative, ...]] = []
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                allowed = self._of_claim(namespace, volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                name = f"{pod.metadata.name}-{volume.name}"
                if (namespace, name) in self._claims:
                    allowed = self._of_claim(namespace, name)
                else:
                    allowed = self._of_class(name, volume.ephemeral.volume_claim_template.spec.storage_class_name)
            else:
                continue
            if isinstance(allowed, str):
                return allowed
            found.append(allowed)
        if not found:
            return ANYWHERE
        return tuple(tuple(each for part in parts for each in part) for parts in product(*found))

    def _of_claim(self, namespace: str, name: str) -> tuple[Alternative, ...] | str:
        claim = self._claims.get((namespace, name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        spec = claim.get("spec") or {}
        if volume_name := spec.get("volumeName"):
            volume = self._volumes.get(volume_name)
            return f'persistentvolume "{volume_name}" not found' if volume is None else _of_volume(volume)
        return self._of_class(name, spec.get("storageClassName"))

    def _of_class(self, name: str, class_name: str | None) -> tuple[Alternative, ...] | str:
        """What the class of a claim that is not bound allows."""
        if class_name is None:
            class_name = self._default_class
        if not class_name:
            return f'persistentvolumeclaim "{name}" is not bound and names no storage class'
        storage = self._classes.get(class_name)
        if storage is None:
            return f'storageclass "{class_name}" of persistentvolumeclaim "{name}" not found'
        # The API server always sets the mode, so a class without one is abbreviated and not immediate.
        if storage.get("volumeBindingMode") == "Immediate":
            return f'persistentvolumeclaim "{name}" is not bound, and its storage class binds immediately'
        terms = storage.get("allowedTopologies") or ()
        return tuple(_of_class_term(term) for term in terms) or ANYWHERE


def _of_volume(volume: Raw) -> tuple[Alternative, ...]:
    spec = volume.get("spec") or {}
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    is_local = "local" in spec or "hostPath" in spec
    found = []
    for term in required.get("nodeSelectorTerms") or ():
        expressions = tuple(
            Requirement(each["key"], each["operator"], tuple(each.get("values") or ()))
            for each in term.get("matchExpressions") or ()
            # The host of a local volume will be another one: its pods move to a new node.
            if not (is_local and each["key"] == HOSTNAME_LABEL)
        )
        found.append(expressions)
    return tuple(found) or ANYWHERE


def _of_class_term(term: Raw) -> Alternative:
    expressions = term.get("matchLabelExpressions") or ()
    return tuple(Requirement(each["key"], "In", tuple(each.get("values") or ())) for each in expressions)


def _name(raw: Raw) -> str:
    return str((raw.get("metadata") or {}).get("name", ""))


def _namespace(raw: Raw) -> str:
    return str((raw.get("metadata") or {}).get("namespace") or DEFAULT_NAMESPACE)
