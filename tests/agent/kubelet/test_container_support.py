"""A pod that requests what a container on this node cannot have is refused with the field, never run without it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.agent.kubelet.cri.support import unsupported

Obj = dict[str, Any]


def pod(spec: Obj | None = None, **container: Any) -> Obj:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "i", **container}], **(spec or {})},
    }


def test_what_containers_have_is_accepted() -> None:
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": True,
        "procMount": "Default",
        "readOnlyRootFilesystem": True,
        "runAsUser": 1,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    spec = {
        "hostNetwork": True,
        "hostUsers": True,
        "imagePullSecrets": [{"name": "s"}],
        "runtimeClassName": "kata",
        "securityContext": {"fsGroup": 1, "supplementalGroups": [2]},
        "volumes": [
            {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "disk", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
    }
    mounts = [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional", "readOnly": True}]

    limits = {"limits": {"ephemeral-storage": "1Gi"}}
    main = {"securityContext": context, "tty": True, "stdin": True, "volumeMounts": mounts, "resources": limits}

    assert not unsupported(pod(spec, **main), "")


@pytest.mark.parametrize(
    ("spec", "container", "field"),
    [
        ({"dnsConfig": {"nameservers": ["1.1.1.1"]}}, {}, "spec.dnsConfig"),
        ({"resources": {"limits": {"cpu": "1"}}}, {}, "spec.resources.limits"),
        ({"dnsPolicy": "None"}, {}, "spec.dnsPolicy: None"),
        ({"hostAliases": [{"ip": "1.1.1.1"}]}, {}, "spec.hostAliases"),
        ({"hostUsers": False}, {}, "spec.hostUsers: false"),
        ({"setHostnameAsFQDN": True}, {}, "spec.setHostnameAsFQDN"),
        ({"securityContext": {"sysctls": [{"name": "a"}]}}, {}, "spec.securityContext.sysctls"),
        ({"securityContext": {"appArmorProfile": {"type": "x"}}}, {}, "spec.securityContext.appArmorProfile"),
        ({"volumes": [{"name": "v", "nfs": {}}]}, {}, "spec.volumes[v]: nfs"),
        ({"volumes": [{"name": "v", "emptyDir": {"medium": "HugePages"}}]}, {}, "spec.volumes[v]: medium HugePages"),
        ({}, {"lifecycle": {"preStop": {}}}, "spec.containers[main].lifecycle"),
        ({}, {"securityContext": {"procMount": "Unmasked"}}, "securityContext.procMount"),
        ({}, {"securityContext": {"seLinuxOptions": {"level": "x"}}}, "securityContext.seLinuxOptions"),
        ({}, {"resources": {"claims": [{"name": "c"}]}}, "resources.claims"),
        ({}, {"volumeMounts": [{"name": "v", "recursiveReadOnly": "Enabled"}]}, "volumeMounts[v]: recursiveReadOnly"),
        ({}, {"volumeDevices": [{"name": "v"}]}, "spec.containers[main].volumeDevices"),
    ],
)
def test_what_a_container_cannot_have_is_named(spec: Obj, container: Obj, field: str) -> None:
    assert field in unsupported(pod(spec, **container), "")


def test_volumes_in_memory_need_a_user_who_may_mount() -> None:
    wanted = pod({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})

    assert "spec.volumes[v]: medium Memory needs root" in unsupported(wanted, "needs root: x")


def test_parts_of_volumes_need_a_user_who_may_mount() -> None:
    wanted = pod(volumeMounts=[{"name": "v", "mountPath": "/v", "subPathExpr": "$(X)"}])

    assert "volumeMounts[v]: subPath needs root" in unsupported(wanted, "needs root: x")
    assert not unsupported(wanted, "")
