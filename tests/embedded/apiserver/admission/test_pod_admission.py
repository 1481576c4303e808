"""What a pod becomes on its way in: account and token, tolerations, runtime, topology."""

from __future__ import annotations

import pytest

from build.cluster_reader import (
    FakeReader,
    Obj,
    admission,
    container,
    creating,
    named,
    pod,
    updating,
    world,
)
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError


def admitted(reader: FakeReader, write: AdmissionAttributes) -> Obj:
    plugins = builtin_plugins(reader, suffix=lambda: "abcde")
    plugins.mutate(write)
    plugins.validate(write)
    assert write.obj is not None
    return write.obj


def refusal(reader: FakeReader, write: AdmissionAttributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        admitted(reader, write)
    return caught.value


TOKEN_MOUNT = {
    "name": "kube-api-access-abcde",
    "readOnly": True,
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
}


def test_a_bare_pod_gets_the_default_account_with_its_token_in_every_container() -> None:
    spec = admitted(world(), creating(pod("x", container("a"), container("b"))))["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert [one["volumeMounts"] for one in spec["containers"]] == [[TOKEN_MOUNT], [TOKEN_MOUNT]]
    (volume,) = spec["volumes"]
    assert volume["projected"]["defaultMode"] == 420
    assert volume["projected"]["sources"] == [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ]


@pytest.mark.parametrize(
    ("of_pod", "of_account", "mounted"),
    [(None, False, False), (True, False, True), (False, None, False), (False, True, False), (None, None, True)],
)
def test_the_pod_decides_on_the_token_before_its_account(
    of_pod: bool | None, of_account: bool | None, mounted: bool
) -> None:
    reader = world()
    reader.put(named("ServiceAccount", "default", automountServiceAccountToken=of_account))
    wish = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    spec = admitted(reader, creating(pod("x", **wish)))["spec"]
    assert ("volumes" in spec) == mounted


def test_a_container_that_mounts_something_there_keeps_it() -> None:
    mount = {"name": "mine", "mountPath": TOKEN_MOUNT["mountPath"]}
    spec = admitted(world(), creating(pod("x", container("a", volumeMounts=[mount]))))["spec"]
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert "volumes" not in spec


def test_a_token_volume_that_the_pod_brings_is_used() -> None:
    volume = {"name": "kube-api-access-zzzzz", "projected": {"sources": []}}
    spec = admitted(world(), creating(pod("x", volumes=[volume])))["spec"]
    assert spec["volumes"] == [volume]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-zzzzz"


def test_pull_secrets_come_from_the_account_unless_the_pod_has_its_own() -> None:
    reader = world().put(named("ServiceAccount", "default", imagePullSecrets=[{"name": "nvcr"}]))
    assert admitted(reader, creating(pod()))["spec"]["imagePullSecrets"] == [{"name": "nvcr"}]
    own = pod("x", imagePullSecrets=[{"name": "own"}])
    assert admitted(reader, creating(own))["spec"]["imagePullSecrets"] == [{"name": "own"}]


def test_a_pod_of_an_unknown_account_is_refused_in_kubernetes_words() -> None:
    found = refusal(world(), creating(pod("x", serviceAccountName="robot")))
    assert (found.code, found.reason) == (403, "Forbidden")
    assert found.message == (
        'pods "x" is forbidden: error looking up service account ml/robot: serviceaccount "robot" not found'
    )
    assert found.details == {"name": "x", "kind": "pods"}


def test_a_pod_without_a_name_yet_is_refused_by_its_prefix() -> None:
    made = pod("x", serviceAccountName="robot")
    del made["metadata"]["name"]
    made["metadata"]["generateName"] = "train-"
    assert refusal(world(), creating(made)).message.startswith('pods "train-" is forbidden: ')


def test_a_mirror_pod_gets_nothing_and_may_not_act_as_anybody() -> None:
    made = pod("x")
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    assert "serviceAccountName" not in admitted(world(), creating(made))["spec"]
    made["spec"]["serviceAccountName"] = "default"
    assert refusal(world(), creating(made)).message.endswith("a mirror pod may not reference service accounts")


def test_an_account_may_list_the_secrets_its_pods_may_use() -> None:
    account = named("ServiceAccount", "default", secrets=[{"name": "known"}])
    account["metadata"]["annotations"] = {"kubernetes.io/enforce-mountable-secrets": "true"}
    reader = world().put(account)
    admitted(reader, creating(pod("x", volumes=[{"name": "v", "secret": {"secretName": "known"}}])))
    found = refusal(reader, creating(pod("x", volumes=[{"name": "v", "secret": {"secretName": "other"}}])))
    assert found.message == (
        'pods "x" is forbidden: volume with secret.secretName="other" is not allowed because service account default '
        "does not reference that secret"
    )


def test_a_pod_tolerates_a_lost_node_for_five_minutes() -> None:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    assert admitted(world(), creating(pod()))["spec"]["tolerations"] == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in keys
    ]
    forever: Obj = {"operator": "Exists"}
    assert admitted(world(), creating(pod("x", tolerations=[forever])))["spec"]["tolerations"] == [forever]


def test_tolerations_are_added_once_however_often_a_pod_is_written() -> None:
    once = admitted(world(), creating(pod()))
    twice = admitted(world(), updating(once, {**once}))
    assert len(twice["spec"]["tolerations"]) == 2


GVISOR = named(
    "RuntimeClass",
    "gvisor",
    overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    scheduling={"nodeSelector": {"runtime": "gvisor"}, "tolerations": [{"key": "runtime", "operator": "Exists"}]},
)


def test_a_runtime_class_brings_overhead_and_place() -> None:
    spec = admitted(world(GVISOR), creating(pod("x", runtimeClassName="gvisor", nodeSelector={"zone": "a"})))["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "120Mi"}
    assert spec["nodeSelector"] == {"zone": "a", "runtime": "gvisor"}
    assert spec["tolerations"][-1] == {"key": "runtime", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "gvisor", "nodeSelector": {"runtime": "kata"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = gvisor; pod.spec.nodeSelector[runtime] = kata",
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_refused(spec: Obj, words: str) -> None:
    assert refusal(world(GVISOR), creating(pod("x", **spec))).message == f'pods "x" is forbidden: {words}'


def test_a_binding_carries_the_topology_of_its_node() -> None:
    node = named("Node", "n1")
    node["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "n1"}
    binding: Obj = {
        "kind": "Binding",
        "metadata": {"name": "x", "namespace": "ml"},
        "target": {"kind": "Node", "name": "n1"},
    }
    bound = admitted(world(node), admission("CREATE", binding, subresource="binding"))
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "a"}
    placed = admitted(world(node), creating(pod("x", nodeName="n1")))
    assert placed["metadata"]["labels"] == {"topology.kubernetes.io/zone": "a"}


def test_a_toleration_that_a_pod_shares_with_its_runtime_class_stands_once() -> None:
    given = {"key": "runtime", "operator": "Exists"}
    spec = admitted(world(GVISOR), creating(pod("x", runtimeClassName="gvisor", tolerations=[given])))["spec"]
    assert spec["tolerations"].count(given) == 1


def test_a_label_that_a_pod_has_already_wins_over_its_nodes() -> None:
    node = named("Node", "n1")
    node["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    made = pod("x", nodeName="n1")
    made["metadata"]["labels"] = {"topology.kubernetes.io/zone": "mine"}
    assert admitted(world(node), creating(made))["metadata"]["labels"] == {"topology.kubernetes.io/zone": "mine"}


@pytest.mark.parametrize(
    "spec",
    [None, {}, {"containers": [{}]}, {"containers": [{"image": "a"}], "volumes": [{"emptyDir": {}}]}],
    ids=["no spec", "empty spec", "a bare container", "a volume without a name"],
)
def test_a_pod_that_lacks_what_it_needs_passes_to_validation(spec: Obj | None) -> None:
    limits = {"type": "Container", "default": {"cpu": "1"}}
    reader = world(GVISOR, named("LimitRange", "l", spec={"limits": [limits]}))
    made = named("Pod", "x") if spec is None else named("Pod", "x", spec=spec)
    builtin_plugins(reader).mutate(creating(made))
    assert made["spec"]["serviceAccountName"] == "default"
