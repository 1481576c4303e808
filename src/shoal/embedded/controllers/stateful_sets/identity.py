"""Builds the names of a StatefulSet's pods and claims, and the pod of an ordinal."""

from __future__ import annotations

import re
from copy import deepcopy

from shoal.client.item import Obj
from shoal.client.kind import STATEFUL_SETS
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.owned_pods.pod_control import pod_from_template
from shoal.embedded.controllers.stateful_sets.plan import REVISION_LABEL

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-(0|[1-9][0-9]*)")


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """The ordinal of a pod; None if the name does not belong to the set."""
    found = _NAME.fullmatch(pod_name)
    return int(found[2]) if found is not None and found[1] == set_name else None


def claim_name(template: Obj, set_name: str, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{set_name}-{ordinal}"


def claims_for(obj: Obj, ordinal: int) -> list[Obj]:
    """The claims that the pod of this ordinal mounts."""
    meta = obj["metadata"]
    made = []
    for template in obj["spec"].get("volumeClaimTemplates") or ():
        desired = template.get("metadata") or {}
        labels = {**(desired.get("labels") or {}), **(obj["spec"]["selector"].get("matchLabels") or {})}
        metadata: Obj = {"name": claim_name(template, meta["name"], ordinal), "namespace": meta["namespace"]}
        if labels:
            metadata["labels"] = labels
        for key in ("annotations", "finalizers"):
            if desired.get(key):
                metadata[key] = deepcopy(desired[key])
        made.append({"metadata": metadata, "spec": deepcopy(template["spec"])})
    return made


def pod_of_ordinal(obj: Obj, template: Obj, revision: str, ordinal: int) -> Obj:
    """The pod of this ordinal, from the template of the revision."""
    pod = pod_from_template(template, obj, controller_reference(STATEFUL_SETS, obj["metadata"]))
    set_name = obj["metadata"]["name"]
    name = f"{set_name}-{ordinal}"
    meta, spec = pod["metadata"], pod["spec"]
    del meta["generateName"]
    meta["name"] = name
    marks = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    meta["labels"] = {**(meta.get("labels") or {}), **marks}
    spec["hostname"] = name
    if obj["spec"].get("serviceName"):
        spec["subdomain"] = obj["spec"]["serviceName"]
    claimed = [
        {
            "name": one["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(one, set_name, ordinal)},
        }
        for one in obj["spec"].get("volumeClaimTemplates") or ()
    ]
    names = {one["name"] for one in claimed}
    volumes = claimed + [one for one in spec.get("volumes") or () if one["name"] not in names]
    if volumes:
        spec["volumes"] = volumes
    return pod
