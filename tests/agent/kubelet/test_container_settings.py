"""The settings of a container are those of its spec, and else those of its pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.agent.kubelet.container_settings import ContainerSettings, pod_settings, security_of
from shoal.agent.kubelet.cri.requests import container_config, sandbox_config
from shoal.agent.kubelet.launches import limits_of
from shoal.agent.kubelet.runtime import Launch, RunKey
from shoal.agent.protos import cri_pb2 as messages

Obj = dict[str, Any]


def pod(container: Obj | None = None, **spec: Any) -> Obj:
    main = {"name": "main", "image": "i", **(container or {})}
    metadata = {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "x"}}
    return {"metadata": metadata, "spec": {"containers": [main], **spec}}


def config_of(obj: Obj) -> messages.ContainerConfig:
    main = obj["spec"]["containers"][0]
    settings = ContainerSettings(pod_settings(obj), security=security_of(obj, main))
    launch = Launch(("x",), {"A": "1"}, None, limits_of(main), "i", container=settings)
    return container_config(RunKey("u", "main", 2), launch, settings, {"own": "1"}, {"pids.max": "9"})


def test_a_container_goes_before_its_pod() -> None:
    outer = {"runAsUser": 1, "runAsGroup": 2, "supplementalGroups": [3], "fsGroup": 4}
    found = config_of(pod({"securityContext": {"runAsUser": 0}}, securityContext=outer)).linux.security_context

    assert (found.run_as_user.value, found.HasField("run_as_user")) == (0, True)
    assert found.run_as_group.value == 2
    assert [*found.supplemental_groups] == [3, 4]


def test_without_options_a_container_has_the_user_of_its_image_and_a_masked_proc() -> None:
    found = config_of(pod()).linux.security_context

    assert not found.HasField("run_as_user")
    assert "/proc/kcore" in found.masked_paths
    assert found.seccomp.profile_type == messages.SecurityProfile.Unconfined
    assert not found.no_new_privs


def test_privileges_capabilities_and_profiles_are_passed_on() -> None:
    context = {
        "privileged": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
    }
    found = config_of(pod({"securityContext": context})).linux.security_context

    assert (found.privileged, found.readonly_rootfs, found.no_new_privs) == (True, True, True)
    assert not found.masked_paths
    assert [*found.capabilities.add_capabilities, *found.capabilities.drop_capabilities] == ["NET_ADMIN", "ALL"]
    assert found.seccomp.localhost_ref == "/var/lib/kubelet/seccomp/p.json"
    assert pod_settings(pod({"securityContext": context})).is_privileged


@pytest.mark.parametrize(
    ("resources", "shares", "quota", "memory", "score"),
    [
        ({}, 2, 0, 0, 1000),
        ({"requests": {"cpu": "500m"}}, 512, 0, 0, 900),
        ({"limits": {"cpu": "2", "memory": "1Gi"}}, 2048, 200_000, 2**30, 900),
        ({"limits": {"cpu": "1m"}}, 2, 1000, 0, 900),
    ],
)
def test_requests_and_limits_become_cgroup_values(
    resources: Obj, shares: int, quota: int, memory: int, score: int
) -> None:
    found = config_of(pod({"resources": resources})).linux.resources

    assert (found.cpu_shares, found.cpu_quota, found.memory_limit_in_bytes) == (shares, quota, memory)
    assert found.oom_score_adj == score
    assert found.unified == {"pids.max": "9"}


def test_the_run_is_named_by_its_attempt() -> None:
    found = config_of(pod())

    assert (found.metadata.name, found.metadata.attempt, found.log_path) == ("main", 2, "main/2.log")


@pytest.mark.parametrize(
    ("spec", "modes"),
    [
        ({}, (messages.POD, messages.CONTAINER, messages.POD)),
        ({"hostNetwork": True, "hostPID": True, "hostIPC": True}, (messages.NODE, messages.NODE, messages.NODE)),
        ({"shareProcessNamespace": True}, (messages.POD, messages.POD, messages.POD)),
    ],
)
def test_namespaces_are_those_of_the_pod(spec: Obj, modes: tuple[int, int, int]) -> None:
    config = sandbox_config(pod_settings(pod(**spec)), Path("/logs"), {"own": "1"}, attempt=1, group="/g")
    found = config.linux.security_context.namespace_options

    assert (found.network, found.pid, found.ipc) == modes
    assert config.labels == {"app": "x", "own": "1"}
    assert (config.metadata.attempt, config.linux.cgroup_parent) == (1, "/g")
    assert config.hostname == ("" if spec.get("hostNetwork") else "p")


def test_ports_of_the_node_lead_to_a_pod_with_a_network_of_its_own() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "127.0.0.1"}, {"containerPort": 81}]

    own = sandbox_config(pod_settings(pod({"ports": ports})), Path("/logs"), {})
    hosts = sandbox_config(pod_settings(pod({"ports": ports}, hostNetwork=True)), Path("/logs"), {})

    mapping = messages.PortMapping(protocol=messages.UDP, container_port=80, host_port=8080, host_ip="127.0.0.1")
    assert [*own.port_mappings] == [mapping]
    assert not hosts.port_mappings
