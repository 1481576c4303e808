"""The advice of the rules about sharing, scaling, networks and metrics, beside the objects that they look up."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import node, pod
from shoal.policy.advice import Obj
from shoal.policy.alert_rules import ALERTS
from shoal.policy.declarations import Check
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.autoscaling import (
    autoscaler_targets,
    expander_priorities,
    misplaced_scaled_objects,
    node_pools,
    several_autoscalers,
)
from shoal.policy.rules.files import invalid_objects, replaced_objects
from shoal.policy.rules.instances import instance_requests, shared_models
from shoal.policy.rules.monitoring import prometheus_rules
from shoal.policy.rules.networks import network_policies
from shoal.policy.rules.sharing import cluster_policies, mig_layouts, sharing_configurations

GPU = "nvidia.com/gpu"


def made(api_version: str, kind: str, name: str = "x", namespace: str = "n", **fields: Any) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}


def plugin(sharing: str, namespace: str = "gpu-operator", key: str = "any", flags: str = "{}") -> Obj:
    text = f"version: v1\nflags: {flags}\nsharing: {sharing}\n"
    return made("v1", "ConfigMap", "config", namespace, data={key: text})


def replicas(count: int, name: str = GPU) -> str:
    return f"{{resources: [{{name: {name}, replicas: {count}}}]}}"


def layouts(text: str) -> Obj:
    return made("v1", "ConfigMap", data={"config.yaml": f"version: v1\nmig-configs: {{{text}}}\n"})


def entry(*counts: str) -> str:
    return f"[{{devices: all, mig-enabled: true, mig-devices: {{{', '.join(counts)}}}}}]"


def policy(api_version: str = "nvidia.com/v1", **config: str) -> Obj:
    return made(api_version, "ClusterPolicy", namespace="", spec={"devicePlugin": {"config": config}})


def autoscaler(name: str = "h", version: str = "apps/v1", metric: str = "gpu_utilization") -> Obj:
    target = {"apiVersion": version, "kind": "Deployment", "name": "web"} if version else {"kind": "Deployment"}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": metric}}}]
    spec = {"scaleTargetRef": {"name": "web", **target}, "metrics": metrics}
    return made("autoscaling/v2", "HorizontalPodAutoscaler", name, spec=spec)


def scaled(name: str = "s", group: str = "keda.sh", target: str = "web") -> Obj:
    return made(f"{group}/v1alpha1", "ScaledObject", name, spec={"scaleTargetRef": {"name": target}})


def owned(obj: Obj) -> Obj:
    owner = {"kind": "ScaledObject", "name": "s", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def pool(version: str = "v1", disruption: Obj | None = None, **spec: Any) -> Obj:
    template = {"spec": {"nodeClassRef": CLASS, **spec}}
    return made(f"karpenter.sh/{version}", "NodePool", spec={"template": template, "disruption": disruption or {}})


def expander(text: str, name: str = "cluster-autoscaler-priority-expander") -> Obj:
    return made("v1", "ConfigMap", name, "kube-system", data={"priorities": text})


def egress(*rules: Obj, **spec: Any) -> Obj:
    return made("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "egress": list(rules), **spec})


def ports(*numbers: int) -> list[Obj]:
    return [{"protocol": "TCP", "port": number} for number in numbers]


def alert(expression: str) -> Obj:
    groups = [{"name": "g", "rules": [{"alert": "A", "expr": expression}]}]
    return made("monitoring.coreos.com/v1", "PrometheusRule", spec={"groups": groups})


def instance(profile: str, *words: str) -> Obj:
    found = pod("p", limits={f"nvidia.com/mig-{profile}": 1})
    found["spec"]["containers"][0]["args"] = list(words)
    return {**found, "apiVersion": "v1", "kind": "Pod"}


def mig_node(strategy: str) -> Obj:
    return node(f"n-{strategy}", labels={"nvidia.com/mig.strategy": strategy})


WHOLE = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}


def shared_node(replicas: int, memory_mib: int) -> Obj:
    shared = {"gpu.sharing-strategy": "time-slicing", "gpu.replicas": str(replicas), "gpu.memory": str(memory_mib)}
    labels = {f"nvidia.com/{key}": value for key, value in shared.items()}
    return node("shared", labels={**WHOLE, **labels})


def serving(gpus: int) -> Obj:
    found = pod("p", gpus)
    found["spec"]["containers"][0]["args"] = [MISTRAL]
    return made("apps/v1", "Deployment", spec={"template": {"spec": found["spec"]}})


KUBE_DNS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
MISTRAL = "--model=mistralai/Mistral-7B-Instruct-v0.3"

Case = tuple[Check, Obj, tuple[Obj, ...], str]
CASES: dict[str, Case] = {
    "a key in lower case": (sharing_configurations, plugin(f"{{timeslicing: {replicas(4)}}}"), (), "mean timeSlicing?"),
    "an open bracket": (prometheus_rules, alert("sum(rate(http_requests_total[5m])"), (), ") is missing"),
    "the short form": (
        sharing_configurations,
        plugin("{timeSlicing: {replicas: 4}}"),
        (),
        "write resources: [{name: nvidia.com/gpu, replicas: 4}]",
    ),
    "shared instances by name": (
        sharing_configurations,
        plugin(f"{{timeSlicing: {replicas(4, 'nvidia.com/mig-1g.10gb')}}}"),
        (),
        "not meant for production",
    ),
    "shared instances by key": (
        sharing_configurations,
        plugin(f"{{timeSlicing: {replicas(4)}}}", key="mig-1g.10gb", flags="{migStrategy: single}"),
        (),
        "not meant for production",
    ),
    "too many clients": (
        sharing_configurations,
        plugin(f"{{mps: {replicas(49)}}}"),
        (),
        "49 is more than the 48 clients",
    ),
    "both ways of sharing": (
        sharing_configurations,
        plugin(f"{{mps: {replicas(4)}, timeSlicing: {replicas(4)}}}"),
        (),
        "a GPU is shared by one of them",
    ),
    "MPS of instances": (
        sharing_configurations,
        plugin(f"{{mps: {replicas(4, 'nvidia.com/mig-1g.10gb')}}}"),
        (),
        "does not support MPS for MIG instances",
    ),
    "a configuration in default": (
        sharing_configurations,
        plugin(f"{{timeSlicing: {replicas(4)}}}", "default"),
        (),
        "this one is in default",
    ),
    "layouts without the default one": (mig_layouts, layouts(f"a: {entry('1g.10gb: 7')}"), (), "add all-disabled"),
    "two sizes on a GPU": (
        mig_layouts,
        layouts(f"a: {entry('1g.10gb: 5', '2g.20gb: 1')}"),
        (),
        "1g.10gb and 2g.20gb are on one GPU",
    ),
    "a policy of another group": (
        cluster_policies,
        policy("config.openshift.io/v1"),
        (),
        "write nvidia.com/v1",
    ),
    "a policy without a default": (cluster_policies, policy(name="config"), (), "label the nodes"),
    "a default that is no key": (
        cluster_policies,
        policy(name="config", default="t4"),
        (plugin("{}"),),
        "its keys are any",
    ),
    "a target without a version": (autoscaler_targets, autoscaler(version=""), (), "write apiVersion: apps/v1"),
    "a renamed metric": (
        autoscaler_targets,
        autoscaler(metric="vllm_num_requests_running"),
        (),
        "vllm:num_requests_running",
    ),
    "an old metric of GPUs": (autoscaler_targets, autoscaler(metric="dcgm_fb_used"), (), "DCGM_FI_DEV_FB_USED"),
    "a ScaledObject beside an autoscaler": (
        several_autoscalers,
        autoscaler(),
        (autoscaler(), scaled()),
        "Deployment web is also scaled by ScaledObject s",
    ),
    "two ScaledObjects": (several_autoscalers, scaled("a"), (scaled("a"), scaled("b")), "by ScaledObject b"),
    "a ScaledObject of another group": (
        misplaced_scaled_objects,
        scaled(group="autoscaling.keda.sh"),
        (),
        "write keda.sh/v1alpha1",
    ),
    "an old pool": (node_pools, pool("v1beta1"), (), "write karpenter.sh/v1"),
    "an old policy of consolidation": (
        node_pools,
        pool("v1beta1", {"consolidationPolicy": "WhenUnderutilized"}),
        (),
        "WhenEmptyOrUnderutilized",
    ),
    "an old place of a field": (node_pools, pool("v1beta1", {"expireAfter": "1h"}), (), "move it there"),
    "a pool without a class": (node_pools, pool(nodeClassRef={"name": "x"}), (), "group, kind of the node class"),
    "a label that no instance type has": (
        node_pools,
        pool(requirements=[{"key": "nvidia.com/gpu.product", "values": ["NVIDIA-L40"]}]),
        (),
        "chooses no instance type by it",
    ),
    "a short product name of a pool": (
        node_pools,
        pool(requirements=[{"key": "nvidia.com/gpu.product", "values": ["A100-SXM4-40GB"]}]),
        (),
        "did you mean NVIDIA-A100-SXM4-40GB?",
    ),
    "a taint without a value": (node_pools, pool(taints=[{"key": GPU, "effect": "NoSchedule"}]), (), "has no value"),
    "spot groups with the higher number": (
        expander_priorities,
        expander("10:\n  - .*-ondemand.*\n50:\n  - .*-spot.*\n"),
        (),
        "the spot groups (50) are chosen before the on-demand groups (10)",
    ),
    "no DNS": (network_policies, egress({"ports": ports(443)}), (), "cannot resolve names"),
    "no egress at all": (network_policies, egress(policyTypes=["Egress"]), (), "cannot resolve names"),
    "pods instead of the internet": (
        network_policies,
        egress({"to": [{"podSelector": {}}], "ports": ports(443)}),
        (),
        "pods of this namespace, and no external address",
    ),
    "a label that namespaces do not have": (
        network_policies,
        egress({"to": [{"namespaceSelector": {"matchLabels": {"name": "team"}}}]}),
        (),
        "write kubernetes.io/metadata.name: team",
    ),
    "old names of metrics": (
        prometheus_rules,
        alert("avg_over_time(dcgm_dram_active[1h]) < 20"),
        (),
        "write DCGM_FI_PROF_DRAM_ACTIVE for dcgm_dram_active; the ratio is from 0 to 1",
    ),
    "used by free memory": (
        prometheus_rules,
        alert('(DCGM_FI_DEV_FB_USED{pod="p"} / DCGM_FI_DEV_FB_FREE) > 0.95'),
        (),
        "exceeds 0.95 when 48.7% of the memory is used",
    ),
    "the rate of an Xid": (prometheus_rules, alert("rate(DCGM_FI_DEV_XID_ERRORS[5m]) > 0"), (), "is a gauge"),
    "a label of the Xid": (
        prometheus_rules,
        alert('DCGM_FI_DEV_XID_ERRORS{xid="48"} > 0'),
        (),
        "write DCGM_FI_DEV_XID_ERRORS == 48",
    ),
    "the rate of a gauge": (prometheus_rules, alert("rate(DCGM_FI_DEV_FB_USED[5m]) > 0"), (), "write deriv("),
    "no traffic on NVLink": (
        prometheus_rules,
        alert("rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL[5m]) == 0"),
        (),
        "GPUs without NVLink",
    ),
    "a label that is not exported": (
        prometheus_rules,
        alert('max by (label_app) (kube_pod_labels{label_app=~".+"})'),
        (),
        "--metric-labels-allowlist",
    ),
    "a profile under single": (
        instance_requests,
        instance("1g.10gb"),
        (mig_node("single"),),
        "request nvidia.com/gpu on nodes whose nvidia.com/gpu.product ends in -MIG-1g.10gb",
    ),
    "a model that is too large": (
        instance_requests,
        instance("1g.5gb", MISTRAL),
        (),
        "instances cannot be combined for one process; request nvidia.com/mig-3g.20gb",
    ),
    "models that share memory": (
        shared_models,
        serving(1),
        (shared_node(4, 40960),),
        "about 14 GB: 4 such pods share a GPU with 43 GB",
    ),
    "an object that the server rejects": (
        invalid_objects,
        {"apiVersion": "v1", "kind": "Node", "metadata": {}},
        (),
        "metadata.name: is required",
    ),
    "an object that another one replaces": (
        replaced_objects,
        scaled(target="a"),
        (scaled(target="a"), scaled(target="b")),
        "replaces this one",
    ),
}
NO_ADVICE: dict[str, tuple[Check, Obj, tuple[Obj, ...]]] = {
    "replicas of GPUs": (sharing_configurations, plugin(f"{{timeSlicing: {replicas(4)}}}"), ()),
    "48 clients": (sharing_configurations, plugin(f"{{mps: {replicas(48)}}}"), ()),
    "a ConfigMap of another program": (
        sharing_configurations,
        made("v1", "ConfigMap", "c", "default", data={"a": "sharing: {mode: x}", "b": "sharing: ["}),
        (),
    ),
    "layouts with the default one": (
        mig_layouts,
        layouts(f"a: {entry('1g.10gb: 7')}, all-disabled: [{{devices: all, mig-enabled: false}}]"),
        (),
    ),
    "a policy with a key": (cluster_policies, policy(name="config", default="any"), (plugin("{}"),)),
    "a policy with an unknown ConfigMap": (cluster_policies, policy(name="other", default="any"), (plugin("{}"),)),
    "an autoscaler with a version": (autoscaler_targets, autoscaler(), ()),
    "an autoscaler that KEDA created": (several_autoscalers, scaled(), (scaled(), owned(autoscaler()))),
    "other targets": (several_autoscalers, scaled(), (scaled(), scaled("t", target="other"))),
    "a ScaledObject of KEDA": (misplaced_scaled_objects, scaled(), ()),
    "a pool of this version": (node_pools, pool(taints=[{"key": GPU, "value": "present"}]), ()),
    "on-demand groups first": (expander_priorities, expander("10: [.*spot.*]\n50: [.*ondemand.*]\n"), ()),
    "another ConfigMap": (expander_priorities, expander("10: [.*demand.*]\n50: [.*spot.*]\n", "other"), ()),
    "DNS is allowed": (network_policies, egress({"to": [KUBE_DNS], "ports": ports(53)}, {"ports": ports(443)}), ()),
    "all is allowed": (network_policies, egress({}), ()),
    "a range with the port": (network_policies, egress({"ports": [{"port": 1, "endPort": 100}]}), ()),
    "only ingress": (
        network_policies,
        made("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["Ingress"]}),
        (),
    ),
    "the share of used memory": (
        prometheus_rules,
        alert("DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.95"),
        (),
    ),
    "no traffic on NVLink of GPUs that had traffic before": (
        prometheus_rules,
        alert(next(one.expression for one in ALERTS if one.name == "NCCLTrainingStalled")),
        (),
    ),
    "the rate of a counter": (prometheus_rules, alert("rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL[5m]) > 0"), ()),
    "a profile under mixed": (instance_requests, instance("1g.10gb"), (mig_node("mixed"), mig_node("single"))),
    "a profile without nodes": (instance_requests, instance("1g.10gb"), ()),
    "a quantized model": (instance_requests, instance("1g.5gb", "--model=x/Mistral-7B-AWQ"), ()),
    "a number that is no size": (instance_requests, instance("1g.5gb", "--model=x/gpt2-v7b1"), ()),
    "models that fit together": (shared_models, serving(1), (shared_node(2, 40960),)),
    "a GPU for one pod": (shared_models, serving(1), (shared_node(4, 40960), node("n", labels=WHOLE))),
    "a pod without a GPU": (shared_models, serving(0), (shared_node(4, 40960),)),
    "a valid object": (invalid_objects, node("n"), ()),
    "the same object twice": (replaced_objects, scaled(), (scaled(), scaled())),
}


@pytest.mark.parametrize("case", CASES)
def test_advice_of_each_rule(case: str) -> None:
    rule, obj, others, text = CASES[case]
    (advice,) = [one for one in rule(obj, ObjectSet(others)) if text in one.message()]
    assert advice.message().startswith(f"{advice.path}: ")
    assert advice.reason in rule.reasons


@pytest.mark.parametrize("case", NO_ADVICE)
def test_no_advice_of_each_rule(case: str) -> None:
    rule, obj, others = NO_ADVICE[case]
    assert list(rule(obj, ObjectSet(others))) == []
