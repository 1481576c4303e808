"""Node plans for pods with resource claims, and the nodes that the simulated machines of a plan would be.

The machines publish their devices by the code of the node agent, so they are an oracle for the devices that plans
expect of nodes that do not exist yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from build.claimable import claimable_driver
from build.gpu_pods import device_manager
from build.manifests import Object, node, thing
from shoal.api.decode import read
from shoal.api.pod import Pod
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.devices.claimable_devices import ClaimableInput, claimable_devices
from shoal.devices.device_classes import device_classes
from shoal.devices.names import OWN_DRA
from shoal.devices.resource_slices import Published, partitions_of, slice_specs
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.inventory import Inventory
from shoal.store.manifest_cluster import manifest_cluster_of
from shoal.store.node_planning import NodeScaling, ScalingOptions, search_removal, undecided_scaling
from shoal.store.planned_devices import KnownDevices

V1 = "resource.k8s.io/v1"
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
CLASSES = tuple(thing(V1, "DeviceClass", "x") | one for one in device_classes())
DYNAMIC = "dynamic-mig"


def node_pool(name: str, *types: str, label: str = "true", **labels: str) -> Object:
    """`label`: of the pool's nodes; empty for none."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"requirements": requirements, "nodeClassRef": reference}
    meta = {"labels": {**({OWN_DRA: label} if label else {}), **labels}}
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    return thing(
        "karpenter.sh/v1",
        "NodePool",
        name,
        spec={"template": {"metadata": meta, "spec": spec}, "disruption": disruption},
    )


def machine_slices(name: str, machine: str, label: str = "true", mig: str = "") -> list[Object]:
    """What the node agent publishes on a node that is such a machine."""
    cut = "mig=dynamic" if label == DYNAMIC else f"mig={mig}" if mig else ""
    driver = claimable_driver(device_manager(f"{machine}[{','.join(filter(None, ['dra', cut]))}]"))
    given = ClaimableInput(driver.versions(), driver.gpus().gpus)
    whole = Published(tuple(one.described for one in claimable_devices(given)))
    content = partitions_of(given) if label == DYNAMIC else whole
    specs = slice_specs(name, content, 1)
    return [thing(V1, "ResourceSlice", f"{name}-{number}", spec=spec) for number, spec in enumerate(specs)]


def machine_node(name: str, pool: str, machine: str, label: str = "true", *, is_ready: bool = True) -> Object:
    labels = {
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/registered": "true",
        **({"karpenter.sh/initialized": "true"} if is_ready else {}),
        "node.kubernetes.io/instance-type": machine,
        "topology.kubernetes.io/zone": "us-east-1a",
        "kubernetes.io/hostname": name,
        **({OWN_DRA: label} if label else {}),
    }
    made = node(name, cpu=90, labels=labels)
    made["metadata"]["creationTimestamp"] = "2026-11-27T11:59:00Z"
    made["status"]["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    return made


def template(name: str, *requests: Object, **more: object) -> Object:
    spec = {"devices": {"requests": list(requests), **more}}
    return thing(V1, "ResourceClaimTemplate", name, spec={"spec": spec})


def claim(name: str, *requests: Object) -> Object:
    return thing(V1, "ResourceClaim", name, spec={"devices": {"requests": list(requests)}})


def wants(count: int = 1, *expressions: str, of: str = "gpu.nvidia.com", name: str = "gpu", **more: object) -> Object:
    chosen = [{"cel": {"expression": each}} for each in expressions]
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, "selectors": chosen, **more}}


def decided(objects: Iterable[Object]) -> tuple[Inventory, Cluster, dict[str, Pod]]:
    """The scheduler's decision, and the pods that it left waiting."""
    documents = list(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "w"))
    cluster = Cluster()
    intake = Intake(cluster)
    for event in manifest_cluster_of(documents).events:
        intake.apply(event)
    cycle(cluster, Placement(cluster, profile_named(DEFAULT_POLICY, cluster, PodMix())), now_s=0.0, seed=0)
    inventory = Inventory(documents)
    pods = {each.value.metadata.key: each.value for each in inventory.of(Pod) if not each.value.spec.node_name}
    return inventory, cluster, pods


def scaling_of(
    *objects: Object, removes: bool = False, known: KnownDevices | None = None, now: datetime = NOW
) -> tuple[NodeScaling, PlanningInput]:
    """What the planning depends on, and with `removes` what is removed. `known`: from earlier plannings."""
    inventory, cluster, pods = decided(objects)
    settings = PlanningSettings(packing="LeastCost")
    options = ScalingOptions(types_for_pool, now, settings, devices=known or KnownDevices())
    scaling, given = undecided_scaling(inventory, cluster, pods, {}, options)
    if removes:
        search_removal(scaling, given, inventory, cluster, options)
    return scaling, given


def plan_of(*objects: Object) -> NodePlan:
    return NodePlanner(scaling_of(*objects)[1]).plan()
