"""The settings of the exporter."""

from __future__ import annotations

import msgspec

from shoal.devices.dcgm_fields import DEFAULT
from shoal.devices.dcgm_holders import HolderOptions
from shoal.devices.dcgm_selection import Selection
from shoal.devices.dcgm_text import LabelNames
from shoal.devices.names import GPU, SHARED_SUFFIX


class ExporterSettings(msgspec.Struct, frozen=True):
    hostname: str
    """Empty: without the label."""
    node_name: str = ""
    """The name of the pool in which a driver for resource claims publishes the node's devices."""
    selection: Selection = DEFAULT
    holders: HolderOptions = HolderOptions(has_virtual_gpus=True, resource_names=(f"{GPU}{SHARED_SUFFIX}",))
    labels: LabelNames = LabelNames()
    has_dashes: bool = False
    """Whether blanks in the names of GPU models are written as dashes."""
    interval_s: float = 1.0
    """Between two readings of a GPU, and between two lists of the kubelet."""
    listing_s: float = 30.0
    """Between two lists of the driver's GPUs; MIG layouts change rarely."""
    oldest_s: float = 10.0
    """A GPU whose last reading is older does not respond."""
    xid_window_ms: int = 300_000
    clock_window_ms: int = 300_000
