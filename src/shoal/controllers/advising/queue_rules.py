"""Queues, flavors and classes that were taken and do something else than is written in them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.api.decode import read
from shoal.api.kueue.slips import QUEUE_NAME, slips
from shoal.api.taints import HARD_EFFECTS, Toleration
from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named
from shoal.engine.from_api.queues import PRIORITY_CLASS_LABEL
from shoal.store.live.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOAD_PRIORITY_CLASSES
from shoal.store.live.item import Obj
from shoal.store.live.kind import PRIORITY_CLASSES
from shoal.units.errors import UserError

_MOST_NAMED = 5
_REASONS = {
    "spec.namespaceSelector": "NoNamespaceSelector",
    "spec.cohort": "OldFieldName",
    "spec.value": "MisplacedValue",
}


def slipped(obj: Obj, _: Around) -> Iterator[Advice]:
    """What `shoal decide` says of the same object. What cannot be read is told by whoever decides by it."""
    try:
        found = read(msgspec.json.encode(obj))
    except UserError:
        return
    for document in found:
        for slip in slips(document.value):
            yield Advice(_REASONS.get(slip.path, "Slip"), slip.path, slip.what, slip.fix)


def queues_of_nobody(obj: Obj, around: Around) -> Iterator[Advice]:
    """Of kinds whose pods wait one by one: these say it too, but whoever looks at their maker does not see them."""
    labels = named(dig(obj, "metadata", "labels"))
    namespace = str(dig(obj, "metadata", "namespace") or "")
    queue, priority = labels.get(QUEUE_NAME), labels.get(PRIORITY_CLASS_LABEL)
    if isinstance(queue, str) and queue and around.lacks(LOCAL_QUEUES, namespace, queue):
        what = f"there is no LocalQueue {queue} in {namespace}: its pods are held"
        there = sorted(str(dig(one, "metadata", "name")) for one in around.all(LOCAL_QUEUES, namespace))
        fix = f"create it, or name one that is there ({', '.join(there[:_MOST_NAMED])})" if there else "create it"
        yield Advice("NoSuchLocalQueue", f"metadata.labels[{QUEUE_NAME}]", what, fix)
    if isinstance(priority, str) and priority and queue and around.lacks(WORKLOAD_PRIORITY_CLASSES, "", priority):
        what = f"there is no WorkloadPriorityClass {priority}: its pods are held"
        yield Advice(
            "NoSuchPriorityClass", f"metadata.labels[{PRIORITY_CLASS_LABEL}]", what, "create it, or leave it out"
        )


def flavors_without_nodes(obj: Obj, around: Around) -> Iterator[Advice]:
    """Who is admitted to such a flavor is sent to nodes that are not there, or that turn him away."""
    wanted = named(dig(obj, "spec", "nodeLabels"))
    nodes = list(around.nodes())
    if not wanted or not nodes:
        return
    mine = [node for node in nodes if wanted.items() <= node.labels.items()]
    if not mine:
        labels = ", ".join(f"{key}={value}" for key, value in wanted.items())
        what = f"no node has {labels}: whoever is admitted waits for such a node"
        missing = [key for key in wanted if not any(key in node.labels for node in nodes)]
        fix = f"label the nodes that are meant; none has {' or '.join(missing)} at all" if missing else "mend them"
        yield Advice("NoNodes", "spec.nodeLabels", what, fix)
        return
    given = [_toleration(one) for one in maps(dig(obj, "spec", "tolerations"))]
    kept_off = [
        next((t for t in node.taints if t.effect in HARD_EFFECTS and not any(one.tolerates(t) for one in given)), None)
        for node in mine
    ]
    taint = kept_off[0]
    declared = {(one.get("key"), one.get("effect")) for one in maps(dig(obj, "spec", "nodeTaints"))}
    if taint is not None and all(kept_off) and (taint.key, taint.effect) not in declared:
        what = f"all of its nodes are tainted, the first with {taint}: only pods that bring a toleration can run there"
        yield Advice("TaintedNodes", "spec.tolerations", what, f"give one here: key {taint.key}, operator Exists")


def _toleration(written: Obj) -> Toleration:
    try:
        return msgspec.convert(written, Toleration)
    except msgspec.ValidationError:
        return Toleration(key="-")


def volcano_queues(obj: Obj, around: Around) -> Iterator[Advice]:
    spec, name = named(obj.get("spec")), str(dig(obj, "metadata", "name"))
    for field, meaning in _EXTENSIONS.items():
        if field in spec:
            what = f"is no field of Volcano's queues, which drop it; here {meaning}"
            yield Advice("UnknownField", f"spec.{field}", what, "leave it out where Volcano itself runs")
    if around.find(CLUSTER_QUEUES, "", name) is not None:
        yield Advice(
            "NamesakeQueue",
            "metadata.name",
            f"ClusterQueue {name} has the same name and nothing to do with it: quota given in both is counted twice",
            "keep one of them",
        )


_EXTENSIONS = {
    "preemptable": "whether its pods may be made to yield is said by their priority and shoal.dev/preemptible",
    "preemptionPolicy": "the fewest pods that make room yield, which is what bestFit means",
}


def pod_groups(obj: Obj, around: Around) -> Iterator[Advice]:
    name = dig(obj, "spec", "priorityClassName")
    if isinstance(name, str) and name and around.lacks(PRIORITY_CLASSES, "", name):
        what = f"there is no PriorityClass {name}: the group has no priority of its own"
        yield Advice("UnknownPriorityClass", "spec.priorityClassName", what, "create it, or leave the name out")
