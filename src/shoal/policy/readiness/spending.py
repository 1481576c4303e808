"""Readiness of costs: utilization against its target, alerts of idle GPUs, spot, commitments, chargeback."""

from __future__ import annotations

from shoal.policy.diagnosis.cluster_facts import few, labels_of, name_of
from shoal.policy.diagnosis.gpu_use import FREE, USED, UTIL, readings_of
from shoal.policy.diagnosis.verdicts import shell_command
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import LOCAL_QUEUE, NAMESPACE, NODE, POD, PROMETHEUS_RULE, RESOURCE_QUOTA
from shoal.policy.readiness.gpu_software import gpu_namespaces, gpu_nodes
from shoal.policy.readiness.monitoring import expressions
from shoal.policy.readiness.outcomes import (
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    failed,
    manual,
    not_applicable,
    not_run,
    passed,
)
from shoal.policy.readiness.scaling import is_spot
from shoal.policy.tenants.labels import TEAM_LABEL

_IDLE = ("GPU_UTIL", "GR_ENGINE_ACTIVE", "gpu_utilization")
_TEAM_LABELS = (TEAM_LABEL, "team")


def _utilization(facts: ReadinessFacts) -> Outcome:
    if facts.cluster.metrics is None:
        return not_run("no metrics are given", "shoal check --metrics FILE")
    readings = readings_of(facts.cluster.metrics)
    values = [one.values[UTIL] for one in readings if UTIL in one.values]
    if not values:
        return not_run(f"the metrics have no series {UTIL}")
    held = [share * 100 for one in readings if one.pod and (share := one.share(USED, FREE)) is not None]
    mean, (low, high) = sum(values) / len(values), facts.utilization
    memory = sum(held) / len(held) if held else None
    told = [f"mean utilization of {len(values)} GPUs {mean:.0f} %, target {low:.0f} to {high:.0f} % (one reading)"]
    if memory is not None:
        told.append(f"mean used memory of held GPUs {memory:.0f} %, target above {facts.least_memory:.0f} %")
    fix = "see which holders are idle or oversized; above the range waits will grow"
    if not low <= mean <= high or (memory is not None and memory < facts.least_memory):
        return failed(told, fix, "shoal top", "shoal cost advise")
    return passed(*told)


def _idle_alerts(facts: ReadinessFacts) -> Outcome:
    found = [text for text in expressions(facts) if any(word in text for word in _IDLE) and "<" in text]
    if found:
        return passed(f"{len(found)} alerts compare utilization with a lower limit")
    return failed("no alert is about idle GPUs", "create the alerts", "shoal alerts | kubectl apply -f -")


def _spot_strategy(facts: ReadinessFacts) -> Outcome:
    nodes = gpu_nodes(facts.cluster)
    spot = sum(is_spot(node) for node in nodes)
    return manual(
        f"{spot} of {len(nodes)} nodes with GPUs are spot capacity",
        "write down which work may run on spot, and how it is resumed",
        "shoal cost advise",
    )


def _commitments(_: ReadinessFacts) -> Outcome:
    return manual(
        "savings plans and reservations are not known to the cluster",
        "write them in the price file and see how much of them is used",
        "shoal cost advise",
    )


def _chargeback(facts: ReadinessFacts) -> Outcome:
    namespaces = gpu_namespaces(facts.cluster)
    if not namespaces:
        return not_applicable("no namespace uses GPUs")
    objects = {name_of(one): one for one in facts.cluster.all(NAMESPACE)}
    lacking = []
    for name in namespaces:
        labels = labels_of(objects.get(name, {}))
        items = [
            item for one in facts.cluster.all(RESOURCE_QUOTA, name) for item in string_keys(dig(one, "spec", "hard"))
        ]
        missing = [] if any(label in labels for label in _TEAM_LABELS) else [f"the label {TEAM_LABEL}"]
        if not any(item.startswith("requests.nvidia.com/") for item in items):
            missing.append("a quota of GPUs")
        if missing:
            lacking.append(f"{name} lacks {' and '.join(missing)}")
    if lacking:
        return failed(
            f"costs of {len(lacking)} of {len(namespaces)} namespaces cannot be charged to a team: {few(lacking)}",
            "label the namespaces with their team and give them a quota",
            shell_command(f"kubectl label namespace {{}} {TEAM_LABEL}=TEAM", lacking[0].partition(" ")[0]),
        )
    return passed(f"{len(namespaces)} namespaces with GPUs have a team and a quota")


CHECKS = (
    ReadinessCheck("utilization", "Utilization and memory reach their targets", _utilization),
    ReadinessCheck("idle-alerts", "Idle GPUs raise alerts", _idle_alerts, (PROMETHEUS_RULE,)),
    ReadinessCheck("spot-strategy", "A strategy for spot is written down", _spot_strategy, (NODE,)),
    ReadinessCheck("commitments", "Savings plans and reservations are used", _commitments),
    ReadinessCheck(
        "chargeback",
        "Namespaces with GPUs have a team and a quota",
        _chargeback,
        (POD, NAMESPACE, LOCAL_QUEUE, RESOURCE_QUOTA),
    ),
)
