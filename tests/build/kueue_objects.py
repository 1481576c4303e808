"""Every kind of Kueue as a document with all the fields that are read, in every version."""

from __future__ import annotations

from typing import Any

from shoal.api.kueue.conversion import V1BETA1, V1BETA2, convert

Plain = dict[str, Any]

_CONDITIONS = [
    {
        "type": "Active",
        "status": "True",
        "reason": "Ready",
        "message": "m",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
]
_TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
_SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
_GROUPS = [
    {
        "coveredResources": ["cpu", "nvidia.com/gpu"],
        "flavors": [
            {
                "name": name,
                "resources": [
                    {"name": "cpu", "nominalQuota": "8", "borrowingLimit": "2", "lendingLimit": "1"},
                    {"name": "nvidia.com/gpu", "nominalQuota": "4"},
                ],
            }
            for name in ("spot", "reserved")
        ],
    }
]
_USAGE = [{"name": "spot", "resources": [{"name": "cpu", "total": "3", "borrowed": "1"}]}]
_COUNTERS = {"pendingWorkloads": 1, "reservingWorkloads": 2, "admittedWorkloads": 2}
_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "nodeSelector": {"pool": "a"},
        "tolerations": [_TOLERATION],
    },
}
_GROUPED = {
    "required": "rack",
    "podSetGroupName": "g",
    "podSetSliceRequiredTopology": "host",
    "podSetSliceSize": 2,
    "podIndexLabel": "i",
    "subGroupIndexLabel": "j",
    "subGroupCount": 2,
}


def _thing(kind: str, **fields: Any) -> Plain:
    return {"apiVersion": V1BETA2, "kind": kind, "metadata": {"name": "x"}, **fields}


_CLUSTER_QUEUE = _thing(
    "ClusterQueue",
    spec={
        "resourceGroups": _GROUPS,
        "cohortName": "all",
        "queueingStrategy": "StrictFIFO",
        "namespaceSelector": _SELECTOR,
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "preference": "PreemptionOverBorrowing"},
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
        },
        "admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": ["spot"]}]},
        "stopPolicy": "Hold",
        "fairSharing": {"weight": "2"},
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        "concurrentAdmissionPolicy": {
            "migration": {"mode": "RetainFirstAdmission", "constraints": {"lastAcceptableFlavorName": "reserved"}}
        },
    },
    status={
        "conditions": _CONDITIONS,
        "flavorsReservation": _USAGE,
        "flavorsUsage": _USAGE,
        "fairSharing": {"weightedShare": 7},
        **_COUNTERS,
    },
)
_LOCAL_QUEUE = _thing(
    "LocalQueue",
    spec={"clusterQueue": "cq", "stopPolicy": "HoldAndDrain", "fairSharing": {"weight": "500m"}},
    status={
        "conditions": _CONDITIONS,
        "flavorsReservation": _USAGE,
        "flavorsUsage": _USAGE,
        "fairSharing": {
            "weightedShare": 3,
            "admissionFairSharingStatus": {"consumedResources": {"cpu": "3"}, "lastUpdate": "2026-01-31T12:00:00Z"},
        },
        **_COUNTERS,
    },
)
_WORKLOAD = _thing(
    "Workload",
    spec={
        "podSets": [
            {
                "name": "leader",
                "count": 2,
                "minCount": 1,
                "template": _TEMPLATE,
                "topologyRequest": {"preferred": "rack"},
            },
            {"name": "head", "template": _TEMPLATE, "topologyRequest": _GROUPED},
            {"name": "workers", "count": 4, "template": _TEMPLATE, "topologyRequest": _GROUPED},
            {
                "name": "free",
                "count": 8,
                "template": _TEMPLATE,
                "topologyRequest": {
                    "unconstrained": True,
                    "podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 4}],
                },
            },
        ],
        "queueName": "lq",
        "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
        "priority": 7,
        "active": False,
        "maximumExecutionTimeSeconds": 60,
        "preemptionGates": [{"name": "gate"}],
    },
    status={
        "conditions": _CONDITIONS,
        "admission": {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {
                    "name": "leader",
                    "count": 2,
                    "flavors": {"cpu": "spot"},
                    "resourceUsage": {"cpu": "2"},
                    "delayedTopologyRequest": "Ready",
                    "topologyAssignment": {
                        "levels": ["block", "rack"],
                        "slices": [
                            {
                                "domainCount": 2,
                                "valuesPerLevel": [
                                    {"universal": "b"},
                                    {"individual": {"prefix": "r-", "suffix": ".x", "roots": ["1", "2"]}},
                                ],
                                "podCounts": {"individual": [2, 1]},
                            }
                        ],
                    },
                },
                {"name": "head"},
                {"name": "workers"},
                {"name": "free"},
            ],
        },
        "requeueState": {"count": 2, "requeueAt": "2026-01-31T12:00:00Z"},
        "reclaimablePods": [{"name": "workers", "count": 1}],
        "admissionChecks": [
            {
                "name": "a",
                "state": "Ready",
                "message": "m",
                "lastTransitionTime": "2026-01-31T12:00:00Z",
                "podSetUpdates": [
                    {
                        "name": "leader",
                        "labels": {"a": "b"},
                        "annotations": {"a": "b"},
                        "nodeSelector": {"a": "b"},
                        "tolerations": [_TOLERATION],
                    }
                ],
                "retryCount": 1,
                "requeueAfterSeconds": 5,
            }
        ],
        "resourceRequests": [{"name": "leader", "resources": {"cpu": "2"}}],
        "accumulatedPastExecutionTimeSeconds": 9,
        "schedulingStats": {"evictions": [{"reason": "Preempted", "underlyingCause": "c", "count": 3}]},
        "clusterName": "far",
        "unhealthyNodes": [{"name": "n"}],
        "preemptionGates": [{"name": "gate", "position": "Closed", "lastTriggeredTime": "2026-01-31T12:00:00Z"}],
    },
)
_CONFIGURATION: Plain = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "namespace": "kueue-system",
    "manageJobsWithoutQueueName": True,
    "managedJobsNamespaceSelector": _SELECTOR,
    "waitForPodsReady": {
        "timeout": "5m",
        "recoveryTimeout": "1m",
        "blockAdmission": True,
        "requeuingStrategy": {
            "timestamp": "Creation",
            "backoffLimitCount": 3,
            "backoffBaseSeconds": 10,
            "backoffMaxSeconds": 100,
        },
    },
    "integrations": {"frameworks": ["pod"], "externalFrameworks": ["A.v1.b"], "labelKeysToCopy": ["a"]},
    "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
    "admissionFairSharing": {
        "usageHalfLifeTime": "1h",
        "usageSamplingInterval": "1m",
        "resourceWeights": {"cpu": 2.5},
    },
    "resources": {
        "quotaCheckStrategy": "IgnoreUndeclared",
        "excludeResourcePrefixes": ["example.com/"],
        "transformations": [{"input": "a", "strategy": "Replace", "multiplyBy": "b", "outputs": {"c": "500m"}}],
        "deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu"]}],
    },
    "featureGates": {"PartialAdmission": False},
}
_ALIKE = [
    _thing("Cohort", spec={"parentName": "root", "resourceGroups": _GROUPS, "fairSharing": {"weight": "2"}}),
    _thing(
        "ResourceFlavor",
        spec={
            "nodeLabels": {"pool": "a"},
            "nodeTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "tolerations": [_TOLERATION],
            "topologyName": "racks",
        },
    ),
    _thing("WorkloadPriorityClass", value=7, description="d"),
    _thing(
        "AdmissionCheck",
        spec={"controllerName": "c", "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "K", "name": "n"}},
        status={"conditions": _CONDITIONS},
    ),
]

_OLD_CLUSTER_QUEUE = convert(_CLUSTER_QUEUE, V1BETA1)
_OLD_CLUSTER_QUEUE["spec"]["admissionChecks"] = ["b"]

NEWEST: list[Plain] = [
    _CLUSTER_QUEUE,
    _LOCAL_QUEUE,
    _WORKLOAD,
    _CONFIGURATION,
    *_ALIKE,
    *({**one, "apiVersion": V1BETA1} for one in _ALIKE),
]
"""Nothing in these is left out by reading."""

OLDER: list[Plain] = [
    *(convert(one, V1BETA1) for one in (_LOCAL_QUEUE, _WORKLOAD)),
    _OLD_CLUSTER_QUEUE,
    {
        **_CONFIGURATION,
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "waitForPodsReady": {"enable": True},
        "fairSharing": {"enable": True},
    },
    {"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Cohort", "metadata": {"name": "x"}, "spec": {"parent": "root"}},
]
"""These are translated, so they are written otherwise than they were read."""
