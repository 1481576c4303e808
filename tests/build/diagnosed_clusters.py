"""Objects of small clusters, and the causes that a diagnosis finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.manifests import Object, node, pod, thing
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.diagnosis.trees import diagnose
from shoal.policy.diagnosis.verdicts import DiagnosisResult, Patient, SubjectKind
from shoal.policy.object_set import kind_of
from shoal.store.diagnosed_objects import DiagnosedObjects
from shoal.store.support_bundle.archive import BundleArchive
from shoal.store.support_bundle.diagnosed_file import DIAGNOSED, diagnosed_file

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def diagnosed(kind: SubjectKind, name: str, *objects: Object, **more: Any) -> DiagnosisResult:
    """In a cluster of which all kinds of these objects are known."""
    namespace, _, short = name.rpartition("/")
    namespace = namespace or ("default" if kind in ("pod", "job", "queue") else "")
    complete = more.pop("complete", {kind_of(obj) for obj in objects})
    found = diagnose(DiagnosedCluster(objects, complete, **more), Patient(kind, short, namespace))
    assert found is not None
    return found


def causes(kind: SubjectKind, name: str, *objects: Object, **more: Any) -> list[str]:
    return [cause.id for cause in diagnosed(kind, name, *objects, **more).causes]


def written_bundle(folder: Path, read: DiagnosedObjects, logs: dict[str, str]) -> str:
    """A bundle with what a diagnosis reads."""
    archive = BundleArchive("shoal-bundle", 64 << 20, 0)
    archive.add_json(DIAGNOSED, diagnosed_file(read, logs))
    path = folder / "bundle.tar.gz"
    path.write_bytes(archive.packed())
    return str(path)


def gpu_node(name: str = "gpu-1", gpus: int = 8, **more: Any) -> Object:
    """Ready, with its labels."""
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    made = node(name, gpus, labels={**labels, **more.pop("labels", {})}, **more)
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if not gpus:
        made["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    return made


def waiting(name: str = "train", gpus: int = 1, **more: Any) -> Object:
    return pod(f"team/{name}", gpus, status={"phase": "Pending"}, **more)


def running(name: str, gpus: int = 8, on: str = "gpu-1", **more: Any) -> Object:
    return pod(f"team/{name}", gpus, on, status={"phase": "Running"}, **more)


def event(about: Object, reason: str, message: str) -> Object:
    meta = about["metadata"]
    namespace = meta.get("namespace", "")
    return thing(
        "v1",
        "Event",
        f"{namespace or 'default'}/{meta['name']}.{reason}",
        involvedObject={"kind": about["kind"], "name": meta["name"], "namespace": namespace},
        reason=reason,
        message=message,
    )


def operand(app: str, on: str = "gpu-1", *, waits: str = "", message: str = "", last: str = "") -> Object:
    """A pod of the GPU stack; `waits`: the reason for which its container does not run."""
    state: Object = {"waiting": {"reason": waits, "message": message}} if waits else {"running": {}}
    status: Object = {"name": "main", "ready": not waits, "state": state}
    if last:
        status["lastState"] = {"terminated": {"exitCode": 1, "message": last}}
    made = pod(f"gpu-operator/{app}-x", on=on, labels={"app": app})
    ready = {"type": "Ready", "status": "False" if waits else "True"}
    made["status"] = {"phase": "Running", "containerStatuses": [status], "conditions": [ready]}
    return made


def pod_ended(code: int = 0, reason: str = "Error", message: str = "", memory: str = "", **state: Object) -> Object:
    """The pod `team/train`, whose container ended so, or is in another state."""
    made = pod("team/train", 1, "gpu-1", limits={"memory": memory} if memory else None)
    states = state or {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    made["status"] = {"phase": "Running", "containerStatuses": [{"name": "c", "ready": False, "state": states}]}
    return made
