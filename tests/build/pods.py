"""Asks in one line: `ask().cpu(4).gpus(2).model("A100").tolerates("gpu")`.

By default a pod asks for nothing at all, so that whatever it is refused for stands in the test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from build.company import Rule, with_rules
from build.nodes import GIB
from shoal.api.node_affinity import NAME_FIELD, NodeRule, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.requirement import Operator, Requirement
from shoal.api.taints import Toleration
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask, HostPort
from shoal.engine.device_demand import Demand, GpuShare, MigTiles, WholeGpus
from shoal.engine.pod_rules import NO_RULES, PodRules

ANYWHERE = NodeRule()


@dataclass(frozen=True)
class AskBuilder:
    requests: tuple[tuple[str, int], ...] = ()
    devices: Demand | None = None
    models: frozenset[str] = frozenset()
    rule: NodeRule = ANYWHERE
    preferred: tuple[PreferredSchedulingTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    node_name: str = ""
    rules: PodRules = NO_RULES

    def resource(self, name: str, amount: int) -> AskBuilder:
        return replace(self, requests=tuple(sorted({**dict(self.requests), name: amount}.items())))

    def cpu(self, cores: float) -> AskBuilder:
        return self.resource("cpu", round(cores * 1000))

    def memory_gib(self, gib: float) -> AskBuilder:
        return self.resource("memory", round(gib * GIB))

    def gpus(self, count: int) -> AskBuilder:
        return replace(self, devices=WholeGpus(count))

    def share(self, milli: int) -> AskBuilder:
        return replace(self, devices=GpuShare(milli))

    def demand(self, devices: Demand) -> AskBuilder:
        """Any other ask for devices; MIG instances are requested by name as well."""
        asked = replace(self, devices=devices)
        for profile, count in devices.tiles if isinstance(devices, MigTiles) else ():
            asked = asked.resource(RESOURCE_PREFIX + profile, count)
        return asked

    def model(self, *names: str) -> AskBuilder:
        return replace(self, models=frozenset(names))

    def select(self, key: str, operator: Operator, *values: str) -> AskBuilder:
        """One more condition that must hold whatever else does."""
        always = (*self.rule.always, Requirement(key, operator, values))
        return replace(self, rule=NodeRule(always, self.rule.terms))

    def either(self, *terms: NodeSelectorTerm) -> AskBuilder:
        """Required node affinity: at least one of the terms."""
        return replace(self, rule=NodeRule(self.rule.always, terms))

    def prefer(self, weight: int, term: NodeSelectorTerm) -> AskBuilder:
        return replace(self, preferred=(*self.preferred, PreferredSchedulingTerm(weight, term)))

    def tolerate(
        self,
        key: str = "",
        operator: Literal["Exists", "Equal"] = "Exists",
        value: str = "",
        effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = "",
    ) -> AskBuilder:
        return replace(self, tolerations=(*self.tolerations, Toleration(key, operator, value, effect)))

    def port(self, number: int, ip: str = "", protocol: str = "TCP") -> AskBuilder:
        return replace(self, ports=(*self.ports, HostPort(number, protocol, ip)))

    def on(self, node_name: str) -> AskBuilder:
        return replace(self, node_name=node_name)

    def near(self, *rules: Rule) -> AskBuilder:
        """Rules about other pods (see `build.company`)."""
        return replace(self, rules=with_rules(self.rules, *rules))

    def made(self) -> Ask:
        return Ask(
            requests=self.requests,
            devices=self.devices,
            gpu_models=self.models,
            nodes=self.rule,
            preferred=self.preferred,
            tolerations=self.tolerations,
            host_ports=self.ports,
            node_name=self.node_name,
            near=self.rules,
        )


def ask() -> AskBuilder:
    return AskBuilder()


def where(key: str, operator: Operator, *values: str) -> Requirement:
    return Requirement(key, operator, values)


def term(*expressions: Requirement, names: Requirement | None = None) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions, () if names is None else (names,))


def named(operator: Operator, name: str) -> Requirement:
    """A condition on the node's own name, as `matchFields` spells it."""
    return Requirement(NAME_FIELD, operator, (name,))
