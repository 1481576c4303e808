"""What objects look like once they are stored: everything the API fills in, and nothing else."""

from __future__ import annotations

from build.api_objects import ABSENT, IMAGE, container, deployment, make_pod, template
from build.cluster_api import Api, Obj

CONTAINER = {
    "name": "main",
    "image": IMAGE,
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
POD_SPEC = {
    "containers": [CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
}


def plain_template(**spec: object) -> Obj:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()], **spec}}


async def test_a_pod_as_it_is_stored(api: Api) -> None:
    made = await make_pod(api, "p", nodeName=ABSENT, automountServiceAccountToken=False)
    spec = dict(made["spec"])
    assert spec.pop("schedulerName")
    assert spec.pop("tolerations") == [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    for account in ("serviceAccount", "serviceAccountName"):
        assert spec.pop(account, "default") == "default"
    assert spec == {
        **POD_SPEC,
        "nodeName": ABSENT,
        "automountServiceAccountToken": False,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert made["metadata"]["generation"] == 1
    assert (made["status"]["phase"], made["status"]["qosClass"]) == ("Pending", "BestEffort")


async def test_a_pod_without_more_is_scheduled_by_the_default_scheduler(api: Api) -> None:
    made = await make_pod(api, "p", schedulerName="", nodeName=ABSENT)
    assert made["spec"]["schedulerName"] == "default-scheduler"


async def test_the_class_of_service_follows_from_the_amounts(api: Api) -> None:
    both = {"cpu": "1", "memory": "1Gi"}
    for name, resources, wanted in (
        ("best", {}, "BestEffort"),
        ("burst", {"requests": {"cpu": "1"}}, "Burstable"),
        ("sure", {"limits": both}, "Guaranteed"),
    ):
        made = await make_pod(api, name, containers=[container(resources=resources)])
        assert made["status"]["qosClass"] == wanted
    assert made["spec"]["containers"][0]["resources"] == {"limits": both, "requests": both}


async def test_amounts_are_spelled_one_way(api: Api) -> None:
    asked = {"cpu": "0.5", "memory": "1024Mi", "nvidia.com/gpu": 1, "ephemeral-storage": "1e9"}
    made = await make_pod(api, "p", containers=[container(resources={"limits": asked})])
    wanted = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "1e9"}
    assert made["spec"]["containers"][0]["resources"]["limits"] == wanted


async def test_an_image_without_a_version_is_always_pulled(api: Api) -> None:
    images = {
        "img": "Always",
        "img:latest": "Always",
        "img:1": "IfNotPresent",
        "img@sha256:" + "a" * 64: "IfNotPresent",
    }
    made = await make_pod(api, "p", containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])
    assert [one["imagePullPolicy"] for one in made["spec"]["containers"]] == list(images.values())


async def test_probes_and_ports_are_filled_in(api: Api) -> None:
    probe = {"httpGet": {"port": 80}}
    more = container(
        ports=[{"containerPort": 80}],
        readinessProbe=probe,
        env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    one = (await make_pod(api, "p", containers=[more]))["spec"]["containers"][0]
    assert one["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert one["readinessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert one["env"][0]["valueFrom"]["fieldRef"] == {"apiVersion": "v1", "fieldPath": "metadata.name"}


async def test_a_deployment_as_it_is_stored(api: Api) -> None:
    body = deployment("web", template=plain_template())
    made = (await api.post(api.group("apps/v1", "deployments"), body)).ok(201)
    assert made["spec"] == {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {**POD_SPEC, "schedulerName": "default-scheduler"},
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert made["status"] == {}


async def test_a_job_as_it_is_stored(api: Api) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"suspend": True}}
    job["spec"] = {"suspend": True, "template": template(restartPolicy="Never")}
    made = (await api.post(api.group("batch/v1", "jobs"), job)).ok(201)
    spec, uid = dict(made["spec"]), made["metadata"]["uid"]
    labels = {
        "app": "web",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert spec.pop("template")["metadata"]["labels"] == labels
    assert spec == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
        "completionMode": "NonIndexed",
        "suspend": True,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    }
    assert made["metadata"]["generation"] == 1


async def test_a_cron_job_as_it_is_stored(api: Api) -> None:
    spec = {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}},
    }
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
    made = (await api.post(api.group("batch/v1", "cronjobs"), body)).ok(201)["spec"]
    assert (made["concurrencyPolicy"], made["successfulJobsHistoryLimit"], made["failedJobsHistoryLimit"]) == (
        "Allow",
        3,
        1,
    )


async def test_a_stateful_set_as_it_is_stored(api: Api) -> None:
    spec = {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    made = (await api.post(api.group("apps/v1", "statefulsets"), body)).ok(201)["spec"]
    assert made["podManagementPolicy"] == "OrderedReady"
    assert made["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert made["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert made["revisionHistoryLimit"] == 10


async def test_a_selector_must_choose_its_own_pods(api: Api) -> None:
    body = deployment("web", selector={"matchLabels": {"app": "other"}})
    message = (await api.post(api.group("apps/v1", "deployments"), body)).refused(422, "Invalid")
    assert message.startswith('Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value: ')
    assert message.endswith("`selector` does not match template `labels`")


async def test_the_selector_of_a_deployment_stays(api: Api) -> None:
    path = api.group("apps/v1", "deployments")
    (await api.post(path, deployment("web"))).ok(201)
    labels = {"app": "web", "more": "1"}
    changed = deployment(
        "web", selector={"matchLabels": labels}, template={**template(), "metadata": {"labels": labels}}
    )
    message = (await api.put(f"{path}/web", changed)).refused(422, "Invalid")
    assert "spec.selector: Invalid value: " in message
    assert message.endswith(": field is immutable")
