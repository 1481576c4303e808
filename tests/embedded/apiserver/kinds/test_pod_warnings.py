"""What the writer of a pod is told though the pod is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from build.kind_objects import container, created, pod, template, workload
from shoal.embedded.apiserver.kinds.table import STRATEGIES

TOKEN: dict[str, Any] = {
    "name": "kube-api-access",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]
    },
}
ARCH = 'deprecated since v1.14; use "kubernetes.io/arch" instead'
NOBODY = "a null labelSelector results in matching no pod"
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}]}]
        }
    },
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SEVERAL: dict[str, tuple[dict[str, Any], list[str]]] = {
    "affinity": (
        {"affinity": AFFINITY},
        [
            (
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: "
                f"beta.kubernetes.io/arch is {ARCH}"
            ),
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector: {NOBODY}",
        ],
    ),
    "spreading": (
        {"topologySpreadConstraints": [{"topologyKey": "beta.kubernetes.io/arch", "maxSkew": 1}]},
        [
            f"spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/arch is {ARCH}",
            f"spec.topologySpreadConstraints[0].labelSelector: {NOBODY}",
        ],
    ),
    "old volumes": (
        {"volumes": [{"name": "a", "gitRepo": {}}, {"name": "b", "storageos": {}}]},
        [
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
        ],
    ),
    "hidden files": (
        {"volumes": [{"name": "c", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}}]},
        ['volume "c" (ConfigMap "m"): overlapping paths: "a/b" with "a"'],
    ),
    "a hidden token": (
        {
            "volumes": [
                {
                    "name": "p",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "token"}},
                            {"secret": {"name": "s", "items": [{"path": "token"}]}},
                        ]
                    },
                }
            ]
        },
        ['volume "p" (Projected Secret "s"): overlapping paths: "token" with "token"'],
    ),
    "aliases": (
        {"hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]},
        ['spec.hostAliases[1].ip: duplicate ip "10.0.0.1"'],
    ),
    "secrets": (
        {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
        [
            'spec.imagePullSecrets[1].name: duplicate name "a"',
            'spec.imagePullSecrets[2].name: invalid empty name ""',
        ],
    ),
}


def told(made: dict[str, Any]) -> list[str]:
    return STRATEGIES["", "pods"].warnings(created("", "pods", made), None)


def test_an_ordinary_pod_is_told_nothing() -> None:
    held = container(
        resources={"limits": {"memory": "1.5Gi", "cpu": "100m"}, "requests": {"memory": "1Gi"}},
        env=[{"name": "PATH", "value": "/bin"}, {"name": "PATH", "value": "$(PATH):/usr/bin"}],
        ports=[{"containerPort": 80}, {"containerPort": 81}],
    )
    assert told(pod(held, volumes=[TOKEN])) == []


@pytest.mark.parametrize("key", SEVERAL)
def test_what_does_not_what_it_seems_to_is_told(key: str) -> None:
    spec, words = SEVERAL[key]
    assert told(pod(**spec)) == words


def test_parts_of_a_byte_are_told_of() -> None:
    assert told(pod(container(resources={"requests": {"memory": "100m", "cpu": "100m"}}))) == [
        'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer'
    ]


def test_a_variable_that_forgets_its_former_value_is_told_of() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(B)"}]
    assert told(pod(container(env=variables))) == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
    ]


def test_ports_of_all_containers_are_compared() -> None:
    one = container("one", ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "hostIP": "10.0.0.1"}])
    two = container("two", ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}])
    assert told(pod(one, two)) == [
        "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
        "spec.containers[1].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[1]",
    ]


def test_the_template_of_a_workload_is_told_of_under_its_own_path() -> None:
    pods = template(nodeSelector={"beta.kubernetes.io/arch": "amd64"})
    pods["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/main": "x"}
    made = created("apps", "deployments", workload("Deployment", template=pods))
    path = "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]"
    assert STRATEGIES["apps", "deployments"].warnings(made, None) == [
        f"spec.template.spec.nodeSelector[beta.kubernetes.io/arch]: {ARCH}",
        f'{path}: deprecated since v1.30; use the "appArmorProfile" field instead',
    ]
