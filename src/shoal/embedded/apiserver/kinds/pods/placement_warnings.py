"""Warns about placement fields of a pod."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.kinds.complaints import Obj

_OLD_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_NOBODY = "a null labelSelector results in matching no pod"


def label_warnings(spec: Obj, path: str) -> Iterator[str]:
    """Warnings about deprecated node labels, and about spread constraints that match no pod."""
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
    if nodes := (spec.get("affinity") or {}).get("nodeAffinity"):
        here = f"{path}.affinity.nodeAffinity"
        for place, term in enumerate((nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
            yield from _term(term, f"{here}.{_REQUIRED}.nodeSelectorTerms[{place}]")
        for place, term in enumerate(nodes.get(_PREFERRED) or ()):
            yield from _term(term.get("preference") or {}, f"{here}.{_PREFERRED}[{place}].preference")
    for place, spread in enumerate(spec.get("topologySpreadConstraints") or ()):
        here, key = f"{path}.topologySpreadConstraints[{place}]", spread.get("topologyKey", "")
        if key in _OLD_LABELS:
            yield f"{here}.topologyKey: {key} is {_OLD_LABELS[key]}"
        if spread.get("labelSelector") is None:
            yield f"{here}.labelSelector: {_NOBODY}"


def _term(term: Obj, path: str) -> Iterator[str]:
    for place, one in enumerate(term.get("matchExpressions") or ()):
        key = one.get("key", "")
        if key in _OLD_LABELS:
            yield f"{path}.matchExpressions[{place}].key: {key} is {_OLD_LABELS[key]}"


def affinity_warnings(affinity: Obj, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for place, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{place}].labelSelector: {_NOBODY}"
        for place, term in enumerate(terms.get(_PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{place}].podAffinityTerm.labelSelector: {_NOBODY}"
