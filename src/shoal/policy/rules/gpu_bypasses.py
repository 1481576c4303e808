"""Pods that reach GPUs past the scheduler: variables, devices of the host, privileged containers, runtime classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from shoal.policy.admission_rules.pod_expressions import listed
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, PodCheck, Policy, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.gpu_pods import FRACTION, MEMORY, all_containers, has_devices
from shoal.policy.kinds import WITH_PODS
from shoal.policy.object_set import kind_of
from shoal.policy.pod_templates import GPU, PodTemplateView, gpus_of, pod_templates
from shoal.policy.rules.gpu_requests import selects_gpu_nodes

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

_REMOVED: Final = f"leave it out, and request {GPU}"
_DEVICES: Final = "/dev/nvidia"
_IS_VARIABLE: Final = f"e.?name.orValue('') == '{VARIABLE}'"
_HIDES: Final = f"!has(e.valueFrom) && e.?value.orValue('') in {listed(NO_DEVICES)}"
_NAMES_NO_DEVICES: Final = (
    f"variables.annotations.all(k, !k.startsWith('{CDI_PREFIX}')) && variables.containers.all(c, "
    f"c.?env.orValue([]).all(e, !({_IS_VARIABLE}) || ({_HIDES}))"
    f" && c.?envFrom.orValue([]).all(f, f.?prefix.orValue('') == '' || !'{VARIABLE}'.startsWith(f.prefix))"
    f" && c.?volumeMounts.orValue([]).all(m, !m.?mountPath.orValue('').startsWith('{DEVICE_MOUNTS}')))"
)
_NO_DEVICES_IN_DATA: Final = " && ".join(
    f"!('{VARIABLE}' in dyn(object).?{field}.orValue({{}}))" for field in DATA_FIELDS
)
_IS_DEVICE_PATH: Final = (
    "p.size() == 0 || (p[0] == 'dev' && (p.size() == 1 || p[1].startsWith('nvidia')"
    f" || p[1] in {listed(DEVICE_FOLDERS)})) || p[0] == 'proc'"
    " || (p[0] == 'run' && (p.size() == 1 || p[1] == 'nvidia'))"
    " || (p[0] == 'var' && (p.size() == 1 || (p[1] == 'run' && (p.size() == 2 || p[2] == 'nvidia'))))"
)
_PATH_PARTS: Final = "v.?hostPath.?path.orValue('-').split('/').filter(s, !(s in ['', '.']))"
_NO_HOST_DEVICES: Final = f"variables.pod.?volumes.orValue([]).all(v, ![{_PATH_PARTS}].exists(p, {_IS_DEVICE_PATH}))"
_HAS_PART: Final = (
    f"variables.annotations[?'gpu-fraction'].orValue('').matches('^({FRACTION})$')"
    f" || variables.annotations[?'gpu-memory'].orValue('').matches('^({MEMORY})$')"
)
_NO_RUNTIME_CLASS: Final = (
    "!variables.pod.?runtimeClassName.orValue('').startsWith('nvidia') || variables.gpus"
    f" || {_HAS_PART}"
    f" || variables.containers.all(c, c.?env.orValue([]).exists(e, {_IS_VARIABLE} && {_HIDES}))"
)
_NODE_NAMESPACES: Final = ("-system", "gpu-operator")
_NO_PRIVILEGE: Final = "variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))"


@check(
    Rule(
        "SHL-305",
        "VisibleDevicesByHand",
        "warning",
        fault="a pod names the devices that its containers see",
        effect="the container may see GPUs of other pods, or none of its own",
        fix="leave the variable, annotation or mount out, and request nvidia.com/gpu",
        policy=Policy((PodCheck(_NAMES_NO_DEVICES, VISIBLE),), PodCheck(_NO_DEVICES_IN_DATA, IN_DATA)),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: main, image: "registry.example/train:1.4", env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}
""",
        changes=(Change("value: all", "value: none"),),
    ),
)
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


@check(
    Rule(
        "SHL-320",
        "GpuWithoutRequest",
        "warning",
        fault="a pod has access to GPUs that it does not request",
        effect="pods use GPUs that are allocated to others",
        fix="request nvidia.com/gpu instead",
        policy=Policy((PodCheck(_NO_HOST_DEVICES, HOST_DEVICES), PodCheck(_NO_RUNTIME_CLASS, RUNTIME))),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:1.4"}]
  volumes: [{name: gpu, hostPath: {path: /dev/nvidia0}}]
""",
        changes=(Change("hostPath: {path: /dev/nvidia0}", "emptyDir: {}"),),
    ),
)
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
        if is_nvidia and not has_devices(template) and not _hides_devices(template):
            fix = f"request {GPU}, or set NVIDIA_VISIBLE_DEVICES to none in each container"
            yield Advice("GpuWithoutRequest", f"{template.path}.runtimeClassName", RUNTIME, fix)


def has_device_files(path: str) -> bool:
    """Whether the path of a host has the device files of GPUs, or leads to them: each process of /proc has links to all
    files."""
    match [part for part in path.split("/") if part not in ("", ".")]:
        case [] | ["dev"] | ["proc", *_]:
            return True
        case ["run"] | ["run", "nvidia", *_] | ["var"] | ["var", "run"] | ["var", "run", "nvidia", *_]:
            return True
        case ["dev", folder, *_]:
            return folder.startswith("nvidia") or folder in DEVICE_FOLDERS
    return False


def _hides_devices(template: PodTemplateView) -> bool:
    return all(
        any(each.get("name") == VARIABLE and _hides(each) for each in maps(container.get("env")))
        for _, container in all_containers(template)
    )


@check(
    Rule(
        "SHL-354",
        "PrivilegedContainer",
        "warning",
        fault="a container is privileged",
        effect="the container uses GPUs that are allocated to others",
        fix="leave `privileged` out, and request nvidia.com/gpu",
        links=("https://kubernetes.io/docs/concepts/security/pod-security-standards/",),
        policy=Policy((PodCheck(_NO_PRIVILEGE, PRIVILEGED),)),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  nodeSelector: {nvidia.com/gpu.present: "true"}
  containers: [{name: main, image: "registry.example/train:1.4", securityContext: {privileged: true}}]
""",
        changes=(Change("privileged: true", "privileged: false"),),
    ),
)
def privileged_containers(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in all_containers(template):
            if dig(container, "securityContext", "privileged") is True:
                where = f"{path}.securityContext.privileged"
                yield Advice("PrivilegedContainer", where, PRIVILEGED, _REMOVED)


@check(also={"PrivilegedContainer": "a container is privileged"}, options=CheckOptions(in_files=True))
def privileged_in_files(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """What admission would refuse, of pods that run on nodes with GPUs. DaemonSets, components of nodes and their
    namespaces usually need the privilege."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    if kind_of(obj) not in WITH_PODS or namespace.endswith(_NODE_NAMESPACES):
        return
    templates = pod_templates(obj)
    if not any(map(_is_component, templates)) and any(map(_is_of_gpu_nodes, templates)):
        yield from privileged_containers(obj, context)


def _is_of_gpu_nodes(template: PodTemplateView) -> bool:
    """Nodes with TPUs have none, and their older runtimes need the privilege."""
    if any(name.startswith(_TPU_NODES) for name in string_keys(template.spec.get("nodeSelector"))):
        return False
    return has_devices(template) or selects_gpu_nodes(template.spec)


_TPU_NODES = "cloud.google.com/gke-tpu-"


@check(
    also={"VisibleDevicesByHand": "NVIDIA_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES is set"},
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"_VISIBLE_DEVICES",)),
)
def visible_devices(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """The device plugin decides which GPUs a container sees."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name, value = one.get("name"), str(one.get("value") or "")
                if name == "NVIDIA_VISIBLE_DEVICES" and value not in ("", "none", "void"):
                    what = f"{value} can expose GPUs of the node that are allocated to other pods"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")
                if name == "CUDA_VISIBLE_DEVICES" and value and gpus_of(container):
                    what = f"{value} selects among the GPUs of the container, which are numbered from 0 anyway"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")


@check(
    Rule(
        "SHL-214",
        "ToleratesAll",
        "warning",
        fault="a pod with GPUs tolerates every taint",
        effect="the pods are placed on unhealthy or reserved nodes too",
        fix="name the taint that the pods should tolerate",
        at_admission="warning",
        bad="""\
tolerations: [{operator: Exists}]
containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(Change("{operator: Exists}", "{key: nvidia.com/gpu, operator: Exists}"),),
    ),
    also={"GpuWithoutRequest": "a pod has access to GPUs that it does not request"},
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"/dev/nvidia", b'runtimeClassName":"nvidia"', b'{"operator":"Exists"}')),
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
