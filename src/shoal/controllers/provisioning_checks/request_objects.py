"""Makes the ProvisioningRequest of a Workload and its PodTemplates, from the Workload and the check's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from shoal.client.ecosystem_kinds import PROVISIONING_REQUESTS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.owner_reference import controlled_by
from shoal.controllers.queued_work.pod_set_info import PodSetInfo, merge_lists
from shoal.store.queues.job_parts import dig

_LONGEST: Final = 253
_PREFIX: Final = "ppt"
MANAGED: Final = "kueue.x-k8s.io/managed"

Raw = Mapping[str, Any]


class CheckConfig(msgspec.Struct, frozen=True):
    """A ProvisioningRequestConfig."""

    class_name: str
    parameters: Mapping[str, str]
    managed_resources: frozenset[str]
    """Pod sets without any of these need no capacity; empty means that all need it."""
    retries: int
    base_s: int
    longest_s: int
    selectors: Sequence[tuple[str, str]]
    """Node labels, and the details of the request that are their values."""
    merges: bool
    """Whether pod sets with equal templates are requested as one."""

    def retry_s(self, attempt: int) -> int:
        return int(min(self.base_s * 2 ** min(attempt - 1, 30), self.longest_s))


def config_of(raw: Raw) -> CheckConfig:
    spec: Raw = raw.get("spec") or {}
    retry: Raw = spec.get("retryStrategy") or {}
    selectors = (spec.get("podSetUpdates") or {}).get("nodeSelector") or ()
    return CheckConfig(
        class_name=str(spec.get("provisioningClassName", "")),
        parameters=spec.get("parameters") or {},
        managed_resources=frozenset(spec.get("managedResources") or ()),
        retries=_number(retry, "backoffLimitCount", 3),
        base_s=_number(retry, "backoffBaseSeconds", 60),
        longest_s=_number(retry, "backoffMaxSeconds", 1800),
        selectors=[(str(each["key"]), str(each["valueFromProvisioningClassDetail"])) for each in selectors],
        merges=bool(spec.get("podSetMergePolicy")),
    )


def _number(given: Raw, name: str, otherwise: int) -> int:
    found = given.get(name)
    return otherwise if found is None else int(found)


def request_name(workload: str, uid: str, check: str, attempt: int) -> str:
    """A Workload that is made again under its name gets other requests."""
    return _with_digest(f"{workload}-{check}-{attempt}", uid.encode())


def managed_pod_sets(workload: Raw, config: CheckConfig) -> list[Obj]:
    """The pod sets for which capacity is requested."""
    return [
        each
        for each in dig(workload, ("spec", "podSets")) or ()
        if not config.managed_resources or not config.managed_resources.isdisjoint(_resources(each))
    ]


def _resources(pod_set: Raw) -> set[str]:
    spec: Raw = dig(pod_set, ("template", "spec")) or {}
    found: set[str] = set()
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        found |= {*(resources.get("requests") or ()), *(resources.get("limits") or ())}
    return found


def request_objects(
    workload: Raw, name: str, config: CheckConfig, infos: Mapping[str, PodSetInfo]
) -> tuple[Obj, list[Obj]]:
    """The ProvisioningRequest and its PodTemplates. `infos`: what the admission adds to each pod set, by its name."""
    namespace = workload["metadata"]["namespace"]
    owner = controlled_by(WORKLOADS, workload["metadata"]["name"], workload["metadata"]["uid"])
    templates: list[Obj] = []
    sets: list[Obj] = []
    for pod_set in managed_pod_sets(workload, config):
        info = infos[str(pod_set.get("name", "main"))]
        template = _template(pod_set, info)
        same = next((place for place, each in enumerate(templates) if each["template"] == template), None)
        if config.merges and same is not None:
            sets[same]["count"] += info.count
            continue
        templates.append(
            {
                "metadata": {
                    # A later request of this name may need another template.
                    "name": _with_digest(
                        f"{_PREFIX}-{name}-{info.name}", msgspec.json.encode(template, order="sorted")
                    ),
                    "namespace": namespace,
                    "labels": {MANAGED: "true"},
                    "ownerReferences": [owner],
                },
                "template": template,
            }
        )
        sets.append({"podTemplateRef": {"name": templates[-1]["metadata"]["name"]}, "count": info.count})
    request: Obj = {
        "apiVersion": PROVISIONING_REQUESTS.api_version,
        "kind": PROVISIONING_REQUESTS.name,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {MANAGED: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"provisioningClassName": config.class_name, "parameters": dict(config.parameters), "podSets": sets},
    }
    return request, templates


def _template(pod_set: Raw, info: PodSetInfo) -> Obj:
    template: Raw = pod_set.get("template") or {}
    spec: Raw = template.get("spec") or {}
    more: Obj = {}
    if info.node_selector:
        more["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **info.node_selector}
    if info.tolerations:
        more["tolerations"] = merge_lists(spec.get("tolerations") or (), info.tolerations)
    return {"metadata": dict(template.get("metadata") or {}), "spec": {**spec, **more}}


def _with_digest(name: str, of: bytes) -> str:
    """An object name that differs where the name or `of` does."""
    digest = blake2b(name.encode() + b"\n" + of, digest_size=5).hexdigest()
    return f"{name[: _LONGEST - len(digest) - 1]}-{digest}"
