"""The rules of pods with GPUs that clusters may enforce, on objects of any kind with pod templates.

`policy_rules.py` has the same rules as expressions for API servers; a test compares both on generated pods. They are
not part of `shoal lint`: many sound manifests do not keep the rules of one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.admission_rules.modes import MAXIMUM_LABEL
from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import NAMESPACE
from shoal.policy.object_set import key_of
from shoal.policy.pod_templates import GPU, PodTemplateView, pod_templates
from shoal.units.numbers import whole_of

EQUAL: Final = "GPU requests must equal limits"
TOLERATION: Final = "GPU pods must tolerate nvidia.com/gpu taint"
AFFINITY: Final = "GPU pods must specify nodeAffinity for GPU nodes"
VISIBLE: Final = (
    "NVIDIA_VISIBLE_DEVICES, annotations of CDI and mounts of devices would add GPUs that were not allocated"
)
IN_DATA: Final = "NVIDIA_VISIBLE_DEVICES in a ConfigMap or Secret adds GPUs that were not allocated, by envFrom"
HOST_DEVICES: Final = "volumes with device files of the host give a pod GPUs that were not allocated"
PRIVILEGED: Final = "privileged containers have access to all GPUs of the node"
RUNTIME: Final = "the runtime class nvidia without a request gives a pod GPUs that were not allocated"

DEVICE_FOLDERS: Final = ("dri", "char", "vfio")
"""Folders of /dev with device files of GPUs."""
VARIABLE: Final = "NVIDIA_VISIBLE_DEVICES"
DATA_FIELDS: Final = ("data", "stringData", "binaryData")
NO_DEVICES: Final = ("", "none", "void")
CDI_PREFIX: Final = "cdi.k8s.io/"
DEVICE_MOUNTS: Final = "/var/run/nvidia-container-devices"
PART_ANNOTATIONS: Final = ("gpu-fraction", "gpu-memory")
NODE_LABELS: Final = ("nvidia.com/", "gpu", "accelerator", "pci-10de", "node.kubernetes.io/instance-type")
"""A label whose name contains one of these tells nodes with GPUs from others."""
SELECTING: Final = ("In", "Exists", "Gt", "Lt")
_REMOVED: Final = f"leave it out, and request {GPU}"
_MOST_DIGITS: Final = 6


def is_gpu(resource: str) -> bool:
    """Whether it is a whole GPU, a MIG instance, or a share of either."""
    return resource == GPU or resource.startswith((f"{GPU}.", "nvidia.com/mig-"))


def all_containers(template: PodTemplateView) -> Iterator[tuple[str, Obj]]:
    """Also those that were added to a running pod."""
    yield from template.containers()
    for at, container in enumerate(maps(template.spec.get("ephemeralContainers"))):
        yield f"{template.path}.ephemeralContainers[{at}]", container


def _amounts(container: Obj, field: str) -> dict[str, Any]:
    found = string_keys(dig(container, "resources", field))
    return {name: amount for name, amount in found.items() if is_gpu(name)}


def asks_gpus(template: PodTemplateView) -> bool:
    return any(
        str(amount) != "0"
        for _, container in all_containers(template)
        for field in ("limits", "requests")
        for amount in _amounts(container, field).values()
    )


@rule(UnequalGpus="a container requests another number of GPUs than its limit, or has no limit")
def equal_gpus(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in all_containers(template):
            limits = _amounts(container, "limits")
            for name, amount in _amounts(container, "requests").items():
                if str(limits.get(name, "")) != str(amount):
                    here = f"{path}.resources.requests[{name}]"
                    yield Advice(
                        "UnequalGpus", here, EQUAL, f"set limits[{name}] to {amount}, or leave out the request"
                    )


@rule(NoGpuToleration="a pod with GPUs does not tolerate the taint of GPU nodes")
def gpu_tolerations(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        if asks_gpus(template) and not any(map(_tolerates, maps(template.spec.get("tolerations")))):
            fix = f"add the toleration key {GPU}, operator Exists, effect NoSchedule"
            yield Advice("NoGpuToleration", f"{template.path}.tolerations", TOLERATION, fix)


def _tolerates(toleration: Obj) -> bool:
    key = toleration.get("key") or ""
    is_meant = key == GPU or (not key and toleration.get("operator") == "Exists")
    return is_meant and (toleration.get("effect") or "") in ("", "NoSchedule")


@rule(NoGpuNodeAffinity="a pod with GPUs does not select nodes with GPUs")
def gpu_node_affinity(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """A node selector counts as well."""
    for template in pod_templates(obj):
        if asks_gpus(template) and not selects_gpu_nodes(template.spec):
            fix = "select a label of the nodes, such as nvidia.com/gpu.present=true"
            yield Advice("NoGpuNodeAffinity", f"{template.path}.affinity.nodeAffinity", AFFINITY, fix)


def selects_gpu_nodes(spec: Obj) -> bool:
    if spec.get("nodeName") or any(map(_is_node_label, string_keys(spec.get("nodeSelector")))):
        return True
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = maps(dig(required, "nodeSelectorTerms"))
    return bool(terms) and all(
        bool(term.get("matchFields")) or any(map(_is_selecting, maps(term.get("matchExpressions")))) for term in terms
    )


def _is_selecting(expression: Obj) -> bool:
    return _is_node_label(str(expression.get("key") or "")) and expression.get("operator") in SELECTING


def _is_node_label(name: str) -> bool:
    return any(part in name for part in NODE_LABELS)


@rule(VisibleDevicesByHand="a pod names the devices that its containers see")
def named_devices(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Also in ConfigMaps and Secrets: containers take all entries as variables, with a prefix if they name one."""
    if obj.get("kind") in ("ConfigMap", "Secret"):
        for field in DATA_FIELDS:
            if VARIABLE in string_keys(obj.get(field)):
                yield Advice("VisibleDevicesByHand", f"{field}[{VARIABLE}]", IN_DATA, _REMOVED)
    for template in pod_templates(obj):
        for name in string_keys(template.annotations):
            if name.startswith(CDI_PREFIX):
                where = template.path.removesuffix("spec") + f"metadata.annotations[{name}]"
                yield Advice("VisibleDevicesByHand", where, VISIBLE, _REMOVED)
        for path, container in all_containers(template):
            for at, variable in enumerate(maps(container.get("env"))):
                if variable.get("name") == VARIABLE and not _hides(variable):
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", VISIBLE, _REMOVED)
            for at, source in enumerate(maps(container.get("envFrom"))):
                if source.get("prefix") and VARIABLE.startswith(str(source["prefix"])):
                    yield Advice("VisibleDevicesByHand", f"{path}.envFrom[{at}].prefix", VISIBLE, _REMOVED)
            for at, mount in enumerate(maps(container.get("volumeMounts"))):
                if str(mount.get("mountPath") or "").startswith(DEVICE_MOUNTS):
                    yield Advice("VisibleDevicesByHand", f"{path}.volumeMounts[{at}]", VISIBLE, _REMOVED)


def _hides(variable: Obj) -> bool:
    return "valueFrom" not in variable and (variable.get("value") or "") in NO_DEVICES


@rule(GpuWithoutRequest="a pod has access to GPUs that it does not request")
def unrequested_devices(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for at, volume in enumerate(maps(template.spec.get("volumes"))):
            if has_device_files(str(dig(volume, "hostPath", "path") or "-")):
                yield Advice(
                    "GpuWithoutRequest",
                    f"{template.path}.volumes[{at}].hostPath",
                    HOST_DEVICES,
                    _REMOVED,
                )
        is_nvidia = str(template.spec.get("runtimeClassName") or "").startswith("nvidia")
        if is_nvidia and not _has_devices(template) and not _hides_devices(template):
            fix = f"request {GPU}, or set NVIDIA_VISIBLE_DEVICES to none in each container"
            yield Advice("GpuWithoutRequest", f"{template.path}.runtimeClassName", RUNTIME, fix)


def has_device_files(path: str) -> bool:
    """Whether the path of a host has the device files of GPUs, or leads to them."""
    match [part for part in path.split("/") if part not in ("", ".")]:
        case [] | ["dev"] | ["run", "nvidia", *_] | ["var", "run", "nvidia", *_]:
            return True
        case ["dev", folder, *_]:
            return folder.startswith("nvidia") or folder in DEVICE_FOLDERS
        case ["proc", *others]:
            return "root" in others
    return False


def _has_devices(template: PodTemplateView) -> bool:
    is_part = any(name in template.annotations for name in PART_ANNOTATIONS)
    return asks_gpus(template) or is_part or bool(template.spec.get("resourceClaims"))


def _hides_devices(template: PodTemplateView) -> bool:
    return all(
        any(each.get("name") == VARIABLE and _hides(each) for each in maps(container.get("env")))
        for _, container in all_containers(template)
    )


@rule(PrivilegedContainer="a container is privileged")
def privileged_containers(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in all_containers(template):
            if dig(container, "securityContext", "privileged") is True:
                where = f"{path}.securityContext.privileged"
                yield Advice("PrivilegedContainer", where, PRIVILEGED, _REMOVED)


@rule(OverNamespaceMaximum="a pod requests more GPUs than its namespace allows one pod")
def namespace_maximum(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The maximum is a label of the namespace."""
    namespace, _ = key_of(obj)
    labels = string_keys(dig(context.find(NAMESPACE, "", namespace), "metadata", "labels"))
    most = maximum_of(labels)
    for template in pod_templates(obj):
        asked = _gpu_count(template)
        if most is not None and asked > most:
            what = over_maximum(most)
            yield Advice(
                "OverNamespaceMaximum", f"{template.path}.containers", what, "divide the GPUs among several pods"
            )


def maximum_of(labels: Mapping[str, Any]) -> int | None:
    text = str(labels.get(MAXIMUM_LABEL, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def over_maximum(most: int) -> str:
    return f"pods of this namespace must not request more than {most} GPUs"


def _gpu_count(template: PodTemplateView) -> int:
    together = sum(_limit_count(each) for each in maps(template.spec.get("containers")))
    return max([together, *(_limit_count(each) for each in maps(template.spec.get("initContainers")))])


def _limit_count(container: Obj) -> int:
    return sum(whole_of(str(amount)) or 0 for amount in _amounts(container, "limits").values())
