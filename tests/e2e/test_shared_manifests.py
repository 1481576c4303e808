"""The collected manifests, applied with kubectl as they are: taken, or refused as a real cluster refuses them.

What a real cluster takes in silence is taken here too, however doubtful; warnings are the business of other parts. Each
file goes into a namespace of its own, because some of them limit what may be in the namespace they name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from build.kubectl_runs import Kubectl
from build.yaml_texts import yaml_value, yaml_values

COLLECTED = Path(__file__).parents[3] / "shared" / "manifests"
SERVED = {"v1", "apps/v1", "batch/v1", "autoscaling/v2", "networking.k8s.io/v1", "scheduling.k8s.io/v1"}
REFUSED = {
    "autoscale/hpa-vllm-requests-running.yaml": (
        'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
    ),
    "autoscale/cluster-autoscaler-deployment.yaml": (
        'The Deployment "cluster-autoscaler" is invalid:',
        "* spec.selector: Required value",
        "`selector` does not match template `labels`",
    ),
    "scheduling/node-nvlink-labels.yaml": ("resource name may not be empty",),
    "security/resourcequota-team-a-gpu.yaml": (
        'The ResourceQuota "team-a-gpu-quota" is invalid: spec.scopeSelector.matchExpressions: Invalid value:',
        "unsupported scope applied to resource",
    ),
}
"""What Kubernetes itself does not take, and the words that name the reason."""
NOT_OBJECTS = ("helm-values/", "/fragment-", "/alerts-guide-rules.yaml", "/clusterpolicy-patches.yaml")


def _documents(path: str) -> list[dict[str, Any]]:
    return [one for one in yaml_values((COLLECTED / path).read_text()) if one]


def _files() -> list[str]:
    found = sorted(str(path.relative_to(COLLECTED)) for path in COLLECTED.rglob("*.yaml"))
    return [path for path in found if not any(part in path for part in NOT_OBJECTS)]


def _is_served(document: dict[str, Any]) -> bool:
    return document["apiVersion"] in SERVED


WITH_SERVED = [path for path in _files() if any(_is_served(one) for one in _documents(path))]


pytestmark = pytest.mark.skipif(not COLLECTED.exists(), reason="no collected manifests beside this repository")


def apply(kubectl: Kubectl, path: str) -> tuple[int, str, str]:
    """The file with its objects moved into the test's namespace."""
    text = re.sub(r"(?m)^  namespace: \S+$", f"  namespace: {kubectl.namespace}", (COLLECTED / path).read_text())
    done = kubectl.run("apply", "-f-", given=text)
    return done.code, done.out, done.err


@pytest.mark.parametrize("path", WITH_SERVED)
def test_a_file_of_served_kinds_is_applied_or_refused_as_on_a_real_cluster(kubectl: Kubectl, path: str) -> None:
    code, out, err = apply(kubectl, path)
    served, unknown = ([one for one in _documents(path) if _is_served(one) is wanted] for wanted in (True, False))
    assert [no_matches(one) for one in unknown if no_matches(one) not in err] == []
    refusal = REFUSED.get(path, ())
    assert [words for words in refusal if words not in err] == []
    assert len(out.splitlines()) == (0 if refusal else len(served))
    assert all(line.endswith((" created", " configured", " unchanged")) for line in out.splitlines())
    assert code == (1 if refusal or unknown else 0)


def no_matches(one: dict[str, Any]) -> str:
    return f'no matches for kind "{one["kind"]}" in version "{one["apiVersion"]}"'


def test_kinds_that_are_not_served_are_refused_as_kinds_without_a_definition(kubectl: Kubectl) -> None:
    others = [path for path in _files() if path not in WITH_SERVED]
    refusal = kubectl.refused("apply", *(f"--filename={COLLECTED / path}" for path in others))
    wanted = {no_matches(one) for path in others for one in _documents(path)}
    assert wanted
    assert [words for words in wanted if words not in refusal] == []


def test_the_table_of_refusals_names_files_that_are_there() -> None:
    assert REFUSED.keys() <= set(_files())


def pod(name: str, gpus: int) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "x", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def test_a_limit_range_gives_plain_pods_a_gpu_and_refuses_three(kubectl: Kubectl) -> None:
    apply(kubectl, "quota/limitrange-team-ml.yaml")
    made = json.loads(kubectl("create", "-f-", "-o", "json", given=pod("plain", 0)))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    refusal = kubectl.refused("create", "-f-", given=pod("large", 3))
    assert refusal.endswith("maximum nvidia.com/gpu usage per Container is 2, but limit is 3")


def test_a_quota_counts_requested_gpus_and_never_their_limits(kubectl: Kubectl) -> None:
    apply(kubectl, "quota/resourcequota-team-ml.yaml")
    kubectl("create", "-f-", given=pod("large", 3))
    refusal = kubectl.refused("create", "-f-", given=pod("second", 2))
    assert refusal.endswith(
        "exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=2, "
        "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
    )
    assert kubectl.get("quota", "gpu-quota")["status"]["used"]["requests.nvidia.com/gpu"] == "3"


def test_a_pod_with_limits_alone_requests_as_much(kubectl: Kubectl) -> None:
    apply(kubectl, "scheduling/pod-2-gpus-limits-only.yaml")
    resources = kubectl.get("pod", "gpu-pod")["spec"]["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"] == {"nvidia.com/gpu": "2"}


def test_a_restricted_namespace_warns_about_and_refuses_ordinary_pods(kubectl: Kubectl) -> None:
    levels = yaml_value((COLLECTED / "security/namespace-psa-restricted.yaml").read_text())["metadata"]["labels"]
    kubectl("label", "namespace", kubectl.namespace, *(f"{key}={value}" for key, value in levels.items()))
    refusal = kubectl.refused("create", "-f-", given=pod("plain", 1))
    assert 'pods "plain" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation' in refusal
    warned = kubectl.run("create", "deployment", "web", "--image=x")
    assert (warned.code, warned.out) == (0, "deployment.apps/web created\n")
    assert 'would violate PodSecurity "restricted:latest"' in warned.err
