from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import complaints, created, job, template, texts, workload
from shoal.embedded.apiserver.kinds.table import STRATEGIES

MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'

KINDS: dict[str, tuple[str, str, Any]] = {
    "deployment": ("apps", "deployments", lambda: workload("Deployment")),
    "replica set": ("apps", "replicasets", lambda: workload("ReplicaSet")),
    "daemon set": ("apps", "daemonsets", lambda: workload("DaemonSet")),
    "stateful set": ("apps", "statefulsets", lambda: workload("StatefulSet")),
    "job": ("batch", "jobs", job),
    "cron job": (
        "batch",
        "cronjobs",
        lambda: workload(
            "CronJob",
            group="batch/v1",
            selector=None,
            template=None,
            schedule="*/5 * * * *",
            jobTemplate={"spec": {"template": template(restartPolicy="Never")}},
        ),
    ),
    "replication controller": (
        "",
        "replicationcontrollers",
        lambda: workload("ReplicationController", group="v1", selector=None),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_ordinary_workload_is_taken_and_its_defaults_stay(kind: str) -> None:
    group, plural, build = KINDS[kind]
    made = created(group, plural, build())
    before = copy.deepcopy(made)
    STRATEGIES[group, plural].default(made)
    assert made == before
    assert STRATEGIES[group, plural].validate(made) == []


def test_a_deployment_is_filled_in_as_on_a_real_cluster() -> None:
    spec = created("apps", "deployments", workload("Deployment"))["spec"]
    pods = spec.pop("template")
    assert spec == {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    assert "enableServiceLinks" not in pods["spec"]


def test_a_deployment_without_selector_is_told_twice() -> None:
    assert complaints("apps", "deployments", workload("Deployment", selector=None)) == [
        "spec.selector: Required value",
        MISMATCH,
    ]


def test_a_selector_selects_the_template() -> None:
    made = workload("Deployment", selector={"matchLabels": {"app": "other"}})
    assert complaints("apps", "deployments", made) == [MISMATCH]


def test_the_selector_of_a_deployment_stays() -> None:
    old = created("apps", "deployments", workload("Deployment", template=template({"app": "web", "x": "y"})))
    new = copy.deepcopy(old)
    new["spec"]["selector"] = {"matchLabels": {"x": "y"}}
    assert texts(STRATEGIES["apps", "deployments"].validate_update(new, old)) == [
        'spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable'
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"template": template(restartPolicy="Never")},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            {"minReadySeconds": 600},
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
    ],
    ids=["replicas", "restart", "recreate", "stuck", "deadline"],
)
def test_a_bad_deployment_is_refused_in_the_words_clients_know(spec: dict[str, Any], text: str) -> None:
    assert complaints("apps", "deployments", workload("Deployment", **spec)) == [text]


def test_a_job_selects_its_pods_by_its_own_uid() -> None:
    made = created("batch", "jobs", job())
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "7c9e"}}
    labels = {
        "app": "web",
        "batch.kubernetes.io/controller-uid": "7c9e",
        "batch.kubernetes.io/job-name": "train",
        "controller-uid": "7c9e",
        "job-name": "train",
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels


def test_labels_written_for_the_job_itself_stay_as_they_are() -> None:
    made = job()
    made["metadata"]["labels"] = {"app": "web"}
    assert created("batch", "jobs", made)["metadata"]["labels"] == {"app": "web"}


def test_a_job_is_filled_in_as_on_a_real_cluster() -> None:
    spec = created("batch", "jobs", job())["spec"]
    del spec["template"], spec["selector"]
    assert spec == {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": False,
    }


def test_a_work_queue_has_no_completions() -> None:
    assert "completions" not in created("batch", "jobs", job(parallelism=3))["spec"]


def test_pods_of_a_job_do_not_restart_for_ever() -> None:
    made = job()
    made["spec"]["template"]["spec"].pop("restartPolicy")
    assert complaints("batch", "jobs", made) == [
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    ]


def test_an_indexed_job_says_how_many() -> None:
    assert complaints("batch", "jobs", job(completionMode="Indexed", parallelism=2)) == [
        "spec.completions: Required value: when completion mode is Indexed"
    ]


def changed_job(change: dict[str, Any], *, suspended: bool, active: int = 0) -> list[str]:
    old = created("batch", "jobs", job(suspend=suspended)) | {"status": {"active": active} if active else {}}
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"] |= change
    return [error.field for error in STRATEGIES["batch", "jobs"].validate_update(new, old)]


def test_a_suspended_job_may_still_be_told_where_to_run() -> None:
    assert changed_job({"nodeSelector": {"gpu": "h100"}}, suspended=True) == []
    assert changed_job({"nodeSelector": {"gpu": "h100"}}, suspended=False) == ["spec.template"]
    assert changed_job({"hostNetwork": True}, suspended=True) == ["spec.template.spec"]
    assert changed_job({"nodeSelector": {"gpu": "h100"}}, suspended=True, active=1) == ["spec.template"]


def test_only_an_indexed_job_that_runs_all_at_once_changes_its_completions() -> None:
    def resized(wanted: int = 4, **spec: Any) -> list[str]:
        old = created("batch", "jobs", job(**spec))
        new = copy.deepcopy(old)
        new["spec"] |= {"completions": wanted, "parallelism": 4}
        return texts(STRATEGIES["batch", "jobs"].validate_update(new, old))

    assert resized(completionMode="Indexed", completions=2, parallelism=2) == []
    assert resized(completionMode="Indexed", completions=2, parallelism=1) == []
    assert resized(completionMode="Indexed", completions=2, parallelism=2, wanted=3) == [
        "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"
    ]
    assert resized(completions=2, parallelism=2) == ["spec.completions: Invalid value: 4: field is immutable"]


def test_little_of_a_stateful_set_changes() -> None:
    old = created("apps", "statefulsets", workload("StatefulSet", serviceName="web"))
    new = copy.deepcopy(old)
    new["spec"] |= {"replicas": 3, "minReadySeconds": 5}
    strategy = STRATEGIES["apps", "statefulsets"]
    assert strategy.validate_update(new, old) == []
    new["spec"]["serviceName"] = "other"
    assert texts(strategy.validate_update(new, old)) == [
        (
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
            "are forbidden"
        )
    ]


def test_pods_of_a_stateful_set_mount_its_claims() -> None:
    size = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": size}}
    mounted = template()
    mounted["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    assert (
        complaints("apps", "statefulsets", workload("StatefulSet", template=mounted, volumeClaimTemplates=[claim]))
        == []
    )
    assert complaints("apps", "statefulsets", workload("StatefulSet", template=copy.deepcopy(mounted))) == [
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'
    ]


def test_a_daemon_set_counts_its_templates() -> None:
    key = "deprecated.daemonset.template.generation"
    old = created("apps", "daemonsets", workload("DaemonSet"))
    assert old["metadata"]["annotations"][key] == "1"
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    new["metadata"].pop("annotations")
    STRATEGIES["apps", "daemonsets"].prepare_update(new, old)
    assert new["metadata"]["annotations"][key] == "2"


def test_a_replication_controller_takes_its_selector_from_the_template() -> None:
    made = created("", "replicationcontrollers", workload("ReplicationController", group="v1", selector=None))
    assert made["spec"]["selector"] == {"app": "web"}
    assert made["metadata"]["labels"] == {"app": "web"}


def test_a_revision_is_written_once() -> None:
    strategy = STRATEGIES["apps", "controllerrevisions"]
    old = {"metadata": {"name": "r"}, "revision": 1, "data": {"a": 1}}
    assert texts(strategy.validate({"metadata": {}, "revision": 1})) == ["data: Required value: data is mandatory"]
    assert texts(strategy.validate_update({**old, "data": {"a": 2}}, old)) == [
        'data: Invalid value: {"a":2}: field is immutable'
    ]
