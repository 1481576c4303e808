from __future__ import annotations

import copy

import pytest

from build.kind_objects import container, created, pod
from shoal.embedded.apiserver.kinds.pods.images import pull_policy
from shoal.embedded.apiserver.kinds.table import STRATEGIES

PODS = STRATEGIES["", "pods"]


def test_a_plain_pod_looks_like_one_of_a_real_cluster() -> None:
    made = created("", "pods", pod())
    assert made["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "registry/train:1.2",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_written_status_is_not_taken_over() -> None:
    made = created("", "pods", pod() | {"status": {"phase": "Running"}})
    assert made["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("host:5000/a/b", "Always"),
        ("host:5000/a/b:v1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("UPPER", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_are_pulled_always_when_their_tag_is_latest(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_requests_are_taken_from_limits_where_they_are_absent() -> None:
    resources = {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}
    made = created("", "pods", pod(container(resources=resources)))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "nvidia.com/gpu": "1"}


def test_an_empty_probe_gets_its_numbers() -> None:
    made = created("", "pods", pod(container(livenessProbe={}, readinessProbe={"httpGet": {"port": 80}})))
    first = made["spec"]["containers"][0]
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert first["livenessProbe"] == numbers
    assert first["readinessProbe"] == numbers | {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}


def test_volumes_get_their_modes() -> None:
    volumes = [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "hostPath": {"path": "/x"}},
        {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ]
    made = created("", "pods", pod(volumes=volumes))
    assert made["spec"]["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
        {"name": "c", "hostPath": {"path": "/x", "type": ""}},
        {
            "name": "d",
            "projected": {
                "defaultMode": 420,
                "sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}],
            },
        },
    ]


def test_the_old_name_of_the_service_account_follows_the_new_one() -> None:
    made = created("", "pods", pod(serviceAccountName="robot"))
    assert made["spec"]["serviceAccount"] == "robot"


def test_defaults_change_nothing_the_second_time() -> None:
    made = created("", "pods", pod(container(ports=[{"containerPort": 80}], livenessProbe={}), hostNetwork=True))
    before = copy.deepcopy(made)
    PODS.default(made)
    assert made == before
    assert made["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def quality(*blocks: dict[str, dict[str, str]]) -> str:
    held = [container(f"c{place}", resources=block) for place, block in enumerate(blocks)]
    made: str = created("", "pods", pod(*held))["status"]["qosClass"]
    return made


def test_the_class_of_service_follows_cpu_and_memory() -> None:
    both = {"cpu": "1", "memory": "1Gi"}
    assert quality({}) == "BestEffort"
    assert quality({"limits": {"nvidia.com/gpu": "1"}}) == "BestEffort"
    assert quality({"limits": both}) == "Guaranteed"
    assert quality({"limits": both}, {"limits": both}) == "Guaranteed"
    assert quality({"limits": both}, {}) == "Burstable"
    assert quality({"limits": both, "requests": {"cpu": "500m"}}) == "Burstable"
    assert quality({"limits": {"cpu": "1"}}) == "Burstable"
    assert quality({"requests": {"cpu": "1"}}) == "Burstable"


def test_a_gated_pod_says_that_it_waits() -> None:
    made = created("", "pods", pod(schedulingGates=[{"name": "example.com/wait"}]))
    (condition,) = made["status"]["conditions"]
    assert condition["reason"] == "SchedulingGated"
    assert condition["status"] == "False"


def test_a_pod_that_never_had_a_node_goes_at_once() -> None:
    made = created("", "pods", pod())
    assert PODS.deletion_grace(made, None) == 0
    made["spec"]["nodeName"] = "n"
    assert PODS.deletion_grace(made, None) == 30
    assert PODS.deletion_grace(made, 5) == 5
    assert PODS.deletion_grace(made, -1) == 1
    made["status"]["phase"] = "Failed"
    assert PODS.deletion_grace(made, None) == 0


def test_pods_are_found_by_their_node_and_phase() -> None:
    made = created("", "pods", pod(nodeName="n"))
    fields = PODS.fields(made)
    assert (fields["spec.nodeName"], fields["status.phase"]) == ("n", "Pending")
    assert set(PODS.selectable()) == set(fields)
