"""Pod Security: what each level and version refuses, in which words."""

from __future__ import annotations

import pytest

from build.cluster_reader import Obj, container, creating, pod, updating, world
from build.hardening import HARDENED, hardened, labelled, ours, refused, validated
from shoal.embedded.apiserver.status import ApiError


def test_a_bare_pod_in_a_restricted_namespace_is_told_all_it_lacks() -> None:
    assert refused(labelled(enforce="restricted"), pod("x")) == (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
        '"c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must '
        'set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set '
        'securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )


def test_a_hardened_pod_passes() -> None:
    assert validated(labelled(enforce="restricted"), creating(ours(pod("x", hardened())))) == []


def test_an_unlabelled_namespace_takes_everything() -> None:
    made = pod("x", container("c", securityContext={"privileged": True}), hostNetwork=True)
    assert validated(world(), creating(ours(made))) == []


BASELINE: list[tuple[Obj, str]] = [
    (
        pod("x", hostNetwork=True, hostPID=True),
        "host namespaces (hostNetwork=true, hostPID=true)",
    ),
    (
        pod("x", container("a", securityContext={"privileged": True})),
        'privileged (container "a" must not set securityContext.privileged=true)',
    ),
    (
        pod("x", container("a", ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 443}])),
        'hostPort (container "a" uses hostPorts 443, 80)',
    ),
    (
        pod("x", volumes=[{"name": "dev", "hostPath": {"path": "/dev"}}, {"name": "h", "hostPath": {"path": "/"}}]),
        'hostPath volumes (volumes "dev", "h")',
    ),
    (
        pod("x", container("a", securityContext={"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]}})),
        (
            'non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in '
            "securityContext.capabilities.add)"
        ),
    ),
    (
        pod("x", container("a", livenessProbe={"httpGet": {"host": "127.0.0.1", "port": 1}})),
        'probe or lifecycle host (container "a" uses probe or lifecycle host "127.0.0.1")',
    ),
    (
        pod("x", container("a", securityContext={"procMount": "Unmasked"})),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        pod("x", container("a", securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u"}})),
        (
            'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be '
            "set)"
        ),
    ),
    (
        pod("x", securityContext={"seccompProfile": {"type": "Unconfined"}}),
        'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        pod("x", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        "forbidden sysctls (kernel.msgmax)",
    ),
    (
        pod("x", container("a"), container("b"), securityContext={"appArmorProfile": {"type": "Unconfined"}}),
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    (
        pod("x", container("a", securityContext={"windowsOptions": {"hostProcess": True}})),
        'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
]


@pytest.mark.parametrize(("made", "words"), BASELINE, ids=[words.split(" (")[0] for _, words in BASELINE])
def test_baseline_refuses_what_opens_the_node(made: Obj, words: str) -> None:
    assert (
        refused(labelled(enforce="baseline"), made)
        == f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {words}'
    )


RESTRICTED: list[tuple[Obj, str]] = [
    (
        pod("x", hardened(), volumes=[{"name": "h", "hostPath": {"path": "/"}}, {"name": "n", "nfs": {}}]),
        'restricted volume types (volumes "h", "n" use restricted volume types "hostPath", "nfs")',
    ),
    (
        pod("x", hardened(runAsNonRoot=False), securityContext={"runAsNonRoot": False}),
        'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
    ),
    (
        pod("x", hardened(runAsUser=0)),
        'runAsUser=0 (container "c" must not set runAsUser=0)',
    ),
    (
        pod("x", hardened(capabilities={"drop": ["ALL"], "add": ["CHOWN", "NET_BIND_SERVICE"]})),
        'unrestricted capabilities (container "c" must not include "CHOWN" in securityContext.capabilities.add)',
    ),
]


@pytest.mark.parametrize(("made", "words"), RESTRICTED, ids=[words.split(" (")[0] for _, words in RESTRICTED])
def test_restricted_refuses_what_is_not_hardened(made: Obj, words: str) -> None:
    assert (
        refused(labelled(enforce="restricted"), made)
        == f'pods "x" is forbidden: violates PodSecurity "restricted:latest": {words}'
    )


def test_init_and_debug_containers_count_and_several_are_named_together() -> None:
    made = pod(
        "x",
        hardened("a", allowPrivilegeEscalation=True),
        initContainers=[hardened("i", allowPrivilegeEscalation=True)],
        ephemeralContainers=[hardened("e", allowPrivilegeEscalation=True)],
    )
    assert 'containers "i", "a", "e" must set' in refused(labelled(enforce="restricted"), made)


def test_a_pinned_version_asks_what_that_version_asked() -> None:
    bare_user = pod("x", hardened(runAsUser=0))
    assert validated(labelled(enforce="restricted", enforce_version="v1.22"), creating(ours(bare_user))) == []
    assert '"restricted:v1.23"' in refused(labelled(enforce="restricted", enforce_version="v1.23"), bare_user)
    windows = pod("x", container("c", securityContext={"runAsNonRoot": True}), os={"name": "windows"})
    assert validated(labelled(enforce="restricted"), creating(ours(windows))) == []
    assert "allowPrivilegeEscalation" in refused(labelled(enforce="restricted", enforce_version="v1.24"), windows)
    future = labelled(enforce="restricted", enforce_version="v1.99")
    assert '"restricted:v1.99"' in refused(future, pod("x"))


def test_a_user_namespace_makes_root_harmless() -> None:
    made = pod("x", hardened(runAsNonRoot=False, runAsUser=0), hostUsers=False)
    assert validated(labelled(enforce="restricted"), creating(ours(made))) == []
    assert "runAsUser=0" in refused(labelled(enforce="restricted", enforce_version="v1.34"), made)


def test_warn_lets_a_pod_in_and_says_so() -> None:
    assert validated(labelled(warn="baseline"), creating(ours(pod("x", hostNetwork=True)))) == [
        'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    ]


def test_an_update_that_changes_no_image_is_not_checked_again() -> None:
    reader = labelled(enforce="restricted")
    old = ours(pod("x"))
    validated(reader, updating(old, {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}))
    changed = ours(pod("x", {**container(), "image": "other"}))
    with pytest.raises(ApiError):
        validated(reader, updating(old, changed))
    validated(reader, updating(old, changed, "status"))


def test_what_the_pod_says_holds_for_containers_that_say_nothing() -> None:
    quiet = {key: value for key, value in HARDENED.items() if key not in ("seccompProfile", "runAsNonRoot")}
    security = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True}
    made = pod("x", container("c", securityContext=quiet), securityContext=security)
    assert validated(labelled(enforce="restricted"), creating(ours(made))) == []


def test_app_armor_is_read_from_the_old_annotation_too() -> None:
    made = pod("x")
    key = "container.apparmor.security.beta.kubernetes.io/c"
    made["metadata"]["annotations"] = {key: "unconfined"}
    assert refused(labelled(enforce="baseline"), made) == (
        'pods "x" is forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profile (annotation must '
        f'not set AppArmor profile type to "{key}="unconfined"")'
    )
