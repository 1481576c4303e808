from __future__ import annotations

from typing import Any

import pytest

from build.kind_objects import complaints, container, created, pod, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

MAIN = "spec.containers[0]"
NOT_BESIDE = {"topologyKey": "host", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}


def said(obj: dict[str, Any]) -> list[str]:
    return complaints("", "pods", obj)


def test_an_ordinary_pod_is_taken() -> None:
    mounts = [{"name": "shm", "mountPath": "/shared"}]
    resources = {"limits": {"nvidia.com/gpu": "8", "cpu": "8"}}
    held = container(volumeMounts=mounts, resources=resources, ports=[{"containerPort": 80, "name": "http"}])
    assert said(pod(held, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}])) == []


def test_a_pod_needs_a_container() -> None:
    made = pod()
    made["spec"]["containers"] = []
    assert said(made) == ["spec.containers: Required value"]


def test_an_extended_resource_needs_a_limit_that_equals_the_request() -> None:
    requests = {"requests": {"nvidia.com/gpu": "1"}}
    assert said(pod(container(resources=requests))) == [
        f"{MAIN}.resources.limits: Required value: Limit must be set for non overcommitable resources"
    ]
    unequal = requests | {"limits": {"nvidia.com/gpu": "2"}}
    assert said(pod(container(resources=unequal))) == [
        f'{MAIN}.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'
    ]


def test_gpus_are_whole() -> None:
    assert said(pod(container(resources={"limits": {"nvidia.com/gpu": "1500m"}})))[0] == (
        f'{MAIN}.resources.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer'
    )


def test_a_request_stays_below_its_limit() -> None:
    resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}
    assert said(pod(container(resources=resources))) == [
        f'{MAIN}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
    ]


def test_unknown_resources_without_a_domain_are_refused() -> None:
    found = said(pod(container(resources={"requests": {"gpu": "1"}})))
    assert found == [
        f'{MAIN}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
        f'{MAIN}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
    ]


def test_names_of_containers_do_not_repeat() -> None:
    assert said(pod(container(), container())) == ['spec.containers[1].name: Duplicate value: "main"']


def test_a_mount_names_a_volume_of_the_pod() -> None:
    assert said(pod(container(volumeMounts=[{"name": "x", "mountPath": "/x"}]))) == [
        f'{MAIN}.volumeMounts[0].name: Not found: "x"'
    ]


def test_two_containers_cannot_have_one_host_port() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    made = pod(container("a", ports=[dict(port)]), container("b", ports=[dict(port)]))
    assert said(made) == ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"']


def test_a_claim_of_a_container_is_one_of_the_pod() -> None:
    held = container(resources={"claims": [{"name": "gpu"}]})
    assert said(pod(held)) == [
        (
            f'{MAIN}.resources.claims[0]: Not found: "gpu": must be one of the names in pod.spec.resourceClaims which '
            "is empty"
        )
    ]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    assert said(pod(container(resources={"claims": [{"name": "gpu"}]}), resourceClaims=claims)) == []


def test_init_containers_have_no_probes_unless_they_keep_running() -> None:
    probe = {"exec": {"command": ["true"]}}
    words = "may not be set for init containers without restartPolicy=Always"
    made = pod(initContainers=[container("first", readinessProbe=dict(probe))])
    assert said(made) == [f"spec.initContainers[0].readinessProbe: Forbidden: {words}"]
    sidecar = container("first", readinessProbe=dict(probe), restartPolicy="Always")
    assert said(pod(initContainers=[sidecar])) == []


def test_a_pod_waits_for_its_gates_before_it_has_a_node() -> None:
    made = pod(nodeName="n", schedulingGates=[{"name": "example.com/wait"}])
    assert said(made) == ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            ("spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"),
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
            (
                'spec.tolerations[0].effect: Invalid value: "": '
                "effect must be 'NoExecute' when `tolerationSeconds` is set"
            ),
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        ({"dnsPolicy": "None"}, "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
        ({"hostname": "a.b"}, 'spec.hostname: Invalid value: "a.b": must not contain dots'),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NOT_BESIDE]}}},
            (
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
                "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
    ],
    ids=["restart", "exists with value", "seconds", "skew", "deadline", "dns", "hostname", "anti-affinity"],
)
def test_a_bad_field_is_named_in_the_words_clients_know(spec: dict[str, Any], text: str) -> None:
    assert said(pod(**spec)) == [text]


def updated(change: dict[str, Any], **spec: Any) -> list[str]:
    old = created("", "pods", pod(**spec))
    new = {**old, "spec": {**old["spec"], **change}}
    return texts(STRATEGIES["", "pods"].validate_update(new, old))


def test_an_image_may_change_and_a_command_may_not() -> None:
    old = created("", "pods", pod())
    newer = {**old["spec"]["containers"][0], "image": "other"}
    assert updated({"containers": [newer]}) == []
    (text,) = updated({"containers": [newer | {"command": ["x"]}]})
    assert text.startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
        "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
        "(allow it to be set to 1 if it was previously negative)\n"
    )


def test_containers_are_not_added_to_a_pod() -> None:
    old = created("", "pods", pod())
    more = [*old["spec"]["containers"], container("late")]
    assert updated({"containers": more})[-1] == (
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    )


def test_tolerations_are_only_added() -> None:
    one, other = ({"key": key, "operator": "Exists", "effect": "NoExecute"} for key in ("a", "b"))
    assert updated({"tolerations": [one, other]}, tolerations=[one]) == []
    assert updated({"tolerations": [one | {"tolerationSeconds": 5}]}, tolerations=[one]) == []
    assert updated({"tolerations": [other]}, tolerations=[one]) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


def test_gates_are_only_taken_away() -> None:
    gates = [{"name": "x/a"}, {"name": "x/b"}]
    assert updated({"schedulingGates": gates[:1]}, schedulingGates=gates) == []
    assert updated({"schedulingGates": gates}, schedulingGates=gates[:1]) == [
        "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x/b'"
    ]


def test_where_a_gated_pod_may_run_can_be_narrowed() -> None:
    gates = [{"name": "x/a"}]
    assert updated({"nodeSelector": {"gpu": "h100"}}, schedulingGates=gates) == []
    assert updated({"nodeSelector": {"gpu": "h100"}}) != []
    (text,) = updated({"nodeSelector": {"gpu": "a100"}}, schedulingGates=gates, nodeSelector={"gpu": "h100"})
    assert "only additions to spec.nodeSelector are allowed (no mutations or deletions)" in text


def test_what_ended_for_good_does_not_run_again() -> None:
    old = created("", "pods", pod(restartPolicy="Never"))
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0}}}
    old["status"]["containerStatuses"] = [ended]
    new = {**old, "status": {**old["status"], "containerStatuses": [{"name": "main", "state": {"running": {}}}]}}
    assert texts(STRATEGIES["", "pods"].validate_status(new, old)) == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    ]


def test_a_status_brings_labels_and_keeps_spec_owners_and_class() -> None:
    old = created("", "pods", pod())
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}
    metadata = {**old["metadata"], "labels": {"a": "b"}, "ownerReferences": [owner]}
    new = {**old, "metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    STRATEGIES["", "pods"].prepare_status(new, old)
    assert new["spec"] == old["spec"]
    assert new["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in new["metadata"]
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}
