"""`shoal up` with nodes that give their GPUs to claims: the scheduler allocates devices, and pods run with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.kubectl_runs import Kubectl
from build.living_cluster import living, pod, until, wait

Obj = dict[str, Any]


def template(name: str, device_class: str, *selectors: str) -> Obj:
    exactly = {"deviceClassName": device_class, "selectors": [{"cel": {"expression": one}} for one in selectors]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def claiming(name: str, template_name: str) -> Obj:
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template_name}]
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return made


def devices(kubectl: Kubectl) -> list[str]:
    claims = kubectl.get("resourceclaims")["items"]
    results = [one["status"]["allocation"]["devices"]["results"] for one in claims if "allocation" in one["status"]]
    return sorted(result["device"] for each in results for result in each)


def test_pods_get_instances_that_are_created_for_their_claims(tmp_path: Path, kubectl_home: Path) -> None:
    with living(tmp_path, "1xdgx-h100[dra,mig=dynamic]", "--memory") as server:
        kubectl = Kubectl(server.kubeconfig, kubectl_home)
        profile = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
        kubectl("create", "-f-", given=[template("half", "mig.nvidia.com", profile)])
        kubectl("create", "-f-", given=[claiming("a", "half"), claiming("b", "half")])
        for name in "ab":
            wait(kubectl, f"pod/{name}", "condition=ready")
        assert devices(kubectl) == ["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"]
        assert "MIG 3g.40gb" in kubectl("exec", "a", "--", "nvidia-smi", "-L")
        # A pod with the resource of the device plugin gets a claim for a GPU that is not divided.
        kubectl("create", "-f-", given=[pod("whole", gpus=7)])
        wait(kubectl, "pod/whole", "condition=ready")
        assert {f"gpu-{number}" for number in range(1, 8)} <= {*devices(kubectl)}
        kubectl("create", "-f-", given=[pod("more", gpus=1)])
        until(lambda: kubectl.get("pod", "more")["status"].get("conditions"))
        kubectl("delete", "pod", "a", "b")
        wait(kubectl, "pod/more", "condition=ready")
        assert kubectl("exec", "more", "--", "nvidia-smi", "-L").count("GPU 0: ") == 1
