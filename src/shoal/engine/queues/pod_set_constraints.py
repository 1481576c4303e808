"""Adds the constraints of an admission to pods: node labels of the flavors and of the topology domain, and the flavors'
tolerations. Removes them again for pods that ran before and may start with other flavors.

Rejected: changing the pods' manifests before they are read. The same pod arrives several times, each time with its
latest admission, and reading it again each time would also repeat its warnings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import structs

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.api.taints import Toleration
from shoal.engine.asks import Ask
from shoal.engine.node_rules import models_named
from shoal.engine.queues.facts import FlavorFacts, PodSetAdmission
from shoal.engine.queues.state import Queues


def flavors_of(queues: Queues, admission: PodSetAdmission) -> list[FlavorFacts]:
    """Those that are known, each once."""
    names = sorted(set(admission.flavors.values()))
    return [queues.flavors[name] for name in names if name in queues.flavors]


def with_pod_set_constraints(ask: Ask, flavors: Iterable[FlavorFacts], domain: Mapping[str, str]) -> Ask:
    """The ask with what the admission adds."""
    labels = dict(domain)
    tolerations = list(ask.tolerations)
    for flavor in flavors:
        labels.update(flavor.labels)
        tolerations += [_spelled(each) for each in flavor.tolerations]
    wanted = (Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
    more = tuple(each for each in wanted if each not in ask.nodes.always)
    nodes = NodeRule((*ask.nodes.always, *more), ask.nodes.terms)
    return structs.replace(
        ask,
        nodes=nodes,
        gpu_models=models_named(nodes) if ask.devices is not None else ask.gpu_models,
        tolerations=tuple(
            sorted(set(tolerations), key=lambda each: (each.key, each.operator, each.value, each.effect))
        ),
    )


def without_pod_set_constraints(ask: Ask, added: Collection[str], own: Mapping[str, str]) -> Ask:
    """The ask without conditions on labels that an admission added. `own` is the selector that its template had."""
    kept = tuple(
        each
        for each in ask.nodes.always
        if each.key not in added or (each.operator == "In" and each.values == (own.get(each.key),))
    )
    if kept == ask.nodes.always:
        return ask
    nodes = NodeRule(kept, ask.nodes.terms)
    return structs.replace(ask, nodes=nodes, gpu_models=models_named(nodes) if ask.devices is not None else frozenset())


def constraint_label_keys(queues: Queues, admission: PodSetAdmission) -> set[str]:
    """Keys of labels that an admission adds."""
    keys = {key for flavor in flavors_of(queues, admission) for key in flavor.labels}
    return keys | set(admission.topology.levels if admission.topology is not None else ())


def _spelled(toleration: Toleration) -> Toleration:
    """As asks have them: without seconds, the operator written out."""
    return Toleration(toleration.key, toleration.operator or "Equal", toleration.value, toleration.effect)
