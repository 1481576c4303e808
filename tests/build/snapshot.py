"""All facts of a cluster as one comparable value.

`facts_of` is bit for bit, row by row: what a rolled-back trial must restore. `facts_by_name` forgets rows and order of
arrival: what two histories that mean the same must agree on. Caches (keys, worth columns, compiled asks) are no facts.
"""

from __future__ import annotations

from typing import Any

from shoal.engine.cluster import Cluster

Facts = dict[str, Any]


def facts_of(cluster: Cluster) -> Facts:
    rows = cluster.rows
    waiting = cluster.pending.in_order()
    return {
        "names": list(cluster.names),
        "row_of": dict(cluster.row_of),
        "free": cluster.free[:rows].tobytes(),
        "total": cluster.total[:rows].tobytes(),
        "planes": [plane[:rows].tobytes() for plane in cluster.devices.planes],
        "device_count": cluster.devices.count[:rows].tobytes(),
        "alive": cluster.alive[:rows].tobytes(),
        "unschedulable": cluster.unschedulable[:rows].tobytes(),
        "rank": cluster.rank[:rows].tobytes(),
        "labels": [cluster.labels.of(row) for row in range(rows)],
        "taint_set": cluster.taints.code[:rows].tobytes(),
        "ports": cluster.ports.in_use(),
        "claimed": (cluster.dra.usage.in_use(), cluster.dra.shared.in_use()),
        "gpu_free_milli": cluster.gpu_free_milli,
        "pods": {
            key: (
                h.row,
                h.ask,
                h.grant,
                h.priority,
                h.turn,
                h.is_bound,
                h.daemon_set,
                h.who,
                h.is_terminating,
                h.is_nominated,
            )
            for key, h in cluster.pods.items()
        },
        "terminating": sorted(cluster.terminating),
        "nominated": sorted(cluster.nominated),
        "gangs": {
            g.name: (
                g.facts,
                g.fault,
                g.turn,
                sorted(g.waiting),
                sorted(g.running),
                [(part, list(nodes)) for part, nodes in g.was_on.items()],
            )
            for g in cluster.gangs
        },
        "pods_on": {row: sorted(cluster.pods_on(row)) for row in range(rows)},
        "waiting": [(key, cluster.pending[key]) for key in waiting],
    }


def facts_by_name(cluster: Cluster) -> Facts:
    names = cluster.names
    resources = sorted(cluster.resources.names.items(), key=lambda item: item[1])
    return {
        "nodes": {
            name: {
                "free": {resource: int(cluster.free[row, column]) for column, resource in resources},
                "total": {resource: int(cluster.total[row, column]) for column, resource in resources},
                "pieces": cluster.devices.free(row)[: int(cluster.devices.count[row])],
                "labels": cluster.labels.of(row),
                "taints": cluster.taints.of(row),
                "unschedulable": bool(cluster.unschedulable[row]),
                "rank": int(cluster.rank[row]),
            }
            for name, row in sorted(cluster.row_of.items())
        },
        "ports": {
            port: {names[row]: ips for row, ips in by_row.items()} for port, by_row in cluster.ports.in_use().items()
        },
        "claimed": (cluster.dra.usage.in_use(), cluster.dra.shared.in_use()),
        "gpu_free_milli": cluster.gpu_free_milli,
        "pods": {key: (names[h.row], h.ask, h.grant) for key, h in sorted(cluster.pods.items())},
        "waiting": sorted(cluster.pending.in_order()),
    }
