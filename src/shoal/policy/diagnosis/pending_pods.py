"""Why a pod waits for a node with GPUs: no node has any, none is advertised, taints, labels, cordons, size, or use.

Each reason that alone excludes all nodes with the resource is a cause. Where several exclude them only together, one
cause lists them by node. What a scheduler may consider beyond that is explained by `shoal why`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from shoal.api.node_affinity import NodeAffinity, NodeRule, node_rule
from shoal.api.taints import HARD_EFFECTS, Taint, untolerated
from shoal.data.instances import find_instance
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    allocatable,
    capacity,
    condition,
    device_requests,
    event_words,
    few,
    labels_of,
    name_of,
    named,
    taints_of,
    tolerations_of,
)
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import NODE, RESOURCE_FLAVOR
from shoal.policy.object_set import key_of
from shoal.units.near_texts import meant_words

PCI_LABEL, PRESENT_LABEL = "feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present"
STRATEGY_LABEL = "nvidia.com/mig.strategy"
_MACHINE_TYPE = "node.kubernetes.io/instance-type"
_NODE_TAINTS = "node.kubernetes.io/"
_MOST_NODES = 8
_SILENT = "GpusNotAdvertised"
TAINTS, LABELS, CORDON, READY, SIZE, USE = "taints", "labels", "cordon", "readiness", "size", "use"
_RULED_OUT = {
    TAINTS: "taints do not keep the pod off all nodes with {resource}",
    LABELS: "the node selector and the affinity allow nodes with {resource}",
    CORDON: "not all nodes with {resource} are cordoned",
    READY: "nodes with {resource} are ready",
    SIZE: "a node with {resource} is large enough",
}


def has_gpus(node: Obj) -> bool:
    """By what the node advertises, by the labels of feature discovery, or by the machine type of a cloud."""
    labels = labels_of(node)
    if allocatable(node) or capacity(node) or "true" in (labels.get(PRESENT_LABEL), labels.get(PCI_LABEL)):
        return True
    machine = find_instance(labels.get(_MACHINE_TYPE, ""))
    return machine is not None and bool(machine.gpu)


def pending_pod(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    subject, requests = named(pod), device_requests(pod)
    if gates := [str(gate.get("name")) for gate in maps(dig(pod, "spec", "schedulingGates"))]:
        yield NotRun(
            subject, "the search for a node", f"the pod has scheduling gates: {few(gates)}; ask about its queue"
        )
        return
    if not requests:
        yield RuledOut(subject, "the pod requests no device of NVIDIA; shoal why explains other requests")
        return
    missing = facts.not_run(subject, "the search for a node with GPUs", NODE)
    if missing is not None:
        yield missing
        return
    for resource, amount in requests.items():
        yield from _resource(facts, pod, resource, amount)


def _resource(facts: DiagnosedCluster, pod: Obj, resource: str, amount: int) -> Iterator[Verdict]:
    offering = [node for node in facts.nodes if allocatable(node).get(resource)]
    if not offering:
        cause = _not_offered(facts, pod, resource)
        yield cause
        if cause.id == _SILENT:
            silent = _silent_nodes(facts)
            reasons = {name_of(node): _reasons(facts, pod, node, resource, 0) for node in silent}
            yield from (_cause(facts, pod, silent, resource, one) for one in _common(reasons, (TAINTS, LABELS, CORDON)))
        return
    subject = named(pod)
    yield RuledOut(subject, f"{len(offering)} of {len(facts.nodes)} nodes advertise {resource}")
    reasons = {name_of(node): _reasons(facts, pod, node, resource, amount) for node in offering}
    alone = _common(reasons, (TAINTS, LABELS, CORDON, READY, SIZE, USE))
    if {LABELS, SIZE} & set(alone) and USE in alone:
        # The pod could not use these nodes if they were free.
        alone.remove(USE)
    for reason, words in _RULED_OUT.items():
        if reason not in alone:
            yield RuledOut(subject, words.format(resource=resource))
    for reason in alone:
        if reason == USE:
            yield _in_use(facts, pod, offering, resource, amount)
        else:
            yield _cause(facts, pod, offering, resource, reason)
    if alone:
        return
    if not all(reasons.values()):
        free = [name for name, one in reasons.items() if not one]
        yield RuledOut(
            subject, f"{few(free)} has the free {resource} that the pod asks for; run shoal why for the rest"
        )
        return
    usable = [node for node in offering if reasons[name_of(node)] <= {USE}]
    if usable:
        yield _in_use(facts, pod, usable, resource, amount)
        return
    evidence = tuple(f"node {name}: {', '.join(sorted(one))}" for name, one in list(reasons.items())[:_MOST_NODES])
    what = f"every node with {resource} is excluded, each by another reason"
    yield FoundCause("NodesExcludedTogether", subject, what, "remove one of the reasons", evidence, (_why(pod),))


def _common(reasons: Mapping[str, set[str]], among: Iterable[str]) -> list[str]:
    """The reasons that exclude every node."""
    return [reason for reason in among if all(reason in one for one in reasons.values())]


def _silent_nodes(facts: DiagnosedCluster) -> list[Obj]:
    """Nodes with GPUs that advertise none."""
    return [node for node in facts.nodes if has_gpus(node) and not any(allocatable(node).values())]


def _reasons(facts: DiagnosedCluster, pod: Obj, node: Obj, resource: str, amount: int) -> set[str]:
    found = set()
    if untolerated(_lasting_taints(node), tolerations_of(pod.get("spec"))) is not None:
        found.add(TAINTS)
    rule = _rule_of(pod)
    if rule is not None and not rule.matches(name_of(node), labels_of(node)):
        found.add(LABELS)
    if dig(node, "spec", "unschedulable"):
        found.add(CORDON)
    if not is_ready(node):
        found.add(READY)
    size = allocatable(node).get(resource, 0)
    if size < amount:
        found.add(SIZE)
    elif size - facts.used_on(name_of(node), resource) < amount:
        found.add(USE)
    return found


def is_ready(node: Obj) -> bool:
    """A node that does not say is ready: manifests have no status."""
    ready = condition(node, "Ready")
    return not ready or ready.get("status") == "True"


def _lasting_taints(node: Obj) -> list[Taint]:
    """Without those that the control plane sets for the condition of a node."""
    return [
        taint for taint in taints_of(node) if taint.effect in HARD_EFFECTS and not taint.key.startswith(_NODE_TAINTS)
    ]


def _rule_of(pod: Obj) -> NodeRule | None:
    selector = {key: str(value) for key, value in string_keys(dig(pod, "spec", "nodeSelector")).items()}
    written = dig(pod, "spec", "affinity", "nodeAffinity")
    try:
        affinity = msgspec.convert(written, NodeAffinity) if isinstance(written, dict) else None
    except msgspec.ValidationError:
        return None
    return node_rule(selector, affinity)


def _cause(facts: DiagnosedCluster, pod: Obj, nodes: list[Obj], resource: str, reason: str) -> FoundCause:
    subject, names = named(pod), few([name_of(node) for node in nodes])
    if reason == TAINTS:
        return _taints(pod, nodes, resource)
    if reason == LABELS:
        return _labels(facts, pod, nodes, resource)
    if reason == CORDON:
        what = f"all nodes with {resource} are cordoned"
        commands = tuple(shell_command("kubectl uncordon {}", name_of(node)) for node in nodes[:_MOST_NODES])
        return FoundCause("NodesCordoned", subject, what, "uncordon a node when its work is done", (names,), commands)
    if reason == READY:
        evidence = tuple(f"node {name_of(node)}: {_ready_words(node)}" for node in nodes[:_MOST_NODES])
        commands = tuple(shell_command("shoal doctor node {}", name_of(node)) for node in nodes[:_MOST_NODES])
        what = f"all nodes with {resource} are not ready"
        return FoundCause("NodesNotReady", subject, what, "repair or replace the nodes", evidence, commands)
    most = max(allocatable(node)[resource] for node in nodes)
    amount = device_requests(pod)[resource]
    what = f"the pod asks for {amount} {resource}, and no node has more than {most}"
    fix = f"ask for at most {most} in one pod, and use several pods; or add larger nodes"
    return FoundCause("RequestLargerThanNodes", subject, what, fix, (f"nodes with {resource}: {names}",))


def _ready_words(node: Obj) -> str:
    ready = condition(node, "Ready")
    return f"Ready is {ready.get('status')} ({ready.get('reason') or 'no reason'})"


def _taints(pod: Obj, nodes: list[Obj], resource: str) -> FoundCause:
    tolerations = tolerations_of(pod.get("spec"))
    by_taint: dict[Taint, list[str]] = defaultdict(list)
    for node in nodes:
        taint = untolerated(_lasting_taints(node), tolerations)
        if taint is not None:
            by_taint[taint].append(name_of(node))
    evidence = [f"taint {taint} of {few(names)}" for taint, names in by_taint.items()]
    for taint in by_taint:
        near = next((one for one in tolerations if one.key == taint.key and one.operator != "Exists"), None)
        if near is not None and near.value != taint.value:
            evidence.append(f"the pod tolerates {taint.key}={near.value}, the nodes have {taint.key}={taint.value}")
    keys = few([f"{{key: {taint.key}, operator: Exists, effect: {taint.effect}}}" for taint in by_taint])
    fix = f"add to spec.tolerations of the pod or its template: {keys}"
    what = f"the pod does not tolerate the taints of the nodes with {resource}"
    commands = ("kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",)
    return FoundCause("TaintNotTolerated", named(pod), what, fix, tuple(evidence), commands)


def _labels(facts: DiagnosedCluster, pod: Obj, nodes: list[Obj], resource: str) -> FoundCause:
    known: dict[str, set[str]] = defaultdict(set)
    for node in facts.nodes:
        for key, value in labels_of(node).items():
            known[key].add(value)
    evidence = []
    for key, value in string_keys(dig(pod, "spec", "nodeSelector")).items():
        if key not in known:
            evidence.append(f"no node has the label {key}{meant_words(key, known)}")
        elif str(value) not in known[key]:
            evidence.append(f"no node has {key}={value}; nodes have {few(sorted(known[key]))}")
        elif not any(labels_of(node).get(key) == str(value) for node in nodes):
            evidence.append(f"nodes with {key}={value} do not advertise {resource}")
    flavors = _flavors_of(facts, pod)
    if not evidence:
        evidence.append("the required node affinity or the labels together match none of them")
    evidence += [f"the ResourceFlavor {name} adds the selector {words}" for name, words in flavors.items()]
    what = f"the node selector or the affinity of the pod matches no node with {resource}"
    fix = "correct the labels that the pod asks for, or label the nodes"
    if flavors:
        fix = f"correct nodeLabels of the ResourceFlavor {few(flavors)}, or label the nodes"
    return FoundCause(
        "SelectorMatchesNoNode", named(pod), what, fix, tuple(evidence), ("kubectl get nodes --show-labels",)
    )


def _flavors_of(facts: DiagnosedCluster, pod: Obj) -> dict[str, str]:
    """The flavors of Kueue whose labels are in the selector of the pod: an admission has written them there."""
    selector = {key: str(value) for key, value in string_keys(dig(pod, "spec", "nodeSelector")).items()}
    found = {}
    for flavor in facts.all(RESOURCE_FLAVOR):
        wanted = {key: str(value) for key, value in string_keys(dig(flavor, "spec", "nodeLabels")).items()}
        if wanted and wanted.items() <= selector.items():
            found[name_of(flavor)] = few([f"{key}={value}" for key, value in wanted.items()])
    return found


def _in_use(facts: DiagnosedCluster, pod: Obj, nodes: list[Obj], resource: str, amount: int) -> FoundCause:
    evidence, holders = [], []
    for node in nodes:
        name = name_of(node)
        evidence.append(
            f"node {name}: {facts.used_on(name, resource)} of {allocatable(node)[resource]} {resource} are in use"
        )
        holders += [
            f"{key_of(one)[0]}/{key_of(one)[1]} ({device_requests(one)[resource]} on {name})"
            for one in facts.holders(name, resource)
        ]
    shown = [*evidence[:_MOST_NODES], f"held by {few(holders, _MOST_NODES)}"]
    shown += [event_words(event) for event in facts.events(pod)[-1:]]
    what = f"no node has {amount} free {resource}: all are in use"
    fix = "wait, end one of the pods that hold GPUs, give the pod a higher priority, or add nodes"
    return FoundCause("GpusInUse", named(pod), what, fix, tuple(shown), (_why(pod), "shoal top"))


def _not_offered(facts: DiagnosedCluster, pod: Obj, resource: str) -> FoundCause:
    subject = named(pod)
    offered = sorted({name for node in facts.nodes for name, amount in allocatable(node).items() if amount})
    silent = _silent_nodes(facts)
    if offered:
        strategies = sorted({found for node in facts.nodes if (found := labels_of(node).get(STRATEGY_LABEL))})
        evidence = [f"nodes advertise {few(offered)}{meant_words(resource, offered)}"]
        if strategies:
            evidence.append(
                f"{STRATEGY_LABEL} of the nodes: {few(strategies)} (single names MIG devices nvidia.com/gpu)"
            )
        if silent:
            evidence.append(f"nodes with GPUs that advertise nothing: {few([name_of(node) for node in silent])}")
        what = f"no node advertises {resource}"
        fix = "ask for a resource that nodes advertise, or change the MIG layout, strategy or sharing of a node"
        return FoundCause("ResourceNotAdvertised", subject, what, fix, tuple(evidence), (_columns(),))
    if silent:
        names = [name_of(node) for node in silent]
        what = "the nodes with GPUs advertise none: the device plugin or the driver does not work there"
        commands = tuple(shell_command("shoal doctor node {}", name) for name in names[:_MOST_NODES])
        fix = "repair the GPU stack of the nodes"
        return FoundCause(_SILENT, subject, what, fix, (f"nodes {few(names)}",), commands)
    what = f"no node of the cluster has GPUs of NVIDIA, and the pod asks for {resource}"
    evidence_of_none = (f"{len(facts.nodes)} nodes; none advertises a device or has the label {PRESENT_LABEL}=true",)
    fix = "add nodes with GPUs"
    return FoundCause("NoGpuNodes", subject, what, fix, evidence_of_none, ("shoal scale plan", _columns()))


def _columns() -> str:
    return "kubectl get nodes -o custom-columns='NAME:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu'"


def _why(pod: Obj) -> str:
    namespace, name = key_of(pod)
    return shell_command("shoal why pod/{} -n {}", name, namespace)
