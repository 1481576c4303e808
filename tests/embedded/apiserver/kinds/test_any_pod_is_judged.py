from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.kind_objects import container, created, pod
from shoal.embedded.apiserver.kinds.table import STRATEGIES

PODS = STRATEGIES["", "pods"]
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
CONTAINER = container(
    env=[{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    envFrom=[{"configMapRef": {"name": "a"}}],
    lifecycle={"preStop": {"sleep": {"seconds": 3}}},
    livenessProbe={"grpc": {"port": 1}},
    ports=[{"containerPort": 80, "name": "http", "hostPort": 80}],
    readinessProbe={"httpGet": {"port": "http", "httpHeaders": [{"name": "a", "value": "b"}]}},
    resources={"limits": {"nvidia.com/gpu": "8", "cpu": "8"}, "claims": [{"name": "gpu"}]},
    securityContext={"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}},
    volumeMounts=[{"name": "keys", "mountPath": "/keys", "subPath": "a"}],
)
SPEC: dict[str, Any] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]
            }
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": SELECTOR}}
            ]
        },
    },
    "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["a"], "options": [{"name": "a"}]},
    "initContainers": [container("first", restartPolicy="Always", startupProbe={"exec": {"command": ["a"]}})],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
    "schedulingGates": [{"name": "a/b"}],
    "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "a"}},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ],
    "volumes": [
        {"name": "keys", "secret": {"secretName": "x", "items": [{"key": "a", "path": "b", "mode": 1}]}},
        {"name": "info", "downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        {"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ],
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


@given(st.data())
@settings(max_examples=examples(80), deadline=None)
def test_whatever_is_left_out_or_emptied_is_answered_and_defaults_settle(data: st.DataObject) -> None:
    made = pod(copy.deepcopy(CONTAINER), container("side"), **copy.deepcopy(SPEC))
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(list(places(made["spec"])) or [(made, "spec")]))
        if data.draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = type(holder[key])() if isinstance(holder[key], dict | list) else holder[key]
        made.setdefault("spec", {})
    stored = created("", "pods", made)
    settled = copy.deepcopy(stored)
    PODS.default(settled)
    assert settled == stored
    assert all(error.text() for error in PODS.validate(stored))
    assert PODS.validate_update(copy.deepcopy(stored), stored) == [] or PODS.validate(stored)
