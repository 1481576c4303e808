"""Makes the pods that a ProvisioningRequest asks capacity for, less those that use it already."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
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
_Requests = tuple[object, ...]


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
    left = _Left(pods)
    for pod in present:
        notes = pod.metadata.annotations
        if pod.metadata.namespace != request.namespace or pod.is_finished():
            continue
        if request.name in (notes.get(CONSUME), notes.get(OLD_CONSUME)):
            left.take_one_like(pod)
    return left.pods()


class _Left:
    """Pods by what they request. There are few kinds and many pods."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._kinds: list[tuple[_Requests, deque[tuple[int, Pod]]]] = []
        for _, equal in groupby(enumerate(pods), key=lambda each: id(each[1].spec)):
            same = list(equal)
            self._of(_requests(same[0][1])).extend(same)

    def take_one_like(self, pod: Pod) -> None:
        """A pod with the same requests, or the first one."""
        wanted = _requests(pod)
        found = next((kind for requests, kind in self._kinds if kind and requests == wanted), None)
        if found is None:
            found = min((kind for _, kind in self._kinds if kind), key=lambda kind: kind[0][0], default=None)
        if found is not None:
            found.popleft()

    def pods(self) -> tuple[Pod, ...]:
        """In their first order."""
        return tuple(pod for _, pod in sorted(chain.from_iterable(kind for _, kind in self._kinds), key=itemgetter(0)))

    def _of(self, requests: _Requests) -> deque[tuple[int, Pod]]:
        for known, kind in self._kinds:
            if known == requests:
                return kind
        self._kinds.append((requests, deque()))
        return self._kinds[-1][1]


def _requests(pod: Pod) -> _Requests:
    return tuple(container.resources for container in pod.spec.containers)
