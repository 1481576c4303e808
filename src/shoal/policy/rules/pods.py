"""Checks what belongs together within a pod: volumes and mounts, ports and probes, names of GPUs, and what pods may not
have that share GPUs with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from shoal.data.mig import RESOURCE_PREFIX, layouts
from shoal.devices.names import is_accelerator
from shoal.policy.advice import Advice, Correction, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import WITH_PODS
from shoal.policy.pod_templates import GPU, gpus_of, pod_templates
from shoal.units.near_texts import nearest_name

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


@check(
    Rule(
        "SHL-316",
        "NoSuchVolume",
        "error",
        fault="a container mounts a volume that the pod does not have",
        effect="the pod is refused",
        fix="name a volume of the pod, or add the volume",
        links=("https://kubernetes.io/docs/concepts/storage/volumes/",),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: main, image: "registry.example/train:1.4", volumeMounts: [{name: dta, mountPath: /data}]}
  volumes: [{name: data, emptyDir: {}}]
""",
        changes=(Change("name: dta", "name: data"),),
    ),
    Rule(
        "SHL-317",
        "NoSuchPort",
        "error",
        fault="a probe names a port that the container does not have",
        effect="the probe fails, so the container is restarted or never ready",
        fix="name a port of the container",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: serve}
spec:
  containers:
  - name: main
    image: registry.example/serve:1.4
    ports: [{name: http, containerPort: 8000}]
    readinessProbe: {httpGet: {path: /health, port: web}}
""",
        changes=(Change("port: web", "port: http"),),
    ),
    Rule(
        "SHL-318",
        "GivenTwice",
        "error",
        fault="two entries of a list have the same name",
        effect="the object is refused, or the last entry replaces the others",
        fix="keep one of the entries",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    image: registry.example/train:1.4
    env: [{name: BATCH, value: "8"}, {name: BATCH, value: "16"}]
""",
        changes=(Change('{name: BATCH, value: "8"}, ', ""),),
    ),
    Rule(
        "SHL-319",
        "NoImage",
        "error",
        fault="a container has no image",
        effect="the pod is refused",
        fix="name an image",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: main}]}
""",
        changes=(Change("{name: main}", '{name: main, image: "registry.example/train:1.4"}'),),
    ),
    options=CheckOptions(in_files=True),
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


@check(
    Rule(
        "SHL-210",
        "UnknownGpuName",
        "error",
        fault="a resource has a name that no device plugin of GPUs advertises",
        effect="no node advertises the resource, so the pods stay pending",
        fix="write the resource as the device plugin advertises it, such as nvidia.com/gpu",
        links=("https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",),
        at_admission="webhook",
        bad="""\
name: train
image: registry.example/train:1.4
resources: {limits: {nvidia.com/gpus: 1}}
""",
        changes=(Change("gpus:", "gpu:"),),
    ),
    Rule(
        "SHL-211",
        "UnknownMigProfile",
        "error",
        fault="no GPU has the MIG profile",
        effect="no node advertises the resource, so the pods stay pending",
        fix="use a profile of your GPUs: `nvidia-smi mig -lgip`",
        at_admission="webhook",
        bad="""\
name: serve
image: registry.example/serve:1.4
resources: {limits: {nvidia.com/mig-1g.15gb: 1}}
""",
        changes=(Change("1g.15gb", "1g.10gb"),),
    ),
    Rule(
        "SHL-212",
        "MixedGpuNames",
        "error",
        fault="a container requests GPUs and MIG instances, or shares beside whole GPUs",
        effect="no node offers both, or the process uses one of them only",
        fix="request one of them",
        at_admission="webhook",
        bad="""\
name: train
image: registry.example/train:1.4
resources: {limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1}}
""",
        changes=(Change(", nvidia.com/mig-1g.10gb: 1", ""),),
    ),
    Rule(
        "SHL-213",
        "TooManyGpus",
        "error",
        fault="a container requests more GPUs than a machine has",
        effect="no node fits, so the pods stay pending",
        fix="divide the GPUs among several pods",
        at_admission="webhook",
        bad="""\
name: train
image: registry.example/train:1.4
resources: {limits: {nvidia.com/gpu: 32}}
""",
        changes=(Change("gpu: 32", "gpu: 8"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(
        hints=(
            b"nvidia.com/mig-",
            b"nvidia.com/gpu.",
            b"nvidia.com/gpus",
            b"nvidia.com/GPU",
            b"nvidia/gpu",
            b"nvidia.com.gpu",
            b"nvidia-com/gpu",
            b"nvidia.gpu",
            b"nvidia-gpu",
            b"amd.com/gpus",
        )
    ),
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
    if last == "gpu" and not is_accelerator(name) and domain.startswith(("nvid", "nvdi", "nivid", "vnid", "nvida")):
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
