"""Conditions of waiting pods that no node can meet, each with the place where it was written.

The pod waits and its reason says the same; but a typing error is easiest to mend with the file, the document and the
field at hand. Pods that err alike in one field make one line, because a backlog is often one template a thousand times.
A warning and no failure: a fleet that scales from zero may get the label later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.node_affinity import NodeRule
from shoal.api.pod import Pod, PodSpec
from shoal.engine.cluster import Cluster
from shoal.engine.respelling import unmatched_and_near
from shoal.engine.unmatched import Unmatched
from shoal.store.inventory import Placed
from shoal.units.errors import Where
from shoal.views.remedies import unmatched_words

_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def unmatched_selector_warnings(cluster: Cluster, waiting: Iterable[Placed[Pod]]) -> list[str]:
    """One line per condition and field."""
    if not cluster.alive[: cluster.rows].any():
        return []
    found: dict[NodeRule, tuple[Unmatched, ...]] = {}
    first: dict[tuple[Unmatched, str], Where] = {}
    more: dict[tuple[Unmatched, str], int] = {}
    for placed in waiting:
        rule = placed.value.spec.node_rule()
        if rule not in found:
            found[rule] = unmatched_and_near(cluster, rule)
        for condition in found[rule]:
            for path in dict.fromkeys(_paths(placed.value.spec, condition)):
                miss = condition, path
                first.setdefault(miss, placed.at(path))
                more[miss] = more.get(miss, -1) + 1
    return [_line(where, condition, more[condition, path]) for (condition, path), where in first.items()]


def _line(where: Where, condition: Unmatched, more: int) -> str:
    words = unmatched_words([condition])
    others = "" if not more else f" The same in {more:,} more {'pod' if more == 1 else 'pods'}."
    return f"{where}: {words[0].lower()}{words[1:]}{others}"


def _paths(spec: PodSpec, condition: Unmatched) -> Iterator[str]:
    """Where the pod says so."""
    place = Where(path="spec")
    if condition.key in spec.node_selector and condition.values == (spec.node_selector[condition.key],):
        yield place.below("nodeSelector").key(condition.key).path
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return
    for at, term in enumerate(affinity.required.node_selector_terms):
        for index, requirement in enumerate(term.match_expressions):
            if (requirement.key, requirement.values) == (condition.key, condition.values):
                yield place.below(f"{_TERMS}[{at}].matchExpressions[{index}]").path
