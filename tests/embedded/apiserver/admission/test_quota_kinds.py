"""What services, claims and any other object use of a quota."""

from __future__ import annotations

from build.charging import charged, quota, refused
from build.cluster_reader import Obj, creating, named, updating, world


def test_services_count_ports_and_load_balancers() -> None:
    reader = world(quota({"services": "9", "services.nodeports": "9", "services.loadbalancers": "9"}))
    service = named("Service", "web", spec={"type": "NodePort", "ports": [{"port": 80}, {"port": 443}]})
    assert charged(reader, creating(service)) == {
        "services": "1",
        "services.loadbalancers": "0",
        "services.nodeports": "2",
    }
    balanced = named("Service", "web", spec={"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 443}]})
    assert charged(reader, updating(service, balanced)) == {
        "services": "1",
        "services.loadbalancers": "1",
        "services.nodeports": "2",
    }
    inner = named("Service", "web", spec={"type": "ClusterIP", "ports": [{"port": 80}]})
    assert charged(reader, updating(balanced, inner))["services.nodeports"] == "0"


def claim(name: str, size: str, storage: str = "fast") -> Obj:
    return named(
        "PersistentVolumeClaim",
        name,
        spec={"storageClassName": storage, "resources": {"requests": {"storage": size}}},
    )


def test_claims_count_their_size_and_class_and_growing_is_charged() -> None:
    by_class = "fast.storageclass.storage.k8s.io/requests.storage"
    reader = world(quota({"persistentvolumeclaims": "9", "requests.storage": "10Gi", by_class: "4Gi"}))
    assert charged(reader, creating(claim("a", "3Gi"))) == {
        "persistentvolumeclaims": "1",
        "requests.storage": "3Gi",
        by_class: "3Gi",
    }
    assert f"exceeded quota: q, requested: {by_class}=2Gi, used: {by_class}=3Gi, limited: {by_class}=4Gi" in refused(
        reader, creating(claim("b", "2Gi"))
    )
    assert f"requested: {by_class}=2Gi" in refused(reader, updating(claim("a", "3Gi"), claim("a", "5Gi")))
    assert charged(reader, creating(claim("c", "5Gi", "slow")))["requests.storage"] == "8Gi"


def test_device_claims_count_the_largest_alternative_of_each_class() -> None:
    name = "gpu.deviceclass.resource.k8s.io/devices"
    reader = world(quota({name: "40", "count/resourceclaims.resource.k8s.io": "9"}))
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {
            "name": "b",
            "firstAvailable": [{"deviceClassName": "gpu", "count": 1}, {"deviceClassName": "gpu", "count": 3}],
        },
    ]
    made = named("ResourceClaim", "c", spec={"devices": {"requests": requests}})
    assert charged(reader, creating(made)) == {"count/resourceclaims.resource.k8s.io": "1", name: "5"}
    everything = {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    made = named("ResourceClaim", "d", spec={"devices": {"requests": [everything]}})
    assert charged(reader, creating(made))[name] == "37"


def test_any_object_can_be_counted() -> None:
    reader = world(quota({"count/deployments.apps": "1", "configmaps": "1"}))
    assert charged(reader, creating(named("ConfigMap", "a"))) == {"configmaps": "1", "count/deployments.apps": "0"}
    assert charged(reader, creating(named("Deployment", "web", spec={})))["count/deployments.apps"] == "1"
    assert refused(reader, creating(named("Deployment", "api", spec={}))) == (
        'deployments.apps "api" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: '
        "count/deployments.apps=1, limited: count/deployments.apps=1"
    )


def test_a_quota_that_became_too_small_stops_growth_and_nothing_else() -> None:
    reader = world(claim("a", "4Gi"), quota({"requests.storage": "2Gi"}))
    assert charged(reader, updating(claim("a", "4Gi"), claim("a", "3Gi"))) == {"requests.storage": "3Gi"}
    assert "used: requests.storage=3Gi, limited: requests.storage=2Gi" in refused(reader, creating(claim("b", "1Gi")))


def test_what_a_volume_controller_allocated_counts_though_it_is_too_much() -> None:
    reader = world(quota({"requests.storage": "2Gi"}))
    old = claim("a", "2Gi")
    charged(reader, creating(old))
    new = {**old, "status": {"allocatedResources": {"storage": "3Gi"}}}
    assert charged(reader, updating(old, new, "status")) == {"requests.storage": "3Gi"}


def test_a_load_balancer_may_do_without_node_ports() -> None:
    reader = world(quota({"services.nodeports": "9"}))
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    ports = [{"port": 80}, {"port": 443, "nodePort": 30443}]
    assert charged(reader, creating(named("Service", "web", spec={**spec, "ports": ports}))) == {
        "services.nodeports": "1"
    }
