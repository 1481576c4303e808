"""Finds taints that keep a pod off nodes which could run it otherwise, so that a toleration would help.

kube-scheduler's words count such nodes and name no taint. Here nodes count that pass every other rule about labels and
models and are large enough when empty, each under all the taints that it would take to tolerate.

Left out are taints that Kubernetes sets and removes by itself: tolerating a node that is not ready gains nothing. The
taints of nodes with devices are meant to keep pods without devices off. They are named for such pods only if no other
node could run them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np
from msgspec import structs

from shoal.api.taints import HARD_EFFECTS, Taint, Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_notation.names import SHARING_TAINT
from shoal.engine.filters import STATIC_FILTERS
from shoal.engine.filters.rule import Rows
from shoal.engine.filters.shared_gpus import tolerations_of
from shoal.engine.reasons import Code

_DEVICES = frozenset({"gpu", "tpu"})
"""The last part of the keys by which vendors and clouds taint nodes with devices."""
_BY_ITSELF = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")


class RepellingTaint(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...]
    """To be tolerated together."""
    nodes: int


def repelling_taints(cluster: Cluster, ask: Ask) -> tuple[RepellingTaint, ...]:
    """Most nodes first."""
    repelled, has_others = _repelled(cluster, ask)
    counts = Counter(cluster.taints.code.take(repelled).tolist())
    found: Counter[tuple[Taint, ...]] = Counter()
    for at, nodes in counts.items():
        found[_missing(cluster.taints.sets[at], ask)] += nodes
    reported = [
        RepellingTaint(taints, nodes) for taints, nodes in found.items() if not any(map(_passes_by_itself, taints))
    ]
    if not _asks_for_devices(ask):
        plain = [one for one in reported if not any(map(_is_for_devices, one.taints))]
        reported = plain if plain or has_others else reported
    return tuple(sorted(reported, key=lambda one: (-one.nodes, tuple(map(str, one.taints)))))


def _repelled(cluster: Cluster, ask: Ask) -> tuple[Rows, bool]:
    """Nodes on which taints alone keep the ask off when they are empty, and whether it fits on any other empty node."""
    rows = cluster.alive[: cluster.rows].nonzero()[0]
    is_repelled = np.zeros(len(rows), bool)
    for rule in STATIC_FILTERS:
        verdicts = rule.passes(cluster, ask, rows)
        if verdicts is None:
            continue
        if rule.code is Code.TAINTED:
            is_repelled = ~verdicts
        else:
            rows, is_repelled = rows[verdicts], is_repelled[verdicts]
    need = cluster.charge(ask).need
    columns = (need > 0).nonzero()[0]
    is_large = (cluster.total[rows][:, columns] >= need[columns]).all(axis=1)
    return rows[is_large & is_repelled], bool((is_large & ~is_repelled).any())


def tolerating(ask: Ask, taints: Iterable[Taint]) -> Ask:
    """The same ask with these taints tolerated."""
    added = {Toleration(taint.key, "Equal", taint.value, taint.effect) for taint in taints}
    return structs.replace(ask, tolerations=tuple(sorted({*ask.tolerations, *added}, key=repr)))


def _missing(taints: tuple[Taint, ...], ask: Ask) -> tuple[Taint, ...]:
    hard = [taint for taint in taints if taint.effect in HARD_EFFECTS]
    return tuple(Taint(one.key, one.effect, one.value) for one in hard if not _is_tolerated(one, ask))


def _is_tolerated(taint: Taint, ask: Ask) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations_of(ask))


def _asks_for_devices(ask: Ask) -> bool:
    """The names of extended resources, such as those of MIG profiles, have a domain."""
    return ask.devices is not None or bool(ask.claims) or any("/" in name for name, _ in ask.requests)


def _is_for_devices(taint: Taint) -> bool:
    return taint.key == SHARING_TAINT or taint.key.rpartition("/")[2] in _DEVICES


def _passes_by_itself(taint: Taint) -> bool:
    return taint.key.startswith(_BY_ITSELF)
