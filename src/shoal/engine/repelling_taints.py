"""Finds taints that keep a pod off nodes which could run it otherwise, so that a toleration would help.

kube-scheduler's words count such nodes and name no taint. Here nodes count that pass every other rule about labels and
models and are large enough when empty, each under all the taints that it would take to tolerate.

Left out are pods without devices, which these taints are mostly meant for, and taints that Kubernetes sets and removes
by itself: tolerating a node that is not ready gains nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec import structs

from shoal.api.taints import HARD_EFFECTS, Taint, Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters import STATIC_FILTERS
from shoal.engine.filters.shared_gpus import tolerations_of
from shoal.engine.reasons import Code

_BY_ITSELF = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")


class RepellingTaint(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...]
    """To be tolerated together."""
    nodes: int


def repelling_taints(cluster: Cluster, ask: Ask) -> tuple[RepellingTaint, ...]:
    """Most nodes first."""
    if ask.devices is None and not ask.claims:
        return ()
    rows = cluster.alive[: cluster.rows].nonzero()[0]
    for rule in STATIC_FILTERS:
        verdicts = rule.passes(cluster, ask, rows)
        if verdicts is not None:
            rows = rows[~verdicts] if rule.code is Code.TAINTED else rows[verdicts]
        elif rule.code is Code.TAINTED:
            return ()
    need = cluster.charge(ask).need
    columns = (need > 0).nonzero()[0]
    rows = rows[(cluster.total[rows][:, columns] >= need[columns]).all(axis=1)]
    counts = Counter(cluster.taints.code.take(rows).tolist())
    found: Counter[tuple[Taint, ...]] = Counter()
    for at, nodes in counts.items():
        found[_missing(cluster.taints.sets[at], ask)] += nodes
    reported = [
        RepellingTaint(taints, nodes) for taints, nodes in found.items() if not any(map(_passes_by_itself, taints))
    ]
    return tuple(sorted(reported, key=lambda one: (-one.nodes, tuple(map(str, one.taints)))))


def tolerating(ask: Ask, taints: Iterable[Taint]) -> Ask:
    """The same ask with these taints tolerated."""
    added = {Toleration(taint.key, "Equal", taint.value, taint.effect) for taint in taints}
    return structs.replace(ask, tolerations=tuple(sorted({*ask.tolerations, *added}, key=repr)))


def _missing(taints: tuple[Taint, ...], ask: Ask) -> tuple[Taint, ...]:
    hard = [taint for taint in taints if taint.effect in HARD_EFFECTS]
    return tuple(Taint(one.key, one.effect, one.value) for one in hard if not _is_tolerated(one, ask))


def _is_tolerated(taint: Taint, ask: Ask) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations_of(ask))


def _passes_by_itself(taint: Taint) -> bool:
    return taint.key.startswith(_BY_ITSELF)
