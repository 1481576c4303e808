"""Manifests collected beside this repository, put into a namespace of the test's; where they lie, if they do."""

from __future__ import annotations

import re
from pathlib import Path

from build.kubectl_runs import Kubectl, Obj, Run
from build.living_cluster import conditions, pods

COLLECTED = Path(__file__).parents[3] / "shared" / "manifests"


def applied(kubectl: Kubectl, path: str) -> Run:
    """The file with its objects moved into kubectl's namespace."""
    text = (COLLECTED / path).read_text()
    return kubectl.run(
        "apply", "-f-", given=re.sub(r"(?m)^  namespace: \S+$", f"  namespace: {kubectl.namespace}", text)
    )


def phases(kubectl: Kubectl, selector: str = "") -> list[str]:
    return sorted(one["status"]["phase"] for one in pods(kubectl, selector))


def why_pending(kubectl: Kubectl, selector: str = "") -> str:
    """What the scheduler says of the first pod that waits, without what it says of preemption; empty if none does."""
    for one in pods(kubectl, selector):
        said = conditions(one).get("PodScheduled", {})
        if said.get("status") == "False":
            return str(said["message"]).partition(". ")[0]
    return ""


def claim(name: str, storage_class: str = "", size: str = "10Gi", mode: str = "ReadWriteOnce") -> Obj:
    spec: Obj = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, binding: str) -> Obj:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "shoal.dev/local",
        "volumeBindingMode": binding,
    }
