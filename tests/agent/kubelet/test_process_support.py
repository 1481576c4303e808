"""A pod that requests what a process cannot have is refused with the field, never run without it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.agent.kubelet.process.support import ProcessUser, unsupported

Obj = dict[str, Any]
NO_MOUNTS = "needs root: this user may not mount"
ROOT, USER = ProcessUser(0, 0), ProcessUser(1000, 1000)


def pod(spec: Obj | None = None, **container: Any) -> Obj:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "command": ["x"], **container}], **(spec or {})},
    }


def test_an_ordinary_pod_is_accepted() -> None:
    spec = {
        "restartPolicy": "Never",
        "securityContext": {},
        "dnsPolicy": "ClusterFirst",
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"}

    assert not unsupported(
        pod(spec, resources={"limits": limits}, livenessProbe={"exec": {"command": ["x"]}}), USER, NO_MOUNTS
    )
    assert not unsupported(pod(lifecycle={"postStart": {"exec": {"command": ["x"]}}}), USER, NO_MOUNTS)


@pytest.mark.parametrize(
    ("spec", "container", "field"),
    [
        ({"dnsConfig": {"nameservers": ["1.1.1.1"]}}, {}, "spec.dnsConfig"),
        ({"hostAliases": [{"ip": "1.1.1.1"}]}, {}, "spec.hostAliases"),
        ({"hostUsers": False}, {}, "spec.hostUsers: false"),
        ({"securityContext": {"runAsUser": 1001}}, {}, "spec.securityContext.runAsUser: 1001"),
        ({"volumes": [{"name": "v", "nfs": {}}]}, {}, "spec.volumes[v]: nfs"),
        (
            {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
            {},
            "spec.volumes[v]: medium Memory needs root",
        ),
        ({"volumes": [{"name": "v", "emptyDir": {"medium": "HugePages"}}]}, {}, "medium HugePages"),
        ({}, {"command": []}, "spec.containers[main].command is required"),
        ({}, {"lifecycle": {"preStop": {"tcpSocket": {}}}}, "spec.containers[main].lifecycle.preStop: tcpSocket"),
        ({}, {"lifecycle": {"stopSignal": "SIGINT"}}, "spec.containers[main].lifecycle.stopSignal"),
        ({}, {"securityContext": {"privileged": True}}, "spec.containers[main].securityContext.privileged"),
        ({}, {"securityContext": {"capabilities": {"add": ["X"]}}}, "securityContext.capabilities"),
        ({}, {"securityContext": {"allowPrivilegeEscalation": False}}, "allowPrivilegeEscalation: false"),
        ({}, {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}, "hugepages-2Mi"),
        ({}, {"stdin": True}, "spec.containers[main].stdin"),
        ({}, {"terminationMessagePath": "/var/x"}, "terminationMessagePath"),
    ],
)
def test_what_a_process_cannot_have_is_named(spec: Obj, container: Obj, field: str) -> None:
    assert field in unsupported(pod(spec, **container), USER, NO_MOUNTS)


def test_a_pod_that_must_not_be_root_is_refused_for_root_only() -> None:
    wanted = pod(securityContext={"runAsNonRoot": True})

    assert "runAsNonRoot" in unsupported(wanted, ROOT, "")
    assert not unsupported(wanted, USER, NO_MOUNTS)


def test_init_containers_are_checked_too() -> None:
    assert "spec.initContainers[i].command" in unsupported(pod({"initContainers": [{"name": "i"}]}), USER, NO_MOUNTS)


def test_root_may_have_volumes_in_memory() -> None:
    volumes = [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]

    assert not unsupported(pod({"volumes": volumes}), ROOT, "")
