"""Which replicas are spread over nodes though nobody said so."""

from __future__ import annotations

from typing import Any

from build.fed_worlds import FedWorld
from build.manifests import node, pod
from shoal.engine.events import PodArrived
from shoal.engine.pod_rules import PodRules
from shoal.store.watched.cluster import WatchSettings

KUBE = "default-scheduler"
LABELS = {"app": "web", "pod-template-hash": "1"}


def rules(
    *, owner: str = "ReplicaSet", scheduler: str = KUBE, labels: dict[str, str] = LABELS, gpus: int = 0, **spec: Any
) -> PodRules:
    fed = FedWorld(WatchSettings(frozenset({KUBE, "shoal"}), spreading=frozenset({KUBE})))
    fed.put(node("n1"))
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "u", "controller": True}] if owner else []
    meta = {"labels": labels, "ownerReferences": owners}
    fed.put(pod("a", meta=meta, gpus=gpus, schedulerName=scheduler, **spec))
    (arrived,) = fed.heard(PodArrived)
    return arrived.ask.near


def test_a_replica_prefers_a_node_without_its_like() -> None:
    (spread,) = rules().spread
    assert (spread.key, spread.hard) == ("kubernetes.io/hostname", False)
    assert spread.selected.namespaces == ("default",)


def test_replicas_of_a_stateful_set_are_alike_whatever_their_numbers() -> None:
    numbered = [
        {**LABELS, "statefulset.kubernetes.io/pod-name": f"web-{number}", "apps.kubernetes.io/pod-index": str(number)}
        for number in (0, 1)
    ]
    first, second = (rules(owner="StatefulSet", labels=labels) for labels in numbered)
    assert first == second != PodRules()


def test_others_are_left_to_the_policy() -> None:
    own = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
    assert rules(owner="Job").is_empty()
    assert rules(owner="").is_empty()
    assert rules(gpus=1).is_empty()
    assert rules(scheduler="shoal").is_empty()
    assert rules(labels={}).is_empty()
    assert [spread.key for spread in rules(topologySpreadConstraints=[own]).spread] == ["zone"]
