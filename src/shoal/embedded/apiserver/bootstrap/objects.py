"""The list of everything that is there from the start."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.bootstrap.default_roles import default_roles
from shoal.embedded.apiserver.bootstrap.flow_control import flow_control
from shoal.embedded.apiserver.bootstrap.namespaces import first_namespaces
from shoal.embedded.apiserver.bootstrap.own_service import own_service
from shoal.embedded.apiserver.bootstrap.seed import Seed, seed


def objects(now: str, root_certificate: str, host: str, port: int) -> Iterator[Seed]:
    """In an order in which each could have been written: namespaces before what is in them.

    What is there already is left alone, but for the endpoints of the server itself (`own_service.own_endpoints`).
    """
    yield from first_namespaces(root_certificate)
    yield from priority_classes()
    yield from default_roles()
    yield from flow_control(now)
    yield from own_service(host, port)
    # Since when the use of tokens in Secrets is noted: kube-controller-manager reads it.
    kind = ("v1", "ConfigMap", "configmaps")
    yield seed(kind, "kube-apiserver-legacy-service-account-token-tracking", "kube-system", data={"since": now[:10]})


_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)


def priority_classes() -> Iterator[Seed]:
    for name, value, description in _CLASSES:
        yield seed(
            ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
            name,
            value=value,
            description=description,
            preemptionPolicy="PreemptLowerPriority",
        )
