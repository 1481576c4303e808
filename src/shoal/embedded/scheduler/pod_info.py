"""Defines what the scheduler reads of a pod: its requirements (`PodRequest`) and its identity.

Pods of one template have equal asks, so that everything computed for one of them (feasible nodes, refusals) holds for
all. An ask contains everything that can change a placement.

For a pod on a node only a few fields can still change; `read_head` decodes only those, at a tenth of the cost.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import field

from shoal.api.node_affinity import NodeRule, PreferredSchedulingTerm
from shoal.api.pod import Pod
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.resources import CPU, MEMORY, PODS, SCORING_DEFAULTS, effective_requests
from shoal.api.taints import Toleration
from shoal.api.wire import ApiStruct, dec_hook
from shoal.client.item import Item, Key
from shoal.engine.domains.reading import rules_of
from shoal.engine.pod_rules import NO_RULES, PodRules

Port = tuple[str, str, int]
"""Address, protocol, number."""


class PodRequest(msgspec.Struct, frozen=True, cache_hash=True):
    requests: tuple[tuple[str, int], ...] = ()
    """The requests, including one of the resource `pods`."""
    scored: tuple[int, int] = (0, 0)
    """The cpu and memory requests that scores use."""
    nodes: NodeRule = NodeRule()
    preferred: tuple[PreferredSchedulingTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[Port, ...] = ()
    rules: PodRules = NO_RULES
    volume_claims: tuple[Key, ...] = ()
    own_claims: frozenset[Key] = frozenset()
    """The claims that are created for the pod and deleted with it."""
    device_claims: tuple[Key, ...] = ()
    missing_claim: str = ""
    """A claim from a template that does not exist yet."""


class PodInfo(msgspec.Struct, frozen=True):
    uid: str
    namespace: str
    name: str
    request: PodRequest
    labels: dict[str, str] = {}
    node: str = ""
    priority: int = 0
    scheduler: str = ""
    generation: int = 0
    nominated: str = ""
    created: float = 0.0
    started: float = 0.0
    never_preempts: bool = False
    is_gated: bool = False
    is_terminating: bool = False
    is_ended: bool = False

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


class PodHead(msgspec.Struct, frozen=True):
    """What may change about a pod on a node."""

    node: str
    labels: dict[str, str]
    is_terminating: bool
    is_ended: bool


class _PodHeadMeta(ApiStruct, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    deletion_timestamp: str | None = None


class _HeadSpec(ApiStruct, frozen=True):
    node_name: str = ""


class _HeadStatus(ApiStruct, frozen=True):
    phase: str = ""


class _PodHead(ApiStruct, frozen=True):
    metadata: _PodHeadMeta
    spec: _HeadSpec = field(default_factory=_HeadSpec)
    status: _HeadStatus = field(default_factory=_HeadStatus)


_pods = msgspec.json.Decoder(Pod, dec_hook=dec_hook)
_heads = msgspec.json.Decoder(_PodHead)


def read_head(item: Item) -> PodHead:
    found = _heads.decode(item.data)
    meta = found.metadata
    return PodHead(
        found.spec.node_name, meta.labels, meta.deletion_timestamp is not None, found.status.phase in TERMINAL_PHASES
    )


def read_pod(item: Item) -> PodInfo:
    pod = _pods.decode(item.data)
    meta, spec = pod.metadata, pod.spec
    return PodInfo(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        request=_request(pod),
        labels=meta.labels,
        node=spec.node_name,
        priority=spec.priority or 0,
        scheduler=spec.scheduler_name,
        generation=meta.generation,
        nominated=pod.status.nominated_node_name,
        created=_seconds(meta.creation_timestamp),
        started=_seconds(pod.status.start_time),
        never_preempts=spec.preemption_policy == "Never",
        is_gated=bool(spec.scheduling_gates),
        is_terminating=pod.is_terminating(),
        is_ended=pod.is_finished(),
    )


def _request(pod: Pod) -> PodRequest:
    meta, spec = pod.metadata, pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    scored = effective_requests(spec, SCORING_DEFAULTS)
    claims, missing = _device_claims(pod)
    volume_claims = _volume_claims(pod)
    return PodRequest(
        requests=(*effective_requests(spec).items(), (PODS, 1)),
        scored=(scored.get(CPU, 0), scored.get(MEMORY, 0)),
        nodes=spec.node_rule(),
        preferred=affinity.preferred if affinity is not None else (),
        tolerations=spec.tolerations,
        ports=spec.host_ports(),
        rules=rules_of(spec, meta.namespace, meta.labels),
        volume_claims=tuple(volume_claims),
        own_claims=frozenset(key for key, is_own in volume_claims.items() if is_own),
        device_claims=claims,
        missing_claim=missing,
    )


def _volume_claims(pod: Pod) -> dict[Key, bool]:
    """Each claim, and whether it is created for the pod."""
    namespace, name = pod.metadata.namespace, pod.metadata.name
    found: dict[Key, bool] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found[(namespace, volume.persistent_volume_claim.claim_name)] = False
        elif volume.ephemeral is not None:
            found[(namespace, f"{name}-{volume.name}")] = True
    return found


def _device_claims(pod: Pod) -> tuple[tuple[Key, ...], str]:
    """The existing claims, and one missing claim."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found = []
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name
        if not name:
            if claim.name not in made:
                return (), claim.name
            name = made[claim.name]
        if name:
            # A template may need no claim: then the entry in the status has no name.
            found.append((pod.metadata.namespace, name))
    return tuple(found), ""


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0
