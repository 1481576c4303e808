"""Adds the environment variables that processes of a distributed job need to find each other.

A pod requests them with the annotation `shoal.dev/rendezvous: "true"`. The values are known when the pod is bound; the
scheduler writes them as annotations, and the variables, which must exist from the pod's creation, refer to these. A
variable that a container sets itself stays.

Rejected: values in the pod's spec. They are not known yet when it is created, and a spec cannot be changed later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ASKS = "shoal.dev/rendezvous"
VARIABLES = {
    "RANK": "shoal.dev/rank",
    "WORLD_SIZE": "shoal.dev/world-size",
    "NODE_RANK": "shoal.dev/node-rank",
    "MASTER_ADDR": "shoal.dev/master-addr",
    "MASTER_PORT": "shoal.dev/master-port",
    "SHOAL_NODES": "shoal.dev/nodes",
    "SHOAL_TOPOLOGY": "shoal.dev/nccl-topology",
    # The variables of torchrun, one process of which runs in each pod.
    "PET_NNODES": "shoal.dev/world-size",
    "PET_NODE_RANK": "shoal.dev/node-rank",
    "PET_MASTER_ADDR": "shoal.dev/master-addr",
    "PET_MASTER_PORT": "shoal.dev/master-port",
}
"""The name of each variable, with the annotation that has its value."""


def is_asked(annotations: Mapping[str, str]) -> bool:
    return annotations.get(ASKS) == "true"


def variables_of(present: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The variables of a container with the given ones: Shoal's first, because others may refer to them."""
    taken = {one.get("name") for one in present}
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}}
        for name, annotation in VARIABLES.items()
        if name not in taken
    ]
