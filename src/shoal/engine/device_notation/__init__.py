"""Parses the notations of several ecosystems for device requests and devices of nodes (resource names, labels,
annotations) to one form.

Pure: strings in, values out. Contradictions are the writer's to mend and are refused with the field; what is only
unknown is left unknown.
"""

from shoal.devices.device_ids import ids_in, replica_id
from shoal.engine.device_notation.held_devices import HeldDevices, device_names, devices_fault, positions_of_pod
from shoal.engine.device_notation.mig_profiles import profile_fault, tiles_fault
from shoal.engine.device_notation.names import GPU
from shoal.engine.device_notation.node_devices import NodeDevices, layout_of_node
from shoal.engine.device_notation.node_ids import UNKNOWN_IDS, NodeIds, node_ids, topology_fault
from shoal.engine.device_notation.numa_zones import layout_with_zones
from shoal.engine.device_notation.pod_devices import MOST_GPUS, devices_of_pod

__all__ = [
    "GPU",
    "MOST_GPUS",
    "UNKNOWN_IDS",
    "HeldDevices",
    "NodeDevices",
    "NodeIds",
    "device_names",
    "devices_of_pod",
    "ids_in",
    "layout_of_node",
    "layout_with_zones",
    "node_ids",
    "profile_fault",
    "replica_id",
    "devices_fault",
    "positions_of_pod",
    "tiles_fault",
    "topology_fault",
]
