"""Converts Kubernetes objects to the engine's values: a pod's request and identity, a node's facts, gangs, topologies,
budgets.

Objects are taken as the api package hands them over, checked. Refused here is what only the engine knows to be
impossible; every complaint names the object and the field, and the reader of the file adds its place.
"""

from shoal.engine.device_notation import GPU, MOST_GPUS
from shoal.engine.from_api.budgets import budget_facts_of
from shoal.engine.from_api.gang_objects import GangReader, check_kai_part, volcano_part
from shoal.engine.from_api.held import ids_of_nodes, positions_of_pods
from shoal.engine.from_api.hyper_tree import HyperTree
from shoal.engine.from_api.membership import least_of_label
from shoal.engine.from_api.nodes import POD_SLOTS, node_facts_of
from shoal.engine.from_api.pod_identity import identity_metadata, volcano_queue, who_of_pod
from shoal.engine.from_api.pods import ask_of_pod, daemon_set_ask
from shoal.engine.from_api.priorities import Priorities, Rank
from shoal.engine.from_api.topologies import Topologies

__all__ = [
    "GPU",
    "GangReader",
    "HyperTree",
    "MOST_GPUS",
    "POD_SLOTS",
    "Priorities",
    "Rank",
    "Topologies",
    "ask_of_pod",
    "budget_facts_of",
    "check_kai_part",
    "daemon_set_ask",
    "ids_of_nodes",
    "least_of_label",
    "node_facts_of",
    "positions_of_pods",
    "identity_metadata",
    "volcano_part",
    "volcano_queue",
    "who_of_pod",
]
