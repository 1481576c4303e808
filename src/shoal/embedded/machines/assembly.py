"""Builds a machine from its description: labels of kubelet and cloud, capacity, and allocatable resources."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.devices.mig_demand import DYNAMIC
from shoal.devices.mig_gpus import changes_mode_by_reset
from shoal.devices.names import OWN_MIG_LAYOUT, OWN_NUMA_POLICY
from shoal.devices.nvlink import nvlink_labels
from shoal.devices.port import Fabric
from shoal.embedded.machines.fleet_entry import FleetEntry
from shoal.embedded.machines.installed_gpus import gpu_slots, identity
from shoal.embedded.machines.machine import Machine
from shoal.embedded.machines.machine_topology import MachineTopology
from shoal.embedded.machines.shape import MachineShape

MACHINE = "nvidia.com/gpu.machine"
CLIQUE = "nvidia.com/gpu.clique"
_ALL_ENABLED = "all-enabled"
_PODS = 110
_KIB = 1024
_EVICTION_MIB = 100
_SYSTEM_MIB = 255 + 11 * _PODS
_ROOT_LEFT = 0.9


def machine(name: str, entry: FleetEntry, place: MachineTopology) -> Machine:
    shape = entry.shape
    slots = gpu_slots(name, shape)
    cuttable = (model := shape.gpu_model()) is not None and bool(model.mig)
    return Machine(
        name=name,
        profile=shape.name,
        labels={**_labels(name, entry, place), **_on_demand(entry), **entry.labels},
        capacity=_capacity(shape),
        allocatable={**_capacity(shape), **_left(shape)},
        gpus=slots,
        annotations={**({OWN_NUMA_POLICY: entry.numa_policy} if entry.numa_policy else {}), **entry.annotations},
        taints=entry.taints,
        node_info=_node_info(name, shape),
        machine_type=entry.labels.get(MACHINE) or shape.machine or shape.name,
        fabric=_fabric(entry, place),
        provider_id=_provider_id(name, shape, place),
        mig_strategy=entry.mig_strategy or ("mixed" if cuttable else "none"),
        mig_config=_first_layout(entry),
        sharing=entry.sharing,
        gives_by_claims=entry.gives_by_claims,
        has_dynamic_mig=entry.gives_by_claims and entry.mig_config == DYNAMIC,
        gpu_software=entry.gpu_software or "included",
        is_spot=entry.is_spot,
        usd_per_hour=shape.spot_usd_per_hour if entry.is_spot else shape.usd_per_hour,
    )


def _on_demand(entry: FleetEntry) -> Mapping[str, str]:
    """The label is for the scheduler's own choice of instances; claims choose among published ones."""
    return {OWN_MIG_LAYOUT: DYNAMIC} if entry.mig_config == DYNAMIC and not entry.gives_by_claims else {}


def _first_layout(entry: FleetEntry) -> str:
    if entry.mig_config != DYNAMIC:
        return entry.mig_config
    model = entry.shape.gpu_model()
    facts = model.mig_layout() if model is not None else None
    # Without MIG mode, such a GPU could offer no instance to claims.
    needs_mode = entry.gives_by_claims and facts is not None and changes_mode_by_reset(facts.compute_capability)
    return _ALL_ENABLED if needs_mode else ""


def _labels(name: str, entry: FleetEntry, place: MachineTopology) -> Mapping[str, str]:
    shape = entry.shape
    found = {
        "beta.kubernetes.io/arch": shape.arch,
        "beta.kubernetes.io/instance-type": shape.name,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": shape.arch,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": shape.name,
        **place.labels(),
        **_terms(shape.provider, is_spot=entry.is_spot),
    }
    if shape.gpus:
        found |= nvlink_labels(shape.islands)
    return found


def _fabric(entry: FleetEntry, place: MachineTopology) -> Fabric | None:
    """A label of the machine's description comes before the rack."""
    cluster, _, clique = entry.labels.get(CLIQUE, "").rpartition(".")
    if cluster:
        return Fabric(cluster, clique)
    return Fabric(str(identity(place.rack, "nvlink")), "1") if entry.shape.rack_is_island else None


def _terms(provider: str, *, is_spot: bool) -> Mapping[str, str]:
    """The labels of the capacity type, as Karpenter and the cloud set them."""
    if not provider and not is_spot:
        return {}
    found = {"karpenter.sh/capacity-type": "spot" if is_spot else "on-demand"}
    match provider:
        case "aws":
            found["eks.amazonaws.com/capacityType"] = "SPOT" if is_spot else "ON_DEMAND"
        case "gcp" if is_spot:
            found["cloud.google.com/gke-spot"] = "true"
        case "azure" if is_spot:
            found["kubernetes.azure.com/scalesetpriority"] = "spot"
        case _:
            pass
    return found


def _capacity(shape: MachineShape) -> dict[str, str]:
    return {
        "cpu": str(shape.cpus),
        "memory": f"{shape.memory_mib * _KIB}Ki",
        "ephemeral-storage": f"{shape.storage_gb * 10**9 // _KIB}Ki",
        "pods": str(_PODS),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        **shape.extras,
    }


def _left(shape: MachineShape) -> dict[str, str]:
    """The allocatable resources on managed services: they reserve a part of the cores that decreases with their number,
    and some memory.
    """
    reserved = sum(share for core, share in enumerate((60, 10, 5, 5)) if core < shape.cpus)
    reserved += max(shape.cpus - 4, 0) * 5 // 2
    memory = max(shape.memory_mib - min(_SYSTEM_MIB, shape.memory_mib // 8) - _EVICTION_MIB, 1)
    return {
        "cpu": f"{shape.cpus * 1000 - reserved}m",
        "memory": f"{memory * _KIB}Ki",
        "ephemeral-storage": str(int(shape.storage_gb * 10**9 * _ROOT_LEFT)),
    }


def _node_info(name: str, shape: MachineShape) -> Mapping[str, str]:
    return {
        "architecture": shape.arch,
        "bootID": str(identity(name, "boot")),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.8.0-1040-generic",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.36.0",
        "machineID": identity(name, "machine").hex,
        "operatingSystem": "linux",
        "osImage": "Ubuntu 24.04.3 LTS",
        "systemUUID": str(identity(name, "system")),
    }


def _provider_id(name: str, shape: MachineShape, place: MachineTopology) -> str:
    match shape.provider:
        case "aws":
            return f"aws:///{place.zone}/i-{identity(name, 'instance').hex[:17]}"
        case "gcp":
            return f"gce://shoal/{place.zone}/{name}"
        case "azure":
            return (
                f"azure:///subscriptions/{identity('shoal', 'subscription')}/resourceGroups/shoal"
                f"/providers/Microsoft.Compute/virtualMachines/{name}"
            )
        case _:
            return ""
