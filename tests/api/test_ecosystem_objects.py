"""Every kind, as a whole: found by its version, read alike from JSON and YAML, written and read again, and never
able to break the reader.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from build.depth import is_deep
from build.kueue_objects import NEWEST, OLDER
from shoal.api.decode import Unknown, read
from shoal.api.kinds import KINDS, find_kind
from shoal.api.wire import dec_hook, to_json
from shoal.units.errors import UserError

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
NODES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
ASK: dict[str, Any] = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "true"}}],
    "count": 2,
    "tolerations": [TOLERATION],
    "capacity": {"requests": {"memory": "1Gi"}},
}
OPAQUE = {"driver": "gpu.example.com", "parameters": {"kind": "Config", "deep": [1, {"a": "b"}]}}
ALTERNATIVES = {"name": "b", "firstAvailable": [{"name": "x", **ASK}]}
REST = {
    "constraints": [{"requests": ["a", "b/x"], "matchAttribute": "x.com/a"}],
    "config": [{"requests": ["a"], "opaque": OPAQUE}],
}
DEVICES = {"requests": [{"name": "a", "exactly": {"adminAccess": True, **ASK}}, ALTERNATIVES], **REST}
OLD_DEVICES = {"requests": [{"name": "a", "adminAccess": True, **ASK}, ALTERNATIVES], **REST}
TRAITS: dict[str, Any] = {
    "attributes": {"model": {"string": "H"}, "x.com/i": {"int": 1}, "v": {"version": "1.2.3"}, "f": {"bool": True}},
    "capacity": {
        "memory": {"value": "8Gi", "requestPolicy": {"default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}},
        "cores": {"value": 8, "requestPolicy": {"default": 2, "validValues": [1, 2]}},
    },
    "consumesCounters": [{"counterSet": "s", "counters": {"a": {"value": 1}}}],
    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2026-01-31T12:00:00Z"}],
    "allowMultipleAllocations": True,
    "bindsToNode": True,
    "bindingConditions": ["ready"],
    "nodeName": "n",
}
SLICE = {
    "driver": "gpu.example.com",
    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
    "perDeviceNodeSelection": True,
    "sharedCounters": [{"name": "s", "counters": {"a": {"value": 1}}}],
}
REPLICAS = {
    "replicas": 2,
    "selector": SELECTOR,
    "template": {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"containers": [{"name": "c"}]}},
}
GANG = {"gang": {"minCount": 2}}
LEVELS = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "kubernetes.io/hostname"}]}


def thing(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


OBJECTS = [
    thing(
        "config.shoal.dev/v1alpha1",
        "BudgetReport",
        currency="USD",
        period="2026-11",
        computedAt="2026-11-27T12:00:00Z",
        resetsAt="2026-12-01T00:00:00Z",
        budgets=[{"kind": "team", "name": "red", "perMonth": "10", "spent": "1", "forecast": "2", "enforced": "spent"}],
    ),
    thing("apps/v1", "Deployment", spec=REPLICAS),
    thing("apps/v1", "ReplicaSet", spec=REPLICAS),
    thing("apps/v1", "StatefulSet", spec=REPLICAS),
    thing(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        spec={
            "minMember": 2,
            "minTaskMember": {"worker": 2},
            "queue": "q",
            "minResources": {"cpu": "1"},
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
            "subGroupPolicy": [
                {
                    "name": "a",
                    "labelSelector": SELECTOR,
                    "matchLabelKeys": ["k"],
                    "subGroupSize": 2,
                    "networkTopology": {"highestTierName": "rack"},
                }
            ],
        },
        status={"phase": "Running", "running": 2},
    ),
    thing(
        "scheduling.run.ai/v2alpha2",
        "PodGroup",
        spec={
            "minMember": 2,
            "preemptibility": "preemptible",
            "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"},
            "subGroups": [{"name": "a", "minSubGroup": 1}, {"name": "b", "parent": "a", "minMember": 2}],
            "markUnschedulable": True,
            "schedulingBackoff": -1,
        },
    ),
    thing(
        "scheduling.x-k8s.io/v1alpha1",
        "PodGroup",
        spec={"minMember": 2, "minResources": {"cpu": "1"}, "scheduleTimeoutSeconds": 5},
    ),
    thing(
        "scheduling.k8s.io/v1alpha1",
        "Workload",
        spec={
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
            "podGroups": [{"name": "a", "policy": GANG}, {"name": "b", "policy": {"basic": {}}}],
        },
    ),
    *(
        thing(
            f"scheduling.k8s.io/{version}",
            "PodGroup",
            spec={
                "schedulingPolicy": GANG,
                "disruptionMode": mode,
                "priority": 5,
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
            },
        )
        for version, mode in (("v1alpha2", "Pod"), ("v1alpha3", "All"), ("v1beta1", "Single"))
    ),
    *(thing(f"kueue.x-k8s.io/{version}", "Topology", spec=LEVELS) for version in ("v1alpha1", "v1beta1", "v1beta2")),
    thing("kai.scheduler/v1alpha1", "Topology", spec=LEVELS),
    thing(
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        spec={
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n"}}},
                {"type": "Node", "selector": {"labelMatch": SELECTOR}},
                {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^a-[0-9]$"}}},
            ],
        },
    ),
    thing(
        "topology.node.k8s.io/v1alpha2",
        "NodeResourceTopology",
        topologyPolicies=["Restricted"],
        attributes=[{"name": "a", "value": "b"}],
        zones=[
            {
                "name": "z",
                "type": "Node",
                "parent": "s",
                "costs": [{"name": "z", "value": 10}],
                "resources": [{"name": "cpu", "capacity": 4, "allocatable": 4, "available": 2}],
            }
        ],
    ),
    *(
        thing(
            f"resource.k8s.io/{version}",
            "DeviceClass",
            spec={"selectors": ASK["selectors"], "config": [{"opaque": OPAQUE}], "extendedResourceName": "x.com/gpu"},
        )
        for version in ("v1", "v1beta1", "v1beta2")
    ),
    *(
        thing(
            f"resource.k8s.io/{version}",
            "ResourceClaim",
            spec={"devices": devices},
            status={
                "allocation": {
                    "devices": {
                        "results": [
                            {
                                "request": "a",
                                "driver": "gpu.example.com",
                                "pool": "n",
                                "device": "d",
                                "shareID": "s",
                                "consumedCapacity": {"memory": "1Gi"},
                            }
                        ],
                        "config": [{"source": "FromClass", "opaque": OPAQUE}],
                    },
                    "nodeSelector": NODES,
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            },
        )
        for version, devices in (("v1", DEVICES), ("v1beta1", OLD_DEVICES), ("v1beta2", DEVICES))
    ),
    *(
        thing(
            f"resource.k8s.io/{version}",
            "ResourceClaimTemplate",
            spec={"metadata": {"labels": {"a": "b"}}, "spec": {"devices": devices}},
        )
        for version, devices in (("v1", DEVICES), ("v1beta1", OLD_DEVICES), ("v1beta2", DEVICES))
    ),
    *(
        thing(f"resource.k8s.io/{version}", "ResourceSlice", spec={**SLICE, "devices": [{"name": "d", **traits}]})
        for version, traits in (("v1", TRAITS), ("v1beta1", {"basic": TRAITS}), ("v1beta2", TRAITS))
    ),
    thing("v1", "ResourceQuota", spec={"hard": {"requests.nvidia.com/gpu": "8"}, "scopes": ["NotTerminating"]}),
    thing("v1", "LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}),
    *(
        thing(f"node.k8s.io/{version}", "RuntimeClass", overhead={"podFixed": {"cpu": "100m"}})
        for version in ("v1", "v1beta1")
    ),
    *NEWEST,
    *OLDER,
]
NAMES = [f"{one['kind']} of {one['apiVersion']}" for one in OBJECTS]
ODD: list[Any] = [None, True, -1, 1.5, 10**30, "", "-", "500m", "a b", "é\n", "x" * 300, [], [None], {}, {"": 1}]


_PARTS = 1 if is_deep() else 3
"""Each place gets a third of the odd things, the next place the next third: each third has texts, a number and a list
or a map, and every type of field is read in many places."""


def changes(value: Any, places: Iterator[int] | None = None) -> Iterator[Any]:
    """The value with one place in it changed, for every place and what could stand there."""
    places = places or itertools.count()
    yield from ODD[next(places) % _PARTS :: _PARTS]
    if isinstance(value, dict):
        for key, inner in value.items():
            for changed in changes(inner, places):
                yield {**value, key: changed}
            yield {other: kept for other, kept in value.items() if other != key}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for changed in changes(inner, places):
                yield [*value[:index], changed, *value[index + 1 :]]
        yield value * 2


@pytest.mark.parametrize("body", OBJECTS, ids=NAMES)
def test_an_object_is_read_alike_from_json_and_yaml(body: dict[str, Any]) -> None:
    text = json.dumps(body)
    (from_json,), (from_yaml,) = read(text), read(f"# yaml\n{text}")
    assert not isinstance(from_json.value, Unknown)
    assert from_json.value == from_yaml.value


@pytest.mark.parametrize("body", OBJECTS, ids=NAMES)
def test_an_object_is_written_and_read_again(body: dict[str, Any]) -> None:
    (document,) = read(json.dumps(body))
    value = document.value
    assert not isinstance(value, Unknown)
    assert msgspec.json.decode(to_json(value), type=type(value), dec_hook=dec_hook) == value


@pytest.mark.parametrize("body", OBJECTS[: -len(OLDER)], ids=NAMES[: -len(OLDER)])
def test_nothing_that_was_said_is_lost(body: dict[str, Any]) -> None:
    """A field that a type misspells would be ignored on reading; so all that stands here, no defaults, comes back."""
    (document,) = read(json.dumps(body))
    value = document.value
    assert not isinstance(value, Unknown)
    assert lost(body, json.loads(to_json(value))) == {"apiVersion", "kind"}


def lost(said: Any, kept: Any, path: str = "") -> set[str]:
    if isinstance(said, dict):
        gone = {f"{path}{key}" for key in said if key not in kept}
        return gone.union(*(lost(inner, kept[key], f"{path}{key}.") for key, inner in said.items() if key in kept))
    if isinstance(said, list):
        return set().union(*(lost(inner, other, path) for inner, other in zip(said, kept, strict=True)))
    return set()


@pytest.mark.parametrize("body", OBJECTS, ids=NAMES)
def test_one_place_gone_wrong_never_breaks_the_reader(body: dict[str, Any]) -> None:
    for changed in changes(body):
        try:
            read(json.dumps(changed), "f")
        except UserError as refusal:
            line = str(refusal)
            assert line.isprintable()
            assert line.startswith("f: ")


def test_every_version_of_every_kind_is_in_the_list_once() -> None:
    names = [(version, kind.name) for kind in KINDS for version in kind.api_versions]
    assert len(set(names)) == len(names)
    assert all(find_kind(version, name) is not None for version, name in names)


def test_every_kind_that_has_no_file_of_its_own_is_tried_here() -> None:
    tried = {(one["apiVersion"], one["kind"]) for one in OBJECTS}
    elsewhere = {"Pod", "Node", "Namespace", "DaemonSet", "Job", "PriorityClass", "PodDisruptionBudget"}
    listed = {(version, kind.name) for kind in KINDS for version in kind.api_versions if kind.name not in elsewhere}
    assert listed == tried


def test_what_is_missing_is_said_alike_in_json_and_yaml() -> None:
    complaints = set()
    for prefix in ("", "# yaml\n"):
        with pytest.raises(UserError) as refusal:
            read(prefix + json.dumps(thing("topology.volcano.sh/v1alpha1", "HyperNode")), "f")
        complaints.add(str(refusal.value))
    assert complaints == {"f: document 1 (HyperNode x): spec: is required"}
