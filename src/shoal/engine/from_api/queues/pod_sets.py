"""Converts a pod template to a pod set: the charge of one of its pods, its use of a node, and where it may run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.pod import PodSpec, PodTemplate
from shoal.api.resources import effective_requests
from shoal.engine.device_notation import devices_of_pod
from shoal.engine.from_api.cores import container_amounts
from shoal.engine.from_api.queues.claimed_devices import Claimed, charge_claims
from shoal.engine.from_api.queues.equivalents import GPU_MILLI, Equivalents
from shoal.engine.from_api.queues.limits import NamespaceRules
from shoal.engine.from_api.queues.resource_mapping import ResourceMapping
from shoal.engine.node_rules import models_named
from shoal.engine.queues.facts import Amounts, PodSet
from shoal.engine.queues.topology_facts import TopologyRequest
from shoal.units.errors import Where

_NO_RULES = NamespaceRules()


class CountingRules(msgspec.Struct, frozen=True):
    """How pods are counted: the configuration's currency and the rules of namespaces."""

    currency: ResourceMapping = ResourceMapping()
    equivalents: Equivalents = Equivalents()
    claims: Mapping[str, Claimed] = {}
    """What claims come to, by template (namespace/name)."""
    rules: Mapping[str, NamespaceRules] = {}
    """By namespace."""
    everywhere: NamespaceRules = _NO_RULES
    """Where a namespace has none of its own."""

    def rules_of(self, namespace: str) -> NamespaceRules:
        return self.rules.get(namespace, self.everywhere)


class PodSetSize(msgspec.Struct, frozen=True):
    """How many pods of a template, under which name, and where they want to be."""

    name: str = "main"
    count: int = 1
    least: int | None = None
    """With fewer it is no use (partial admission)."""
    topology: TopologyRequest | None = None


class QuotaScope(msgspec.Struct, frozen=True):
    """Where a pod set is counted."""

    namespace: str
    covered: frozenset[str] = frozenset()
    """Resources that its cluster queue covers."""


class CountedPodSet(msgspec.Struct, frozen=True):
    pod_set: PodSet
    fault: str
    """Why such pods can never run."""


def pod_set_of(
    template: PodTemplate, sized: PodSetSize, home: QuotaScope, counting: CountingRules, where: Where
) -> CountedPodSet:
    """`where` is the place of the template."""
    rules = counting.rules_of(home.namespace)
    spec = rules.completed(template.spec)
    asked = effective_requests(spec)
    claimed = charge_claims(spec, home.namespace, counting.claims)
    charged = counting.currency.charge(asked)
    for name, amount in claimed.amounts.items():
        charged[name] = charged.get(name, 0) + amount
    if GPU_MILLI in home.covered:
        worth = _worth(template, spec, asked, counting.equivalents, where)
        charged = counting.equivalents.charge(charged, worth, home.covered)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    pod_set = PodSet(
        name=sized.name,
        count=sized.count,
        min_count=sized.least,
        requests=charged,
        node_requests=None if charged == asked else asked,
        selector=spec.node_selector,
        affinity=affinity.required if affinity is not None else None,
        preferred=affinity.preferred if affinity is not None else (),
        tolerations=spec.tolerations,
        topology=sized.topology,
    )
    return CountedPodSet(pod_set, claimed.fault or rules.fault(spec, f"podSets[{sized.name}].template.spec"))


def _worth(template: PodTemplate, spec: PodSpec, asked: Amounts, equivalents: Equivalents, where: Where) -> int:
    containers = [container_amounts(container) for container in spec.containers]
    demand = devices_of_pod(template.metadata.annotations, dict(asked), where, containers)
    return equivalents.milli(demand, models_named(spec.node_rule()))
