"""Lists the pods that still wait, with the most informative cause of each.

A pod's code is the cause that turned most of the nodes away that the pod's own conditions allow: `NoNodeFits` alone
would send every user to the evidence, and nodes of another model say nothing of why the selected ones are not free. A
gang that does not run is reported as one; the pods of a running gang beyond its minimum are reported one by one.
"""

from __future__ import annotations

from shoal.engine.cluster import Cluster
from shoal.engine.gangs.attempt import is_running


def waiting_gangs(cluster: Cluster) -> list[str]:
    """Gangs that lack pods they need to run."""
    return [gang.name for gang in cluster.gangs if gang.waiting and not is_running(cluster, gang)]


def waiting_pods(cluster: Cluster, gangs: list[str]) -> list[str]:
    """Pods of none of these gangs, in the order in which they are tried."""
    short = set(gangs)
    pending = cluster.pending
    return [pod for pod in pending.in_order() if pending[pod].who.group not in short]
