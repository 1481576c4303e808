"""How people write what they ask of devices and what nodes have: resource names, labels and annotations of several
ecosystems, read into one algebra.

Pure: strings in, values out. Contradictions are the writer's to mend and are refused with the field; what is only
unknown is left unknown.
"""

from shoal.engine.spelling.held_devices import HeldDevices, spots_of_pod
from shoal.engine.spelling.names import GPU
from shoal.engine.spelling.node_words import NodeDevices, layout_of_node
from shoal.engine.spelling.numa_zones import layout_with_zones
from shoal.engine.spelling.pod_words import MOST_GPUS, devices_of_pod
from shoal.engine.spelling.profiles import profile_fault, tiles_fault

__all__ = [
    "GPU",
    "MOST_GPUS",
    "HeldDevices",
    "NodeDevices",
    "devices_of_pod",
    "layout_of_node",
    "layout_with_zones",
    "profile_fault",
    "spots_of_pod",
    "tiles_fault",
]
