"""Checks what is said about NVIDIA's software: the driver of nodes that pods select, and the ClusterPolicy."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig
from shoal.policy.kinds import CLUSTER_POLICY, WITH_PODS
from shoal.policy.pod_templates import pod_templates
from shoal.policy.rules.placement import conditions
from shoal.units.numbers import whole_of

_DRIVER_MAJOR = ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver-version.major")
_LEAST_BRANCH = 100
"""Branches of the driver have three digits; versions of CUDA have two."""


@check(
    Rule(
        "SHL-219",
        "DriverIsNotCuda",
        "error",
        fault="the label of the driver's version is compared with a version of CUDA",
        effect="no node has the label value, so the pods stay pending",
        fix="write the branch of the driver, such as 535, or use the label nvidia.com/cuda.runtime-version.major",
        links=("https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md",),
        bad="""\
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: nvidia.com/cuda.driver.major, operator: In, values: ["12"]}]
""",
        changes=(Change("nvidia.com/cuda.driver.major", "nvidia.com/cuda.runtime.major"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"nvidia.com/cuda.driver",)),
)
def driver_versions(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, key, operator, values in conditions(template):
            low = [value for value in values if (number := whole_of(value)) is not None and number < _LEAST_BRANCH]
            if key in _DRIVER_MAJOR and operator == "In" and low and len(low) == len(values):
                what = (
                    f"{key} is the branch of the driver, such as 535 or 580; {' and '.join(low)} is a version of CUDA"
                )
                yield Advice("DriverIsNotCuda", path, what, "write the branch, or use nvidia.com/cuda.runtime.major")


@check(
    Rule(
        "SHL-511",
        "SecondClusterPolicy",
        "error",
        fault="there are several ClusterPolicies, and the GPU operator follows one",
        effect="the state of the others becomes ignored",
        fix="keep one ClusterPolicy, named cluster-policy",
        bad="""\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {}
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: gpu-cluster-policy}
spec: {}
""",
        changes=(
            Change(
                """\
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: gpu-cluster-policy}
spec: {}
""",
                "",
            ),
        ),
    ),
    kinds=(CLUSTER_POLICY,),
    options=CheckOptions(is_rechecked=True),
)
def single_cluster_policy(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    name = str(dig(obj, "metadata", "name"))
    names = sorted({str(dig(each, "metadata", "name")) for each in context.all(CLUSTER_POLICY)})
    others = [other for other in names if other != name]
    if others and name != _followed(names):
        what = f"the GPU operator follows one ClusterPolicy: {' and '.join(others)} exists too"
        yield Advice("SecondClusterPolicy", "metadata.name", what, "keep one, named cluster-policy")


def _followed(names: list[str]) -> str:
    """The one to keep: the usual name, else the first."""
    return "cluster-policy" if "cluster-policy" in names else names[0]
