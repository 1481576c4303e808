"""Refusals of built-in kinds to the letter: status code, path of the field and words, as clients show them to people.

Each case is one request with a fault, sent as a dry run, and the message of the answer after the name of the object.
"""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_api import MERGE, Api, Obj
from build.contract_objects import config_map, container, deployment, gated_pod, made

_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_CLAIM = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
_POLICY: Obj = {
    "matchConstraints": {
        "resourceRules": [{"apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["y"], "operations": ["CREATE"]}]
    },
    "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
}


def obj(api_version: str, kind: str, **fields: Any) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def job(**spec: Any) -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    return obj("batch/v1", "Job", spec={"suspend": True, "template": template, **spec})


def claim(*requests: Obj) -> Obj:
    return obj("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": list(requests)}})


CASES: dict[str, tuple[str, Obj, str]] = {
    "a container's claim is one of the pod's": (
        "pods",
        gated_pod("x", container(resources={"claims": [{"name": "g"}]})),
        (
            'spec.containers[0].resources.claims[0]: Not found: "g": must be one of the names in '
            "pod.spec.resourceClaims which is empty"
        ),
    ),
    "two claims of one entry": (
        "pods",
        gated_pod("x", resourceClaims=[{"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]),
        "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    ),
    "a volume of two kinds is none, and its name is free": (
        "pods",
        gated_pod(
            "x",
            volumes=[{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}, {"name": "a", "emptyDir": {}}],
        ),
        "is invalid: spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
    ),
    "of two equal spreads the first is named": (
        "pods",
        gated_pod(
            "x",
            topologySpreadConstraints=[
                {"maxSkew": skew, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"} for skew in (1, 2)
            ],
        ),
        (
            "is invalid: spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
            '"{z, DoNotSchedule}"'
        ),
    ),
    "a port of the host's network": (
        "pods",
        gated_pod("x", container(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True),
        (
            "is invalid: spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when "
            "`hostNetwork` is true"
        ),
    ),
    "an entry of the hosts file has a place": (
        "pods",
        gated_pod("x", hostAliases=[{"ip": "None", "hostnames": ["a"]}]),
        (
            'is invalid: spec.hostAliases[0].ip: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or '
            "2001:db8::ffff)"
        ),
    ),
    "a hostname of one's own": (
        "pods",
        gated_pod("x", hostnameOverride="A"),
        f'is invalid: spec.hostnameOverride: Invalid value: "A": {_SUBDOMAIN}',
    ),
    "a variable from a file": (
        "pods",
        gated_pod("x", container(env=[{"name": "A", "valueFrom": {"fileKeyRef": {"key": "", "path": "../a"}}}])),
        "spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'",
    ),
    "a port's name is counted in characters": (
        "pods",
        gated_pod("x", container(ports=[{"name": "abcdefghijklmnop", "containerPort": 1}])),
        'ports[0].name: Invalid value: "abcdefghijklmnop": must be no more than 15 characters',
    ),
    "a selector that cannot select": (
        "deployments",
        deployment("x", selector={"matchLabels": {"a b": "c"}}),
        "invalid label selector",
    ),
    "a failed pod's rule without an action": (
        "jobs",
        job(podFailurePolicy={"rules": [{"action": ""}]}),
        (
            'action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"], '
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is "
            "required"
        ),
    ),
    "exit codes in order, each once": (
        "jobs",
        job(podFailurePolicy={"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [2, 1, 2]}}]}),
        (
            "is invalid: [spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2, "
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1,2]: must be ordered]"
        ),
    ),
    "a request of devices without a name": (
        "resourceclaims",
        claim({**_CLAIM, "name": ""}),
        f'is invalid: spec.devices.requests[0].name: Invalid value: "": {_LABEL}',
    ),
    "a configuration without a driver": (
        "deviceclasses",
        obj("resource.k8s.io/v1", "DeviceClass", spec={"config": [{"opaque": {"driver": "", "parameters": {}}}]}),
        "is invalid: spec.config[0].opaque.driver: Required value",
    ),
    "a subject without a name": (
        "rolebindings",
        obj(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            subjects=[{"kind": "User", "name": ""}],
        ),
        "is invalid: subjects[0].name: Required value",
    ),
    "an autoscaler without a limit": (
        "horizontalpodautoscalers",
        obj(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={"minReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
        ),
        "spec.maxReplicas: Required value: must be set and greater than 0",
    ),
    "a block device is one of the volumes": (
        "pods",
        gated_pod("x", container(volumeDevices=[{"name": "raw", "devicePath": "/dev/../a"}])),
        (
            'is invalid: [spec.containers[0].volumeDevices[0].name: Not found: "raw", '
            'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/dev/../a": can not contain backsteps '
            "('..')]"
        ),
    ),
    "a claim that a pod brings along": (
        "pods",
        gated_pod(
            "x",
            volumes=[
                {
                    "name": "a",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {"accessModes": ["Odd"], "resources": {"requests": {"storage": "1Gi"}}}
                        }
                    },
                }
            ],
        ),
        'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "Odd"',
    ),
    "a volume of two kinds is of the first in the order of Kubernetes": (
        "pods",
        gated_pod("x", volumes=[{"name": "a", "secret": {"secretName": "s"}, "emptyDir": {}}]),
        "is invalid: spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
    ),
    "a toleration of everything with a value": (
        "pods",
        gated_pod("x", tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
    ),
    "a range of ports that ends before it begins": (
        "networkpolicies",
        obj(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={"podSelector": {}, "ingress": [{"ports": [{"port": 9, "endPort": 8}]}]},
        ),
        "is invalid: spec.ingress[0].ports[0].endPort: Invalid value: 9: must be greater than or equal to `port`",
    ),
    "a label key of three parts": (
        "configmaps",
        config_map("x", labels={"a/b/c": ""}),
        'is invalid: metadata.labels: Invalid value: "a/b/c": a valid label key must consist of',
    ),
    "a metric of no kind": (
        "horizontalpodautoscalers",
        obj(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={
                "maxReplicas": 2,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": [{"type": "Odd"}],
            },
        ),
        (
            'is invalid: spec.metrics[0].type: Unsupported value: "Odd": supported values: "ContainerResource", '
            '"External", "Object", "Pods", "Resource"'
        ),
    ),
    "a deployment changes in one of two ways": (
        "deployments",
        deployment("x", strategy={"type": "Odd"}),
        "is invalid: spec.strategy: Unsupported value: {",
    ),
    "a system of pods": (
        "pods",
        gated_pod("x", os={"name": "plan9"}),
        'is invalid: spec.os: Unsupported value: "plan9": supported values: "linux", "windows"',
    ),
    "a claim of a set asks for a size": (
        "statefulsets",
        obj(
            "apps/v1",
            "StatefulSet",
            spec={
                "serviceName": "x",
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
                "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}] * 2,
            },
        ),
        (
            "is invalid: [spec.volumeClaimTemplates[0].spec.resources[storage]: Required value, "
            "spec.volumeClaimTemplates[1].spec.resources[storage]: Required value]"
        ),
    ),
    "constraints are about an attribute": (
        "resourceclaims",
        obj(
            "resource.k8s.io/v1",
            "ResourceClaim",
            spec={"devices": {"requests": [_CLAIM], "constraints": [{"requests": ["r"]}]}},
        ),
        'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is',
    ),
    "a path on a file server": (
        "persistentvolumes",
        obj(
            "v1",
            "PersistentVolume",
            spec={"capacity": {"storage": "1"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "s", "path": ""}},
        ),
        'is invalid: [spec.nfs.path: Required value, spec.nfs.path: Invalid value: "": must be an absolute path]',
    ),
    "what is deleted cannot be mutated": (
        "mutatingadmissionpolicybindings",
        obj(
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicyBinding",
            spec={
                "policyName": "p",
                "matchResources": {
                    "resourceRules": [
                        {"apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["y"], "operations": ["DELETE"]}
                    ]
                },
            },
        ),
        (
            'is invalid: spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: '
            '"*", "CONNECT", "CREATE", "UPDATE"'
        ),
    ),
    "a taint is told at the metadata": (
        "nodes",
        obj("v1", "Node", spec={"taints": [{"key": "a", "effect": "Odd"}]}),
        (
            'is invalid: metadata.taints[0].effect: Unsupported value: "Odd": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"'
        ),
    ),
    "a node's ranges": (
        "nodes",
        obj("v1", "Node", spec={"podCIDRs": ["none"]}),
        'spec.podCIDRs[0]: Invalid value: "none": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ),
    "a policy says whether it is asked again": (
        "mutatingadmissionpolicies",
        obj("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", spec=_POLICY),
        "spec.reinvocationPolicy: Required value",
    ),
    "a policy in force says what lacking parameters mean": (
        "mutatingadmissionpolicybindings",
        obj(
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicyBinding",
            spec={"policyName": "p", "paramRef": {"name": "a"}, "matchResources": {"resourceRules": [{}]}},
        ),
        "spec.paramRef.parameterNotFoundAction: Required value",
    ),
    "rules of a policy in force": (
        "mutatingadmissionpolicybindings",
        obj(
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicyBinding",
            spec={"policyName": "p", "matchResources": {"resourceRules": [{}]}},
        ),
        "spec.matchResources.resourceRules[0].operations: Required value",
    ),
    "a zone in a schedule": (
        "cronjobs",
        obj(
            "batch/v1",
            "CronJob",
            spec={
                "schedule": "TZ=UTC 1 * * * *",
                "timeZone": "Etc/UTC",
                "jobTemplate": {"spec": {"template": job()["spec"]["template"]}},
            },
        ),
        'spec.schedule: Invalid value: "TZ=UTC 1 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field',
    ),
}
_CLUSTER = {
    "deviceclasses", "nodes", "persistentvolumes", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
}  # fmt: skip


def _collection(api: Api, plural: str, version: str) -> str:
    if plural in _CLUSTER:
        return f"/api/v1/{plural}" if version == "v1" else f"/apis/{version}/{plural}"
    return api.core(plural) if version == "v1" else api.group(version, plural)


@pytest.mark.parametrize(("plural", "body", "words"), CASES.values(), ids=CASES)
async def test_a_fault_is_told_in_the_words_of_kubernetes(api: Api, plural: str, body: Obj, words: str) -> None:
    answer = await api.post(_collection(api, plural, body["apiVersion"]), body, dryRun="All")
    assert words in answer.refused(422, "Invalid")


async def test_a_sentence_is_said_once_though_it_is_found_twice(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    answer = await api.patch(api.core("configmaps", "c"), {"metadata": {"labels": {"a b": "c"}}})
    assert answer.refused(422).count("a b") == 1
    assert len(answer.body["details"]["causes"]) > 1


async def test_a_gate_that_is_added_is_named(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    gates = [{"name": "example.com/never"}, {"name": "example.com/more"}]
    answer = await api.patch(api.core("pods", "p"), {"spec": {"schedulingGates": gates}})
    words = "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate"
    assert f"{words} 'example.com/more'" in answer.refused(422)


async def test_a_changed_pod_is_checked_as_a_new_one(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    bad = [{**container(), "env": [{"name": "é", "value": "a"}]}]
    answer = await api.ask(
        "PATCH",
        api.core("pods", "p"),
        {"spec": {"containers": bad}},
        media="application/strategic-merge-patch+json",
    )
    assert "spec.containers[0].env[0].name: Invalid value" in answer.refused(422)


async def test_a_pod_without_gates_keeps_the_condition_until_a_scheduler_has_looked(api: Api) -> None:
    await made(api, "pods", gated_pod("p", schedulerName="example.com/none"))
    freed = (await api.patch(api.core("pods", "p"), {"spec": {"schedulingGates": None}})).ok()
    (condition,) = freed["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    assert condition["lastTransitionTime"]
    assert "observedGeneration" not in condition


async def test_an_update_of_the_status_needs_a_version_where_an_update_does(api: Api) -> None:
    budget = obj("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1})
    await made(api, "poddisruptionbudgets", budget)
    for door in ((), ("status",)):
        answer = await api.put(api.group("policy/v1", "poddisruptionbudgets", "x", *door), budget)
        assert answer.refused(422) == (
            'poddisruptionbudgets.policy "x" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified '
            "for an update"
        )


async def test_a_headless_service_may_lose_its_ports_and_selector(api: Api) -> None:
    spec = {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}
    await made(api, "services", obj("v1", "Service", spec=spec))
    answer = await api.put(api.core("services", "x"), obj("v1", "Service", spec={"clusterIP": "None"}))
    assert answer.ok()["spec"]["clusterIPs"] == ["None"]


async def test_a_certificate_that_is_none_is_stored_with_a_warning(api: Api) -> None:
    secret = obj("v1", "Secret", type="kubernetes.io/tls", data={"tls.crt": "Zm9v", "tls.key": "Zm9v"})
    answer = await api.post(api.core("secrets"), secret)
    assert answer.ok()
    assert answer.warnings == ['299 - "tls: failed to find any PEM data in certificate input"']


async def test_a_node_port_that_no_service_can_have_is_told_alone(api: Api) -> None:
    ports = [{"port": 0, "nodePort": 5}, {"port": 80, "nodePort": 70000}]
    service = obj("v1", "Service", spec={"type": "NodePort", "ports": ports})
    assert (await api.post(api.core("services"), service)).refused(422, "Invalid") == (
        'Service "x" is invalid: spec.ports[0].nodePort: Invalid value: 5: provided port is not in the valid range. '
        "The range of valid ports is 30000-32767"
    )


async def test_what_has_no_effect_is_warned_of(api: Api) -> None:
    spec = {"clusterIP": "None", "externalIPs": ["192.0.2.1"], "sessionAffinity": "ClientIP", "ports": [{"port": 80}]}
    answer = await api.post(api.core("services"), obj("v1", "Service", spec=spec), dryRun="All")
    assert answer.warnings == [
        '299 - "spec.externalIPs is ignored for headless services"',
        '299 - "spec.SessionAffinity is ignored for headless services"',
    ]
    driver = obj("storage.k8s.io/v1", "CSIDriver", spec={"tokenRequests": [{"audience": "a"}]})
    answer = await api.post("/apis/storage.k8s.io/v1/csidrivers", driver, dryRun="All")
    assert answer.ok()
    assert answer.warnings[0].startswith('299 - "spec.serviceAccountTokenInSecrets is unset; if supported')


async def test_a_refused_write_is_not_warned_of(api: Api) -> None:
    secret = obj("v1", "Secret", type="kubernetes.io/tls", data={"tls.crt": "Zm9v", "tls.key": "Zm9v"})
    await made(api, "secrets", secret)
    answer = await api.put(api.core("secrets", "x"), {**secret, "data": {}})
    answer.refused(422)
    assert answer.warnings == []


async def test_a_patch_of_the_uid_is_refused_with_what_else_is_wrong(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    patch = {"metadata": {"uid": "other", "labels": {"a b": "c"}}}
    words = (await api.patch(api.core("configmaps", "c"), patch)).refused(422, "Invalid")
    assert 'metadata.uid: Invalid value: "other": field is immutable' in words
    assert 'metadata.labels: Invalid value: "a b"' in words


async def test_the_first_range_of_a_node_is_its_range(api: Api) -> None:
    for spec in ({"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.8.0.0/24"]}, {"podCIDRs": ["10.9.0.0/24"]}):
        answer = await api.post("/api/v1/nodes", obj("v1", "Node", spec=spec), dryRun="All")
        found = answer.ok()["spec"]
        assert (found["podCIDR"], found["podCIDRs"]) == ("10.9.0.0/24", ["10.9.0.0/24"])


async def test_a_claim_forgets_a_source_that_the_older_field_is_not_for(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    other = {"apiGroup": "x.example.com", "kind": "Odd", "name": "o"}
    claim = {"kind": "PersistentVolumeClaim", "name": "o"}
    for source, is_kept in ((other, False), (claim, True)):
        body = obj("v1", "PersistentVolumeClaim", spec={**spec, "dataSource": source})
        found = (await api.post(api.core("persistentvolumeclaims"), body, dryRun="All")).ok()["spec"]
        assert ("dataSource" in found, "dataSourceRef" in found) == (is_kept, is_kept)


async def test_an_applied_object_that_is_none_of_its_kind(api: Api) -> None:
    await made(api, "resourcequotas", obj("v1", "ResourceQuota", spec={"hard": {"pods": "1"}}))
    applied = obj("v1", "ResourceQuota", spec={"hard": {"pods": "a b"}})
    answer = await api.apply(api.core("resourcequotas", "x"), applied, "other", force=True)
    assert answer.refused(500).startswith(
        "failed to convert new object (/x; /v1, Kind=ResourceQuota) to proper version: unable to convert unstructured "
        "object to /v1, Kind=ResourceQuota: quantities must match the regular expression"
    )


async def test_versions_that_are_none(api: Api) -> None:
    await made(api, "configmaps", config_map("c"))
    fault = 'strconv.ParseUint: parsing "abc": invalid syntax'
    one, all_of_them = api.core("configmaps", "c"), api.core("configmaps")
    assert (await api.get(one, resourceVersion="abc")).refused(500) == f'resourceVersion: Invalid value: "abc": {fault}'
    listed = (await api.get(all_of_them, resourceVersion="abc")).refused(400, "BadRequest")
    assert listed == f'invalid resource version: resourceVersion: Invalid value: "abc": {fault}'
    assert (await api.put(one, config_map("c", resourceVersion="abc"))).refused(500) == fault


async def test_bodies_of_other_kinds(api: Api) -> None:
    async def refused(api_version: str, kind: str) -> str:
        body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "c"}}
        return (await api.post(api.core("configmaps"), body)).refused(400, "BadRequest")

    scheme = 'scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"'
    lead = "cannot be handled as a ConfigMap"
    assert await refused("v2", "ConfigMap") == (
        f'ConfigMap in version "v2" {lead}: no kind "ConfigMap" is registered for version "v2" in {scheme}'
    )
    assert await refused("v1", "Odd") == (
        f'Odd in version "v1" {lead}: no kind "Odd" is registered for version "v1" in {scheme}'
    )
    assert await refused("v1", "Secret") == (
        f'Secret in version "v1" {lead}: converting (v1.Secret) to (core.ConfigMap): unknown conversion'
    )


async def test_methods_and_forms_that_a_path_does_not_have(api: Api) -> None:
    path = api.core("configmaps")
    assert (await api.ask("HEAD", path)).code == 405
    answer = await api.put(path, config_map("c"))
    answer.refused(405, "MethodNotAllowed")
    assert answer.body["details"] == {}
    await made(api, "configmaps", config_map("c"))
    unknown = await api.patch(f"{path}/c", {}, media="text/plain")
    assert unknown.refused(415, "UnsupportedMediaType") == "415: Unsupported Media Type"
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    odd = await api.ask("GET", path, headers=table, includeObject="Odd")
    assert odd.refused(400) == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Odd": must be '
        "'Metadata', 'Object', 'None', or empty"
    )
    await api.patch(f"{path}/c", {"metadata": {"finalizers": None}}, media=MERGE)


async def test_readers_of_deprecated_kinds_are_warned(api: Api) -> None:
    words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert (await api.get(api.core("endpoints"))).warnings == [f'299 - "{words}"']
    found = await api.get("/api/v1/componentstatuses")
    assert found.warnings == ['299 - "v1 ComponentStatus is deprecated in v1.19+"']
    names = [one["metadata"]["name"] for one in found.ok()["items"]]
    assert sorted(names) == ["controller-manager", "etcd-0", "scheduler"]
    one = (await api.get("/api/v1/componentstatuses/etcd-0")).ok()
    assert (one["kind"], one["conditions"][0]["type"]) == ("ComponentStatus", "Healthy")
    missing = await api.get("/api/v1/componentstatuses/none")
    assert missing.refused(404, "NotFound") == 'componentstatus "none" not found'


async def test_reviews_say_the_group_alone(api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    answer = await api.post(path, review)
    assert answer.refused(422) == (
        f'.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: {words}'
    )


async def test_a_binding_for_another_life_of_the_pod(api: Api) -> None:
    await made(api, "pods", gated_pod("p"))
    body = {"metadata": {"name": "p", "uid": "other"}, "target": {"kind": "Node", "name": "n"}}
    words = (await api.post(api.core("pods", "p", "binding"), body)).refused(409, "Conflict")
    lead = f"StorageError: invalid object, Code: 4, Key: /registry/pods/{api.namespace}/p, ResourceVersion: 0"
    assert words.startswith(
        f'Operation cannot be fulfilled on pods "p": {lead}, AdditionalErrorMsg: Precondition failed'
    )
