"""Makes the pods that a ProvisioningRequest asks capacity for, less those that use it already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from shoal.api.decode import convert
from shoal.api.pod import Pod
from shoal.autoscale.provisioning_requests.request import CONSUME, OLD_CONSUME, ProvisioningRequest
from shoal.units.errors import UserError, Where

_MOST_PODS: Final = 10_000
_REQUESTED: Final = "-requested-"
"""In the names of the pods: they exist in plans only."""

Raw = Mapping[str, Any]


def requested_pods(request: ProvisioningRequest, templates: Mapping[str, Raw]) -> tuple[Pod, ...]:
    """All pods of the request. `templates`: the PodTemplates of its namespace. Raises UserError if there are none."""
    where = Where(obj=f"ProvisioningRequest {request.name}", path="spec.podSets")
    if sum(each.count for each in request.pod_sets) > _MOST_PODS:
        raise UserError("too many pods", where=where, fix=f"at most {_MOST_PODS} are planned together")
    made: list[Pod] = []
    for number, wanted in enumerate(request.pod_sets):
        here = where.below(f"[{number}].podTemplateRef.name")
        template = templates.get(wanted.template)
        if template is None:
            raise UserError(
                f"PodTemplate {wanted.template} not found", where=here, fix="create it, or correct the name"
            )
        names = [f"{request.name}{_REQUESTED}{number}-{place}" for place in range(wanted.count)]
        made += pods_of_template(template, request.namespace, names, here)
    if not made:
        raise UserError("no pods are requested", where=where, fix="set a count of 1 or more")
    return tuple(made)


def pods_of_template(template: Raw, namespace: str, names: Iterable[str], where: Where) -> tuple[Pod, ...]:
    """Pods as the template describes them. Raises UserError at `where` if it describes none."""
    meta: Raw = template.get("metadata") or {}
    notes = {"labels": meta.get("labels") or {}, "annotations": meta.get("annotations") or {}}
    made = convert({"metadata": {"namespace": namespace, **notes}, "spec": template.get("spec") or {}}, Pod, where)
    return tuple(replace(made, metadata=replace(made.metadata, name=name)) for name in names)


def unconsumed(request: ProvisioningRequest, pods: Sequence[Pod], present: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods of the request for which no pod has been created yet. `present`: the pods of the cluster."""
    left = list(pods)
    for pod in present:
        notes = pod.metadata.annotations
        if pod.metadata.namespace != request.namespace or pod.is_finished():
            continue
        if request.name not in (notes.get(CONSUME), notes.get(OLD_CONSUME)) or not left:
            continue
        wanted = _requests(pod)
        left.remove(next((each for each in left if _requests(each) == wanted), left[0]))
    return tuple(left)


def _requests(pod: Pod) -> tuple[object, ...]:
    return tuple(container.resources for container in pod.spec.containers)
