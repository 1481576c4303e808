"""Represents a pending pod as the planner sees it: what it requires now, and its weaker variants.

Pods that request the same share one `PodShape` with its variants, so what is computed for one of them holds for all.
A variant has the two forms in which its request is judged: a set of requirements for nodes that are planned, whose
labels are partly open, and an engine ask for nodes that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.node_affinity import NodeRule, NodeSelectorTerm
from shoal.api.pod import Pod, PodSpec
from shoal.api.requirement import Requirement
from shoal.api.taints import Toleration
from shoal.api.wire import enc_hook
from shoal.autoscale.nodes.interruption_risk import NO_LOSS, PodLoss
from shoal.autoscale.nodes.relaxation import relaxed, without_preferences
from shoal.autoscale.nodes.volumes import ANYWHERE, Alternative
from shoal.autoscale.requirements import RequirementSet, admitted_values, current_label, requirement_set
from shoal.engine.asks import Ask, HostPort
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.from_api import ask_of_pod
from shoal.engine.pod_identity import PodLabels
from shoal.engine.pod_rules import NO_RULES

_EMPTY: Final = RequirementSet()
_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook, order="sorted")


class VariantChoice(msgspec.Struct, frozen=True):
    """What a variant requires of labels, with one of the alternatives of its volumes."""

    requirements: RequirementSet
    """With the preferences that count as required."""
    strict: RequirementSet
    """Without them: topology domains are counted over the nodes that these allow."""
    ask: Ask
    """For nodes that exist."""

    def within(self, domain: RequirementSet) -> VariantChoice:
        """The same in one topology domain only: a set with one value for each label."""
        rule = self.ask.nodes
        added = tuple(Requirement(key, "In", tuple(sorted(admitted.values))) for key, admitted in domain.items())
        return VariantChoice(
            self.requirements.with_all(domain),
            self.strict.with_all(domain),
            replace(self.ask, nodes=NodeRule((*rule.always, *added), rule.terms)),
        )


class PodVariant:
    """A pod with some of its preferences given up."""

    __slots__ = (
        "anti_affinity",
        "ask",
        "choices",
        "filter_terms",
        "host_ports",
        "is_topology_free",
        "pod_affinity",
        "spec",
        "spread",
        "tolerations",
    )

    def __init__(self, spec: PodSpec, ask: Ask, alternatives: tuple[Alternative, ...]) -> None:
        self.spec = spec
        self.tolerations: tuple[Toleration, ...] = spec.tolerations
        self.spread: tuple[TopologySpreadConstraint, ...] = spec.topology_spread_constraints
        near = spec.affinity.pod_affinity if spec.affinity is not None else None
        apart = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
        self.pod_affinity: tuple[PodAffinityTerm, ...] = () if near is None else _terms(near.required, near.preferred)
        self.anti_affinity: tuple[PodAffinityTerm, ...] = (
            () if apart is None else _terms(apart.required, apart.preferred)
        )
        self.is_topology_free = not (self.spread or self.pod_affinity or self.anti_affinity)
        self.host_ports: tuple[HostPort, ...] = ask.host_ports
        self.ask = replace(
            ask, nodes=NodeRule(), gpu_models=frozenset(), preferred=(), near=NO_RULES, host_ports=(), node_name=""
        )
        """What it needs of a machine, apart from labels and ports."""
        node = spec.affinity.node_affinity if spec.affinity is not None else None
        selector = tuple(Requirement(key, "In", (value,)) for key, value in sorted(spec.node_selector.items()))
        required: tuple[NodeSelectorTerm, ...] = ()
        preferred: tuple[Requirement, ...] = ()
        if node is not None:
            required = node.required.node_selector_terms if node.required is not None else ()
            if node.preferred:
                heaviest = min(node.preferred, key=lambda term: -term.weight)
                preferred = heaviest.preference.match_expressions
        first = required[0] if required else None
        self.filter_terms = _filter_terms(selector, required)
        choices = []
        for volumes in alternatives:
            own = (*selector, *(first.match_expressions if first is not None else ()), *volumes)
            strict = _requirements(own)
            always = tuple(_current(each) for each in (*selector, *preferred, *volumes))
            terms = None if first is None else (_current_term(first),)
            choices.append(
                VariantChoice(
                    requirements=strict.with_all(_requirements(preferred)) if preferred else strict,
                    strict=strict,
                    ask=replace(ask, nodes=NodeRule(always, terms), preferred=(), near=NO_RULES),
                )
            )
        self.choices: tuple[VariantChoice, ...] = tuple(choices)


def _terms(required: tuple[PodAffinityTerm, ...], preferred: tuple[object, ...]) -> tuple[PodAffinityTerm, ...]:
    return (*required, *(each.pod_affinity_term for each in preferred))  # type: ignore[attr-defined]


def _filter_terms(
    selector: tuple[Requirement, ...], required: tuple[NodeSelectorTerm, ...]
) -> tuple[RequirementSet, ...]:
    """The nodes that a spread constraint counts: one set for each alternative."""
    if not required:
        return (_requirements(selector),)
    return tuple(_requirements((*selector, *term.match_expressions)) for term in required)


def _requirements(requirements: tuple[Requirement, ...]) -> RequirementSet:
    if not requirements:
        return _EMPTY
    return requirement_set((each.key, admitted_values(each.operator, each.values)) for each in requirements)


def _current(requirement: Requirement) -> Requirement:
    key = current_label(requirement.key)
    return requirement if key == requirement.key else replace(requirement, key=key)


def _current_term(term: NodeSelectorTerm) -> NodeSelectorTerm:
    return replace(term, match_expressions=tuple(_current(each) for each in term.match_expressions))


class PodShape:
    """What equal pods request, and their variants from the strictest to the weakest."""

    __slots__ = ("_asked", "_has_soft_taints", "_variants", "alternatives", "amounts", "labels", "namespace", "number")

    def __init__(
        self,
        number: int,
        pod: Pod,
        alternatives: tuple[Alternative, ...],
        *,
        respects_preferences: bool,
        has_soft_taints: bool,
        claims: tuple[ClaimRef, ...] | None,
    ) -> None:
        self.number = number
        self.namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        self.labels: Mapping[str, str] = pod.metadata.labels
        self.alternatives = alternatives
        self._asked = ask_of_pod(pod, claims=claims)
        self._has_soft_taints = has_soft_taints
        self._variants = [self._variant(pod.spec if respects_preferences else without_preferences(pod.spec))]
        self.amounts: Mapping[str, int] = dict(self._asked.requests)

    @property
    def first(self) -> PodVariant:
        return self._variants[0]

    @property
    def asked(self) -> Ask:
        return self._asked

    @property
    def traits(self) -> PodLabels:
        return PodLabels.of(self.namespace, self.labels)

    def variant(self, number: int) -> PodVariant | None:
        """The variant with so many preferences given up; None if the pod has not so many."""
        while len(self._variants) <= number:
            weaker = relaxed(self._variants[-1].spec, has_soft_taints=self._has_soft_taints)
            if weaker is None:
                return None
            self._variants.append(self._variant(weaker))
        return self._variants[number]

    def _variant(self, spec: PodSpec) -> PodVariant:
        return PodVariant(spec, self._asked, self.alternatives)


class PlannedPod(msgspec.Struct, frozen=True):
    """A pending pod."""

    key: str
    shape: PodShape
    created_s: float = 0.0
    uid: str = ""
    loss: PodLoss = NO_LOSS
    """What an interruption of its node costs; nothing where no node is interrupted."""
    shared_claims: tuple[str, ...] = ()
    """The claims that other pods may use too, by namespace and name."""

    @property
    def order(self) -> tuple[int, int, float, str]:
        """The largest cpu first, then memory, then age."""
        amounts = self.shape.amounts
        return (-amounts.get("cpu", 0), -amounts.get("memory", 0), self.created_s, self.uid)


class PodShapes:
    """The shapes of pods, one for all that request the same."""

    def __init__(self, *, respects_preferences: bool = True, has_soft_taints: bool = False) -> None:
        self._respects_preferences = respects_preferences
        self._has_soft_taints = has_soft_taints
        self._known: dict[bytes, PodShape] = {}

    def of(
        self, pod: Pod, alternatives: tuple[Alternative, ...] = ANYWHERE, claims: tuple[ClaimRef, ...] | None = None
    ) -> PlannedPod:
        meta = pod.metadata
        key = _ENCODER.encode((meta.namespace, meta.labels, meta.annotations, pod.spec, alternatives, claims))
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = PodShape(
                len(self._known),
                pod,
                alternatives,
                respects_preferences=self._respects_preferences,
                has_soft_taints=self._has_soft_taints,
                claims=claims,
            )
        created = meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0
        shared = tuple(ref.shared for ref in shape.asked.claims if ref.shared)
        return PlannedPod(f"{shape.namespace}/{meta.name}", shape, created, meta.uid, shared_claims=shared)
