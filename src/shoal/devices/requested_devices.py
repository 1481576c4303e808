"""Checks the device ids that a kubelet asks the device plugin to allocate to one container."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal

import msgspec

from shoal.devices.device_ids import number_of_replica
from shoal.devices.plugin_config import PluginConfig


class InvalidRequest(msgspec.Struct, frozen=True):
    message: str
    """In the plugin's words."""
    refusal: Literal["unknown-device", "more-than-one-shared"]


def request_problem(ids: Sequence[str], known: Container[str], config: PluginConfig) -> InvalidRequest | None:
    """None: the plugin allocates the devices. `known`: the ids of the resource."""
    unknown = next((one for one in ids if one not in known), None)
    if unknown is not None:
        return InvalidRequest(f"invalid request: unknown device: {unknown}", "unknown-device")
    if config.one_per_request and len(ids) > 1 and any(number_of_replica(one) for one in ids):
        what = f"invalid request: maximum request size for shared resources is 1; found {len(ids)}"
        return InvalidRequest(what, "more-than-one-shared")
    return None
