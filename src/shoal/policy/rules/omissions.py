"""What manifests of pods with GPUs usually lack: shared memory, a request for memory, the version of an image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import WITH_PODS
from shoal.policy.pod_templates import command_words, gpus_of, pod_templates

_SHM: Final = "/dev/shm"  # noqa: S108 - the path in a container
_LOADERS: Final = ("torchrun", "torch.distributed", "deepspeed", "accelerate", "mpirun", "horovodrun")


@check(
    Rule(
        "SHL-321",
        "SmallSharedMemory",
        "info",
        fault="processes of a container share data, and /dev/shm has the default of 64 MB",
        effect="processes end with a bus error",
        fix="mount an emptyDir with medium: Memory at /dev/shm",
        links=("https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    image: registry.example/train:1.4
    command: [torchrun, --nproc_per_node=8, train.py]
    resources: {limits: {nvidia.com/gpu: 8, memory: 64Gi}}
    volumeMounts: [{name: shm, mountPath: /tmp/shm}]
  volumes: [{name: shm, emptyDir: {medium: Memory}}]
""",
        changes=(Change("mountPath: /tmp/shm", f"mountPath: {_SHM}"),),
    ),
    Rule(
        "SHL-322",
        "NoMemoryRequest",
        "info",
        fault="a pod with GPUs requests no memory",
        effect="the pod is evicted first when memory is short",
        fix="request memory and CPU beside the GPU",
        links=("https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(Change("{nvidia.com/gpu: 1}", "{nvidia.com/gpu: 1, memory: 32Gi}"),),
    ),
    Rule(
        "SHL-323",
        "UnpinnedImage",
        "info",
        fault="an image has no version",
        effect="runs cannot be repeated",
        fix="name a version or a digest",
        links=("https://kubernetes.io/docs/concepts/containers/images/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:latest", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(Change(":latest", ":1.4"),),
    ),
    options=CheckOptions(in_files=True, kinds_at_admission=WITH_PODS),
)
def usual_omissions(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        if not template.asks_gpus():
            continue
        for path, container in template.containers():
            words = " ".join(command_words(container))
            mounts = {str(each.get("mountPath")) for each in maps(container.get("volumeMounts"))}
            has_processes = gpus_of(container) > 1 and any(each in words for each in _LOADERS)
            if (has_processes or _WORKERS.search(words)) and _SHM not in mounts:
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


_WORKERS = re.compile(r"num[_-]workers[ =]{1,3}[1-9]", re.ASCII)
"""Worker processes of a DataLoader, as an option or in a script within the command."""


def _has_memory(container: Obj) -> bool:
    return any("memory" in string_keys(dig(container, "resources", field)) for field in ("limits", "requests"))
