"""Readiness of security: Pod Security, network isolation, device files, driver updates, admission, shared GPUs."""

from __future__ import annotations

from shoal.policy.advice import Obj
from shoal.policy.catalogue import rules
from shoal.policy.diagnosis.cluster_facts import device_requests, few, labels_of, name_of
from shoal.policy.diagnosis.verdicts import shell_command
from shoal.policy.fields import dig, label_selector, string_keys, strings
from shoal.policy.kinds import CLUSTER_POLICY, LOCAL_QUEUE, NAMESPACE, NETWORK_POLICY, NODE, POD, GroupKind
from shoal.policy.object_set import key_of
from shoal.policy.readiness.gpu_software import gpu_namespaces, gpu_nodes
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    manual,
    not_applicable,
    passed,
)

ADMISSION_POLICY = GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
ADMISSION_BINDING = GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding")
_PSA = "pod-security.kubernetes.io/"
_RULES = ("UnequalGpus", "NoGpuToleration", "NoGpuNodeAffinity")
"""That must be enforced; policies of other projects are known by the messages."""
_NONE = "no namespace uses GPUs"
_SHARING = "nvidia.com/gpu.sharing-strategy"
_REPLICAS = "nvidia.com/gpu.replicas"


def _pod_security(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable(_NONE)
    objects = {name_of(one): one for one in facts.cluster.all(NAMESPACE)}
    lacking = [name for name in namespaces if labels_of(objects.get(name, {})).get(f"{_PSA}enforce") != "restricted"]
    if not lacking:
        return passed(f"{len(namespaces)} namespaces with GPUs enforce restricted")
    first = lacking[0]
    return failed(
        f"{len(lacking)} of {len(namespaces)} namespaces with GPUs do not enforce restricted: {few(lacking)}",
        "see which pods violate it, then enforce it; --fix sets warn and audit, which refuse nothing",
        shell_command(f"kubectl label --dry-run=server --overwrite namespace {{}} {_PSA}enforce=restricted", first),
        shell_command(f"kubectl label --overwrite namespace {{}} {_PSA}enforce=restricted", first),
        corrections=[
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {f"{_PSA}warn": "restricted", f"{_PSA}audit": "restricted"}},
            }
            for name in lacking
            if name in objects and not {f"{_PSA}warn", f"{_PSA}audit"} <= labels_of(objects[name]).keys()
        ],
    )


def isolating(policies: list[Obj]) -> set[str]:
    """The directions in which a policy selects all pods, so that only what policies allow may pass."""
    found: set[str] = set()
    for policy in policies:
        spec = string_keys(policy.get("spec"))
        if string_keys(spec.get("podSelector")):
            continue
        types = strings(spec.get("policyTypes")) or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        found |= set(types)
    return found


def _network(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable(_NONE)
    lacking = []
    for namespace in namespaces:
        open_ways = {"Ingress", "Egress"} - isolating(facts.cluster.all(NETWORK_POLICY, namespace))
        if open_ways:
            lacking.append(f"{namespace} ({', '.join(sorted(open_ways)).lower()})")
    if lacking:
        return failed(
            f"{len(lacking)} of {len(namespaces)} namespaces with GPUs are not isolated: {few(lacking)}",
            "deny by default, and allow the own namespace, DNS and scrapes",
            "shoal tenant apply team.yaml",
        )
    return passed(f"{len(namespaces)} namespaces with GPUs deny other traffic, if the network plugin enforces policies")


def _device_files(facts: ReadinessFacts) -> Outcome:
    if not gpu_nodes(facts.cluster):
        return not_applicable("no node has a GPU")
    return manual(
        "the mode and owner of /dev/nvidia* on the hosts are not visible to the cluster",
        "check them on each node; the options of the driver restrict them, udev rules do not apply to these files",
        "ls -l /dev/nvidia*",
        "shoal agent check",
    )


def _driver_updates(facts: ReadinessFacts) -> Outcome:
    policies = facts.cluster.all(CLUSTER_POLICY)
    managed = [one for one in policies if dig(one, "spec", "driver", "enabled") is not False]
    if not managed:
        return manual(
            "drivers are not managed by a ClusterPolicy",
            "update drivers of hosts node by node, staging first, with nodes drained",
        )
    auto = [one for one in managed if dig(one, "spec", "driver", "upgradePolicy", "autoUpgrade") is True]
    if not auto:
        return failed(
            f"ClusterPolicy {name_of(managed[0])} does not upgrade drivers by itself",
            "set driver.upgradePolicy.autoUpgrade with maxParallelUpgrades: 1",
            "shoal upgrade --set driver.upgradePolicy.autoUpgrade=true",
        )
    return passed(f"ClusterPolicy {name_of(auto[0])} upgrades drivers node by node")


def _admission(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable(_NONE)
    objects = {name_of(one): one for one in facts.cluster.all(NAMESPACE)}
    texts = {name_of(one): str(one.get("spec")) for one in facts.cluster.all(ADMISSION_POLICY)}
    denying = [
        one for one in facts.cluster.all(ADMISSION_BINDING) if "Deny" in strings(dig(one, "spec", "validationActions"))
    ]
    lacking, messages = [], _messages()
    for name in namespaces:
        labels = {"kubernetes.io/metadata.name": name, **labels_of(objects.get(name, {}))}
        bound = [str(dig(one, "spec", "policyName")) for one in denying if _selects(one, labels)]
        text = "\n".join(texts.get(policy, "") for policy in bound)
        missing = [words for words, message in messages.items() if message not in text]
        if missing:
            lacking.append(f"{name}: {', '.join(missing)}")
    if lacking:
        return failed(
            f"no ValidatingAdmissionPolicy refuses pods that break these rules in {few(lacking)}",
            "enforce these rules; a webhook of another project may do it without being seen here",
            "shoal policy preview",
            "shoal policy generate --mode enforce | kubectl apply -f -",
        )
    return passed(f"policies enforce {', '.join(messages)} in {few(namespaces)}")


def _messages() -> dict[str, str]:
    """Of the policies of the rules, by the name of the rule."""
    declared = ((rules()[reason].id, reason, rules()[reason].policy) for reason in _RULES)
    return {f"{id_} {reason}": policy.validations[0].message for id_, reason, policy in declared if policy is not None}


def _selects(binding: Obj, labels: dict[str, str]) -> bool:
    """Whether the binding holds in a namespace with these labels."""
    raw = dig(binding, "spec", "matchResources", "namespaceSelector")
    selector = label_selector(raw or {})
    return selector is not None and selector.matches(labels)


def _shared_gpus(facts: ReadinessFacts) -> Outcome:
    shared = [node for node in gpu_nodes(facts.cluster) if _is_shared(node)]
    if not shared:
        return not_applicable("no node shares its GPUs by time-slicing or MPS")
    mixed = []
    for node in shared:
        tenants = sorted({key_of(pod)[0] for pod in facts.cluster.pods_on(name_of(node)) if device_requests(pod)})
        if len(tenants) > 1:
            mixed.append(f"{name_of(node)}: {', '.join(tenants[:4])}")
    if mixed:
        return failed(
            f"tenants share GPUs without isolation of memory and faults: {few(mixed)}",
            "use MIG instances for pools of several tenants, or a pool for each tenant",
            "shoal explain mig",
        )
    return passed(f"{len(shared)} nodes share GPUs, each within one namespace")


def _is_shared(node: Obj) -> bool:
    labels = labels_of(node)
    strategy, replicas = labels.get(_SHARING, ""), labels.get(_REPLICAS, "")
    return strategy in ("time-slicing", "mps") or (replicas.isdigit() and int(replicas) > 1)


_TENANTS = (POD, NAMESPACE, LOCAL_QUEUE)
CHECKS = (
    ReadinessCheck(
        "pod-security",
        "Namespaces with GPUs enforce restricted",
        _pod_security,
        _TENANTS,
        ("PodSecurity",),
        is_of_tenants=True,
    ),
    ReadinessCheck(
        "network-policies",
        "Namespaces with GPUs are isolated",
        _network,
        (*_TENANTS, NETWORK_POLICY),
        ("NoNameResolution", "NoExternalTraffic", "UnsetNamespaceLabel"),
        is_of_tenants=True,
    ),
    ReadinessCheck("device-files", "Device files are restricted on the hosts", _device_files, (NODE,)),
    ReadinessCheck("driver-updates", "Drivers are updated node by node", _driver_updates, (CLUSTER_POLICY,)),
    ReadinessCheck(
        "admission-rules",
        "Admission checks requests, tolerations, affinity",
        _admission,
        (*_TENANTS, ADMISSION_POLICY, ADMISSION_BINDING),
    ),
    ReadinessCheck("shared-gpus", "Tenants do not share a GPU without MIG", _shared_gpus, (NODE, POD)),
)
