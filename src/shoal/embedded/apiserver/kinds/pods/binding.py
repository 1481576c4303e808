"""Binding a pod to a node: the one write by which a scheduler decides.

Everything the Binding says is applied in the same write: node, annotations, labels and the condition that tells
watchers that the pod has its place.
"""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.pods.conditions import set_condition
from shoal.embedded.apiserver.status import ApiError, bad_request, conflict


def check_binding(binding: Obj, name: str) -> None:
    """Refuse a Binding that cannot be meant for the pod of this name or that names no node."""
    if (binding.get("metadata") or {}).get("name", name) != name:
        raise bad_request("name in URL does not match name in Binding object")
    errors: Errors = []
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        texts = [error.text() for error in errors]
        raise ApiError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def bind(pod: Obj, binding: Obj, now: str) -> None:
    """Give the pod its node, in place. Raises in the words of a real API server when it cannot have one."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = metadata["name"]
    said = binding.get("metadata") or {}
    if (uid := said.get("uid")) and uid != metadata.get("uid"):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata.get('uid', '')}"
        raise conflict(
            "pods",
            "",
            name,
            f"StorageError: invalid object, Code: 4, Key: /registry/pods/{metadata['namespace']}/{name}, "
            f"ResourceVersion: 0, AdditionalErrorMsg: {why}",
        )
    if "deletionTimestamp" in metadata:
        raise conflict("pods/binding", "", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := spec.get("nodeName"):
        raise conflict("pods/binding", "", name, f'pod {name} is already assigned to node "{node}"')
    if spec.get("schedulingGates"):
        raise conflict("pods/binding", "", name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    for key in ("annotations", "labels"):
        if added := said.get(key):
            metadata[key] = {**(metadata.get(key) or {}), **added}
    status = pod["status"] = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    set_condition(pod, {"type": "PodScheduled", "status": "True"}, now)
