"""Rows as Kubernetes prints them: one object of each kind beside the line that a person would see."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.schema.node import ANY, Schema
from shoal.embedded.apiserver.tables.registry import PRINTERS
from shoal.embedded.apiserver.tables.table import table

NOW_S = 1795000000  # 2026-11-18T11:06:40Z
CREATED = "2026-11-18T11:01:10Z"
AGE = "5m30s"


class AnyShape:
    def of(self, group: str, version: str, kind: str) -> Schema:
        assert (version, kind) != ("", group)
        return ANY


RESOURCES = {f"{one.api_version}/{one.plural}": one for one in builtin_resources(AnyShape(), {})}


def made(path: str, **members: Any) -> dict[str, Any]:
    resource = RESOURCES[path]
    metadata = {"name": "x", "creationTimestamp": CREATED, **members.pop("metadata", {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **members}


def shown(path: str, **members: Any) -> dict[str, Any]:
    """The cells by their column, without the name and the age that every kind has."""
    found = table(RESOURCES[path], [made(path, **members)], now_s=NOW_S)
    names = [head["name"] for head in found["columnDefinitions"]]
    (row,) = found["rows"]
    assert len(names) == len(row["cells"]), "each column has a cell"
    cells = dict(zip(names, row["cells"], strict=True))
    if "Age" in cells:
        assert cells.pop("Age") == AGE
    if cells["Name"] == "x":
        del cells["Name"]
    return cells


POD_TEMPLATE = {
    "metadata": {"labels": {"b": "2", "a": "1"}},
    "spec": {
        "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}],
        "nodeSelector": {"gpu": "h100"},
    },
}
SELECTOR = {
    "matchLabels": {"tier": "web"},
    "matchExpressions": [
        {"key": "env", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "zone", "operator": "Exists"},
        {"key": "x", "operator": "NotIn", "values": ["q"]},
    ],
}
SELECTED = "env in (a,b),!old,tier=web,x notin (q),zone"
WIDE = {"Containers": "c,d", "Images": "i:1,j", "Selector": SELECTED}
WORKLOAD = {"replicas": 3, "selector": SELECTOR, "template": POD_TEMPLATE}

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "apps/v1/deployments",
        {"spec": WORKLOAD, "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}},
        {"Ready": "1/3", "Up-to-date": 2, "Available": 1, **WIDE},
    ),
    (
        "apps/v1/replicasets",
        {"spec": WORKLOAD, "status": {"replicas": 3, "readyReplicas": 2}},
        {"Desired": 3, "Current": 3, "Ready": 2, **WIDE},
    ),
    (
        "v1/replicationcontrollers",
        {"spec": {"replicas": 0, "template": POD_TEMPLATE}},
        {"Desired": 0, "Current": 0, "Ready": 0, **WIDE, "Selector": "<none>"},
    ),
    (
        "apps/v1/statefulsets",
        {"spec": WORKLOAD, "status": {"readyReplicas": 3}},
        {"Ready": "3/3", "Containers": "c,d", "Images": "i:1,j"},
    ),
    (
        "apps/v1/daemonsets",
        {
            "spec": WORKLOAD,
            "status": {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "numberAvailable": 1,
            },
        },
        {"Desired": 5, "Current": 4, "Ready": 3, "Up-to-date": 0, "Available": 1, "Node Selector": "gpu=h100", **WIDE},
    ),
    (
        "apps/v1/controllerrevisions",
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]
            },
            "revision": 4,
        },
        {"Controller": "daemonset.apps/d", "Revision": 4},
    ),
    (
        "batch/v1/jobs",
        {
            "spec": {"completions": 4, "template": POD_TEMPLATE, "selector": SELECTOR},
            "status": {"succeeded": 1, "startTime": "2026-11-18T11:06:00Z"},
        },
        {"Status": "Running", "Completions": "1/4", "Duration": "40s", **WIDE},
    ),
    (
        "batch/v1/jobs",
        {
            "spec": {"parallelism": 2, "template": POD_TEMPLATE},
            "status": {
                "conditions": [{"type": "Complete", "status": "True"}],
                "startTime": "2026-11-18T10:00:00Z",
                "completionTime": "2026-11-18T10:05:00Z",
            },
        },
        {"Status": "Complete", "Completions": "0/1 of 2", "Duration": "5m", **WIDE, "Selector": "<none>"},
    ),
    (
        "batch/v1/cronjobs",
        {
            "spec": {"schedule": "@hourly", "suspend": False, "jobTemplate": {"spec": {"template": POD_TEMPLATE}}},
            "status": {"active": [{}], "lastScheduleTime": "2026-11-18T11:00:00Z"},
        },
        {
            "Schedule": "@hourly",
            "Timezone": "<none>",
            "Suspend": "False",
            "Active": 1,
            "Last Schedule": "6m40s",
            **WIDE,
            "Selector": "<none>",
        },
    ),
    (
        "policy/v1/poddisruptionbudgets",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
        {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 2},
    ),
    (
        "autoscaling/v2/horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "maxReplicas": 9,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "5"}}},
                    {"type": "External", "external": {"target": {"averageValue": "7"}}},
                ],
            },
            "status": {
                "currentReplicas": 2,
                "currentMetrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}
                ],
            },
        },
        {
            "Reference": "Deployment/web",
            "Targets": "cpu: 40%/80%, <unknown>/5 + 1 more...",
            "MinPods": "<unset>",
            "MaxPods": 9,
            "Replicas": 2,
        },
    ),
    (
        "autoscaling/v1/horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "minReplicas": 1,
                "maxReplicas": 9,
                "targetCPUUtilizationPercentage": 80,
            }
        },
        {"Reference": "Deployment/web", "Targets": "cpu: <unknown>/80%", "MinPods": "1", "MaxPods": 9, "Replicas": 0},
    ),
    (
        "v1/nodes",
        {
            "metadata": {"labels": {"node-role.kubernetes.io/gpu": "", "kubernetes.io/role": "worker"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Shoal"},
            },
        },
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "gpu,worker",
            "Version": "v1.36.0",
            "Internal-IP": "10.0.0.1",
            "External-IP": "<none>",
            "OS-Image": "Shoal",
            "Kernel-Version": "<unknown>",
            "Container-Runtime": "<unknown>",
        },
    ),
    ("v1/namespaces", {"status": {"phase": "Terminating"}}, {"Status": "Terminating"}),
    ("v1/secrets", {"type": "Opaque", "data": {"a": "", "b": ""}}, {"Type": "Opaque", "Data": 2}),
    ("v1/configmaps", {"data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2}),
    ("v1/serviceaccounts", {"secrets": [{"name": "s"}]}, {}),
    ("v1/limitranges", {}, {"Created At": CREATED}),
    ("rbac.authorization.k8s.io/v1/clusterroles", {}, {"Created At": CREATED}),
    ("apiextensions.k8s.io/v1/customresourcedefinitions", {}, {"Created At": CREATED}),
    (
        "v1/resourcequotas",
        {"status": {"hard": {"requests.cpu": "4", "limits.cpu": "8", "pods": "10"}, "used": {"pods": "3"}}},
        {"Request": "pods: 3/10, requests.cpu: 0/4", "Limit": "limits.cpu: 0/8"},
    ),
    (
        "v1/events",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
            "type": "Warning",
            "reason": "BackOff",
            "message": " it waits \n",
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2026-11-18T11:00:00Z",
            "lastTimestamp": "2026-11-18T11:06:30Z",
            "count": 7,
        },
        {
            "Last Seen": "10s",
            "Type": "Warning",
            "Reason": "BackOff",
            "Object": "pod/p",
            "Subobject": "spec.containers{c}",
            "Source": "kubelet, n1",
            "Message": "it waits",
            "First Seen": "6m40s",
            "Count": 7,
        },
    ),
    (
        "events.k8s.io/v1/events",
        {
            "regarding": {"kind": "Node"},
            "note": "it is there",
            "eventTime": "2026-11-18T11:06:00.000000Z",
            "reportingController": "shoal",
            "series": {"count": 3, "lastObservedTime": "2026-11-18T11:06:38.500000Z"},
        },
        {
            "Last Seen": "2s",
            "Type": "",
            "Reason": "",
            "Object": "node",
            "Subobject": "",
            "Source": "shoal",
            "Message": "it is there",
            "First Seen": "40s",
            "Count": 3,
        },
    ),
    (
        "v1/services",
        {
            "spec": {
                "type": "LoadBalancer",
                "clusterIPs": ["10.96.0.7"],
                "externalIPs": ["1.1.1.1"],
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"app": "web"},
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "lb.example.com"}]}},
        },
        {
            "Type": "LoadBalancer",
            "Cluster-IP": "10.96.0.7",
            "External-IP": "9.9.9.9,lb.example.com,1.1.1.1",
            "Port(s)": "80:30080/TCP,53/UDP",
            "Selector": "app=web",
        },
    ),
    (
        "v1/endpoints",
        {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(4)], "ports": [{"port": 80}]}]},
        {"Endpoints": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more..."},
    ),
    (
        "discovery.k8s.io/v1/endpointslices",
        {"addressType": "IPv4", "ports": [{"name": "http", "port": 80}, {}], "endpoints": []},
        {"AddressType": "IPv4", "Ports": "80,*", "Endpoints": "<unset>"},
    ),
    (
        "networking.k8s.io/v1/ingresses",
        {"spec": {"rules": [{"host": f"{n}.io"} for n in range(5)], "tls": [{}], "ingressClassName": "nginx"}},
        {"Class": "nginx", "Hosts": "0.io,1.io,2.io + 2 more...", "Address": "", "Ports": "80, 443"},
    ),
    ("networking.k8s.io/v1/networkpolicies", {"spec": {"podSelector": {}}}, {"Pod-Selector": "<none>"}),
    (
        "networking.k8s.io/v1/ipaddresses",
        {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}},
        {"ParentRef": "services/default/kubernetes"},
    ),
    (
        "v1/persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "a", "name": "c"},
                "storageClassName": "fast",
                "volumeMode": "Block",
            },
            "status": {"phase": "Bound"},
        },
        {
            "Capacity": "10Gi",
            "Access Modes": "RWO,RWX",
            "Reclaim Policy": "Retain",
            "Status": "Bound",
            "Claim": "a/c",
            "StorageClass": "fast",
            "VolumeAttributesClass": "<unset>",
            "Reason": "",
            "VolumeMode": "Block",
        },
    ),
    (
        "v1/persistentvolumeclaims",
        {"metadata": {"deletionTimestamp": CREATED}, "spec": {}, "status": {"phase": "Pending"}},
        {
            "Status": "Terminating",
            "Volume": "",
            "Capacity": "",
            "Access Modes": "",
            "StorageClass": "",
            "VolumeAttributesClass": "<unset>",
            "VolumeMode": "<unset>",
        },
    ),
    (
        "storage.k8s.io/v1/storageclasses",
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"},
        {
            "Name": "x (default)",
            "Provisioner": "p",
            "ReclaimPolicy": "Delete",
            "VolumeBindingMode": "Immediate",
            "AllowVolumeExpansion": False,
        },
    ),
    (
        "storage.k8s.io/v1/csidrivers",
        {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}], "podInfoOnMount": True}},
        {
            "AttachRequired": True,
            "PodInfoOnMount": True,
            "StorageCapacity": False,
            "TokenRequests": "a,b",
            "RequiresRepublish": False,
            "Modes": "<none>",
        },
    ),
    (
        "rbac.authorization.k8s.io/v1/rolebindings",
        {
            "roleRef": {"kind": "ClusterRole", "name": "edit"},
            "subjects": [
                {"kind": "User", "name": "ann"},
                {"kind": "User", "name": "bob"},
                {"kind": "ServiceAccount", "namespace": "a", "name": "s"},
            ],
        },
        {"Role": "ClusterRole/edit", "Users": "ann, bob", "Groups": "", "ServiceAccounts": "a/s"},
    ),
    (
        "certificates.k8s.io/v1/certificatesigningrequests",
        {
            "spec": {"signerName": "example.com/s", "username": "ann", "expirationSeconds": 86400},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="},
        },
        {"SignerName": "example.com/s", "Requestor": "ann", "RequestedDuration": "24h", "Condition": "Approved,Issued"},
    ),
    ("coordination.k8s.io/v1/leases", {"spec": {"holderIdentity": "n1"}}, {"Holder": "n1"}),
    (
        "scheduling.k8s.io/v1/priorityclasses",
        {"value": 1000, "preemptionPolicy": "Never"},
        {"Value": 1000, "Global-Default": False, "PreemptionPolicy": "Never"},
    ),
    (
        "resource.k8s.io/v1/resourceclaims",
        {"status": {"allocation": {}, "reservedFor": [{}]}},
        {"State": "allocated,reserved"},
    ),
    ("resource.k8s.io/v1/resourceclaims", {}, {"State": "pending"}),
    ("resource.k8s.io/v1/resourceclaims", {"metadata": {"deletionTimestamp": CREATED}}, {"State": "deleted"}),
    (
        "resource.k8s.io/v1/resourceslices",
        {"spec": {"nodeName": "n1", "driver": "gpu.nvidia.com", "pool": {"name": "n1"}}},
        {"Node": "n1", "Driver": "gpu.nvidia.com", "Pool": "n1"},
    ),
    (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "p", "paramRef": {"name": "limits"}}},
        {"PolicyName": "p", "ParamRef": "*/limits"},
    ),
    (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "p", "paramRef": {"selector": {"matchLabels": {"a": "b"}}}}},
        {
            "PolicyName": "p",
            "ParamRef": (
                "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"
            ),
        },
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        {"spec": {"type": "Exempt"}},
        {
            "Type": "Exempt",
            "NominalConcurrencyShares": "<none>",
            "Queues": "<none>",
            "HandSize": "<none>",
            "QueueLengthLimit": "<none>",
        },
    ),
    (
        "apiregistration.k8s.io/v1/apiservices",
        {
            "spec": {"service": {"namespace": "kube-system", "name": "metrics"}},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]},
        },
        {"Service": "kube-system/metrics", "Available": "False (MissingEndpoints)"},
    ),
]


@pytest.mark.parametrize(("path", "members", "expected"), CASES, ids=[path for path, _, _ in CASES])
def test_a_row_is_printed_as_kubernetes_prints_it(path: str, members: dict[str, Any], expected: dict[str, Any]) -> None:
    assert shown(path, **members) == expected


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
def test_an_object_without_anything_in_it_has_a_row_of_every_column(resource: Resource) -> None:
    empty = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": "x"}}
    found = table(resource, [empty], now_s=NOW_S)
    assert len(found["rows"][0]["cells"]) == len(found["columnDefinitions"])


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)
def test_a_bookmark_which_has_no_name_has_a_row_all_the_same(resource: Resource) -> None:
    found = table(resource, [{"metadata": {"resourceVersion": "7"}}], now_s=NOW_S)
    assert len(found["rows"][0]["cells"]) == len(found["columnDefinitions"])


def test_every_printer_is_of_a_resource_that_is_served() -> None:
    assert set(PRINTERS) <= {(one.group, one.plural) for one in RESOURCES.values()}


def test_flow_schemas_are_listed_by_precedence() -> None:
    path = "flowcontrol.apiserver.k8s.io/v1/flowschemas"
    objects = [
        made(path, metadata={"name": name}, spec={"matchingPrecedence": precedence})
        for name, precedence in (("late", 9000), ("second", 10), ("first", 10))
    ]
    found = table(RESOURCES[path], objects, now_s=NOW_S)
    assert [row["cells"][0] for row in found["rows"]] == ["first", "second", "late"]


def test_wide_columns_are_of_lower_priority() -> None:
    found = table(RESOURCES["v1/services"], [], now_s=NOW_S)["columnDefinitions"]
    assert [(head["name"], head["priority"]) for head in found][-2:] == [("Age", 0), ("Selector", 1)]
    assert found[0]["format"] == "name"
