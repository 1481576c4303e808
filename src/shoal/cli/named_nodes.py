"""Makes Node objects of machines that the command line names, for manifests that hold pods and no nodes.

The machines are those of `shoal up --nodes`, with the labels, taints and resources that they have there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.api.decode import Document
    from shoal.cli.manifests import Loaded

Machines = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes",
        metavar="FLEET",
        help="With -f: these machines instead of Node objects, as for `shoal up`: 8xp5.48xlarge,4xdgx-a100-80, or "
        "file.yaml; may be given several times.",
    ),
]
_OPTION = Where(path="--nodes")
EXAMPLE = "--nodes 8xp5.48xlarge"


def check_machines(nodes: Sequence[str] | None, filename: Sequence[str] | None) -> None:
    """Machines are named for manifests only; a cluster has nodes."""
    if nodes and not filename:
        raise UserError("is used with manifests only", where=_OPTION, fix="add -f PATH")


def with_machines(documents: Sequence[Document], nodes: Sequence[str] | None) -> list[Document]:
    """The documents with these machines as their only nodes; unchanged if no machines are named."""
    from shoal.api.node import Node

    if not nodes:
        return list(documents)
    others = [document for document in documents if not isinstance(document.value, Node)]
    return [*documents_of_machines(nodes), *others]


def documents_of_machines(nodes: Sequence[str]) -> list[Document]:
    """Node objects of these machines."""
    import msgspec

    from shoal.api.decode import Document, read
    from shoal.embedded.gpus.device_manager import DeviceManager
    from shoal.embedded.kubelets.node_object import amounts, node_of
    from shoal.embedded.machines.fleet_spec import read_fleet

    items = []
    for machine in read_fleet(",".join(nodes)):
        gpus = DeviceManager(machine)
        capacity, allocatable = amounts(machine, gpus)
        items.append({**node_of(machine, gpus), "status": {"capacity": capacity, "allocatable": allocatable}})
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "NodeList", "items": items})
    return [Document(each.value, Where(file="--nodes", obj=each.where.obj)) for each in read(listed)]


def no_nodes_warning(loaded: Loaded) -> list[str]:
    """What to do where pods wait and no node is known. Queues decide without nodes too."""
    if loaded.cluster.row_of or not loaded.manifests.waiting or loaded.queued is not None:
        return []
    return [f"the manifests hold no Node: add the nodes of a cluster, or name machines, for example {EXAMPLE}"]
