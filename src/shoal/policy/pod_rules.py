"""Checks what belongs together within a pod: volumes and mounts, ports and probes, names of GPUs, and what pods may not
have that share GPUs with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from shoal.data.mig import RESOURCE_PREFIX, layouts
from shoal.policy.advice import Advice, Correction, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.pod_templates import GPU, PodTemplateView, command_words, gpus_of, pod_templates
from shoal.units.near_texts import nearest_name

_GPU_NAMES: Final = frozenset({GPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi"})
_NEAR_GPU: Final = {
    "nvidia.com/gpus": GPU,
    "nvidia.com/GPU": GPU,
    "nvidia/gpu": GPU,
    "nvidia.com.gpu": GPU,
    "nvidia-com/gpu": GPU,
    "nvidia.com/gpu.count": GPU,
    "nvidia.gpu": GPU,
    "gpu": GPU,
    "alpha.kubernetes.io/nvidia-gpu": GPU,
    "amd.com/gpus": "amd.com/gpu",
}
_MOST_GPUS: Final = 16
"""No machine of the catalogue has more."""
_DEVICES: Final = "/dev/nvidia"
_SHM: Final = "/dev/shm"  # noqa: S108 - the path in a container
_LOADERS: Final = ("torchrun", "torch.distributed", "deepspeed", "accelerate", "mpirun", "horovodrun")


@rule(
    NoSuchVolume="a container mounts a volume that the pod does not have",
    NoSuchPort="a probe names a port that the container does not have",
    GivenTwice="two entries of a list have the same name",
    NoImage="a container has no image",
)
def pod_parts(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        if "containers" not in template.spec or obj.get("kind") in ("Workflow", "InferenceService"):
            continue
        volumes = [str(each.get("name")) for each in maps(template.spec.get("volumes"))]
        yield from _twice(f"{template.path}.volumes", volumes)
        containers = [str(each.get("name")) for _, each in template.containers()]
        yield from _twice(f"{template.path}.containers", containers)
        claims = {str(dig(each, "metadata", "name")) for templates in _claim_templates(obj) for each in maps(templates)}
        for path, container in template.containers():
            yield from _mounts(path, container, {*volumes, *claims})
            yield from _probes(path, container)
            yield from _twice(f"{path}.env", [str(each.get("name")) for each in maps(container.get("env"))])
            ports = [str(each["name"]) for each in maps(container.get("ports")) if each.get("name")]
            yield from _twice(f"{path}.ports", ports)
            if not container.get("image"):
                yield Advice("NoImage", f"{path}.image", "is missing: the pod is refused", "name an image")


def _claim_templates(obj: Obj) -> Iterator[Any]:
    """Lists of claims that become volumes of the pods: of StatefulSets, LeaderWorkerSets and JobSets."""
    yield dig(obj, "spec", "volumeClaimTemplates")
    yield dig(obj, "spec", "leaderWorkerTemplate", "volumeClaimTemplates")
    for policy in maps(dig(obj, "spec", "volumeClaimPolicies")):
        yield policy.get("templates")


def _mounts(path: str, container: Obj, volumes: set[str]) -> Iterator[Advice]:
    for at, mount in enumerate(maps(container.get("volumeMounts"))):
        name = str(mount.get("name"))
        if name not in volumes:
            near = nearest_name(name, volumes)
            fix = f"did you mean {near}?" if near else f"add {name} to the volumes of the pod"
            here = f"{path}.volumeMounts[{at}].name"
            yield Advice("NoSuchVolume", here, f"the pod has no volume {name}", fix, _value(near))


def _probes(path: str, container: Obj) -> Iterator[Advice]:
    named = {str(each["name"]) for each in maps(container.get("ports")) if each.get("name")}
    declared = (each.get("containerPort") for each in maps(container.get("ports")))
    numbers = {number for number in declared if isinstance(number, int)}
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        for action in ("httpGet", "tcpSocket"):
            port = dig(container, probe, action, "port")
            if isinstance(port, str) and not port.isdecimal() and port not in named:
                near = nearest_name(port, named)
                fix = f"did you mean {near}?" if near else "name a port of the container, or write its number"
                here = f"{path}.{probe}.{action}.port"
                yield Advice("NoSuchPort", here, f"the container has no port {port}", fix, _value(near))
            elif numbers and isinstance(port, int) and port not in numbers:
                what = f"the container declares the port {' and '.join(map(str, sorted(numbers)))}, and not {port}"
                here = f"{path}.{probe}.{action}.port"
                yield Advice("NoSuchPort", here, what, "name a port of the container, or declare this one")


def _value(near: str) -> Correction | None:
    return Correction(value=near) if near else None


def _twice(path: str, names: list[str]) -> Iterator[Advice]:
    for name, count in Counter(names).items():
        if count > 1:
            last = len(names) - 1 - names[::-1].index(name)
            yield Advice("GivenTwice", f"{path}[{last}].name", f"{name} is given {count} times", "keep one of them")


@rule(
    UnknownGpuName="a resource has a name that no device plugin of GPUs advertises",
    UnknownMigProfile="no GPU has the MIG profile",
    MixedGpuNames="a container requests GPUs and MIG instances, or shares beside whole GPUs",
    TooManyGpus="a container requests more GPUs than a machine has",
)
def gpu_names(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in template.containers():
            for field in ("limits", "requests"):
                amounts = string_keys(dig(container, "resources", field))
                yield from _names(f"{path}.resources.{field}", amounts)
            limits = string_keys(dig(container, "resources", "limits"))
            yield from _mixed(f"{path}.resources.limits", limits)
            if gpus_of(container) > _MOST_GPUS:
                what = f"{gpus_of(container)} GPUs: a pod runs on one node, and no machine has more than {_MOST_GPUS}"
                yield Advice("TooManyGpus", f"{path}.resources.limits[{GPU}]", what, "divide them among several pods")


def _names(path: str, amounts: Obj) -> Iterator[Advice]:
    for name in amounts:
        here = f"{path}[{name}]"
        meant = _NEAR_GPU.get(name) or _misspelled(name)
        if meant:
            what = f"no device plugin advertises {name}: the pods stay pending"
            yield Advice("UnknownGpuName", here, what, f"did you mean {meant}?", Correction(key=meant))
        elif name.startswith(RESOURCE_PREFIX) and not any(layout.profile(_profile(name)) for layout in layouts()):
            known = {profile.resource for layout in layouts() for profile in layout.profiles}
            near = nearest_name(name, known)
            fix = f"did you mean {near}?" if near else "use a profile of your GPUs: `nvidia-smi mig -lgip`"
            yield Advice(
                "UnknownMigProfile", here, f"no GPU has the profile {_profile(name)}: the pods stay pending", fix
            )


def _misspelled(name: str) -> str:
    """A name of GPUs that this one resembles: another domain with the same last part, or a letter more or less."""
    domain, _, last = name.partition("/")
    if last == "gpu" and name not in _GPU_NAMES and domain.startswith(("nvid", "nvdi", "nivid", "vnid", "nvida")):
        return GPU
    return ""


def _profile(name: str) -> str:
    return name.removeprefix(RESOURCE_PREFIX).removesuffix(".shared")


def _mixed(path: str, limits: Obj) -> Iterator[Advice]:
    mig = [name for name in limits if name.startswith(RESOURCE_PREFIX)]
    whole = [name for name in (GPU, f"{GPU}.shared") if name in limits]
    if (mig and whole) or len(whole) > 1:
        names = " and ".join([*whole, *mig])
        what = f"{names} in one container: a node has one or the other, or CUDA uses one of them only"
        yield Advice("MixedGpuNames", path, what, "request one of them")


@rule(
    GpuWithoutRequest="a pod has access to GPUs that it does not request",
    ToleratesAll="a pod with GPUs tolerates every taint",
)
def unaccounted_gpus(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Devices of the host and privileged containers reach GPUs that are allocated to other pods."""
    for template in pod_templates(obj):
        for at, volume in enumerate(maps(template.spec.get("volumes"))):
            host = dig(volume, "hostPath", "path")
            if isinstance(host, str) and host.startswith(_DEVICES) and not _is_component(template):
                what = f"{host} of the host gives the container GPUs that the scheduler does not count"
                yield Advice("GpuWithoutRequest", f"{template.path}.volumes[{at}]", what, f"request {GPU} instead")
        if (
            template.spec.get("runtimeClassName") == "nvidia"
            and not template.asks_gpus()
            and not _is_component(template)
        ):
            what = "the runtime class nvidia without a request: the container may see all GPUs of the node"
            fix = f"request {GPU}, or set NVIDIA_VISIBLE_DEVICES to none"
            if not _hides_gpus(template):
                yield Advice("GpuWithoutRequest", f"{template.path}.runtimeClassName", what, fix)
        for at, toleration in enumerate(maps(template.spec.get("tolerations"))):
            is_all = (
                not toleration.get("key") and toleration.get("operator") == "Exists" and not toleration.get("effect")
            )
            if is_all and template.asks_gpus() and obj.get("kind") != "DaemonSet":
                what = "every taint is tolerated, also those of unhealthy and reserved nodes"
                yield Advice(
                    "ToleratesAll", f"{template.path}.tolerations[{at}]", what, f"name the taint, such as {GPU}"
                )


def _hides_gpus(template: PodTemplateView) -> bool:
    values: list[Any] = [
        each.get("value")
        for _, container in template.containers()
        for each in maps(container.get("env"))
        if each.get("name") == "NVIDIA_VISIBLE_DEVICES"
    ]
    return bool(values) and all(value in ("", "none", "void") for value in values)


def _is_component(template: PodTemplateView) -> bool:
    """Device plugins, exporters and drivers manage the GPUs of a node: they do not compute."""
    return any(
        part in str(container.get("image"))
        for _, container in template.containers()
        for part in (
            "device-plugin",
            "dcgm",
            "driver",
            "container-toolkit",
            "mig-manager",
            "gpu-operator",
            "feature-discovery",
        )
    )


@rule(
    SmallSharedMemory="processes of a container share data, and /dev/shm has the default of 64 MB",
    NoMemoryRequest="a pod with GPUs requests no memory",
    UnpinnedImage="an image has no version",
)
def usual_omissions(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        if not template.asks_gpus():
            continue
        for path, container in template.containers():
            words = " ".join(command_words(container))
            mounts = {str(each.get("mountPath")) for each in maps(container.get("volumeMounts"))}
            if gpus_of(container) > 1 and any(each in words for each in _LOADERS) and _SHM not in mounts:
                what = "several processes without an emptyDir at /dev/shm: data loaders and NCCL end with a bus error"
                fix = "mount an emptyDir with medium: Memory at /dev/shm"
                yield Advice("SmallSharedMemory", f"{path}.volumeMounts", what, fix)
            if gpus_of(container) and not _has_memory(container) and not dig(template.spec, "resources"):
                what = "no request for memory: the pod is evicted first when the node runs out of it"
                yield Advice("NoMemoryRequest", f"{path}.resources", what, "request memory and CPU beside the GPU")
            image = str(container.get("image") or "")
            if image.endswith(":latest") or (image and ":" not in image.rpartition("/")[2] and "@" not in image):
                what = f"{image} can be another image tomorrow, so runs cannot be repeated"
                yield Advice("UnpinnedImage", f"{path}.image", what, "name a version or a digest")


def _has_memory(container: Obj) -> bool:
    return any("memory" in string_keys(dig(container, "resources", field)) for field in ("limits", "requests"))
