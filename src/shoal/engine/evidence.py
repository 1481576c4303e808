"""Collects why nodes are not feasible, for all nodes at once and only on request.

Nodes are counted the way kube-scheduler counts them. A rule about names, labels, taints, models or ports ends the
matter for a node, so it counts under the first such rule it fails; a node that passes them counts under *every*
resource it lacks; one that lacks nothing, under the first rule about other pods that it fails, and if there is none,
under the first about claims. The nearest node is the one that lacks least of all these in proportion to what is asked,
and a node that could hold the pod if it were empty is nearer than any that never could: about the former there is
something to wait for.

Rejected: counting while placing. A backlog is refused again and again, and the reasons are rarely read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.domain_counts.all_counts import LabelKey
from shoal.engine.domains.refusals import rule_refusals
from shoal.engine.filters import NODE_FILTERS, STATIC_FILTERS
from shoal.engine.filters.rule import Measure, MeasuringFilter, NodeFilter, Rows, StaticFilter, Verdicts
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, GPU_REPLICAS, Cause, Code, Evidence, Shortfall
from shoal.engine.repelling_taints import RepellingTaint, repelling_taints, tolerating
from shoal.engine.window import Window

Tally = Counter[tuple[Code, str]]

_BEFORE_CAPACITY = frozenset({Code.PORTS})
_ABOUT_CLAIMS = frozenset({Code.CLAIM_UNUSABLE, Code.CLAIM_ELSEWHERE, Code.CLAIMS})
_OWN_CONDITIONS = frozenset({Code.NODE_NAME, Code.AFFINITY, Code.GPU_MODEL})
"""By which the pod itself excludes nodes."""
_MOST_TAINTS = 3
"""Sets of taints that are tried."""
_DEVICE_UNITS = {facts.GPU_WHOLE: EMPTY_GPUS, facts.GPU_BEST: GPU_PIECE}


class Evidences:
    """Evidence as of now, gathered once per ask and kin and version of the facts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = -1
        self._known: dict[tuple[Ask, LabelKey], Evidence] = {}

    def of(self, ask: Ask, who: PodIdentity = NO_IDENTITY) -> Evidence:
        if self._version != self._cluster.version:
            self._known.clear()
            self._version = self._cluster.version
        like = ask, self._cluster.counts.label_key(who.traits)
        found = self._known.get(like)
        if found is None:
            found = self._known[like] = evidence(self._cluster, ask, who)
        return found


def evidence(cluster: Cluster, ask: Ask, who: PodIdentity = NO_IDENTITY) -> Evidence:
    """Why the ask fits on no node, or on which few it does."""
    need = cluster.charge(ask).need
    live = cluster.alive[: cluster.rows].nonzero()[0]
    domain_count: Tally = Counter()
    rows = live
    refused: list[tuple[StaticFilter, Rows]] = []
    for rule in STATIC_FILTERS:
        verdicts = rule.passes(cluster, ask, rows)
        if verdicts is not None:
            refused.append((rule, rows[~verdicts]))
            rows = rows[verdicts]
    for rule, failing in refused:
        _count_static(cluster, ask, rule, failing, domain_count)
    lacks = _Lacks(cluster, ask, need, rows)
    lacks.add_pod_rules(rule_refusals(cluster, ask, who, rows))
    lacking: Tally = Counter()
    lacks.count(lacking)
    domain_count.update(lacking)
    nearest, shortfalls = lacks.nearest()
    causes = _causes(domain_count)
    main = next(iter(_causes(_on_allowed_nodes(cluster, ask, refused, lacking))), None) or next(iter(causes), None)
    return Evidence(len(live), causes, lacks.fitting, nearest, shortfalls, main)


def helpful_taints(cluster: Cluster, ask: Ask, who: PodIdentity = NO_IDENTITY) -> tuple[RepellingTaint, ...]:
    """Taints that, if they were tolerated, would leave a node on which the ask fits now."""
    found = repelling_taints(cluster, ask)[:_MOST_TAINTS]
    return tuple(each for each in found if evidence(cluster, tolerating(ask, each.taints), who).fitting)


def feasible_rows(cluster: Cluster, ask: Ask, rows: Rows) -> Rows:
    """Those of the rows that the rules about names, labels, taints and models let through."""
    for rule in STATIC_FILTERS:
        verdicts = rule.passes(cluster, ask, rows)
        if verdicts is not None:
            rows = rows[verdicts]
    return rows


def _causes(domain_count: Tally) -> tuple[Cause, ...]:
    causes = (Cause(code, detail, nodes) for (code, detail), nodes in domain_count.items())
    return tuple(sorted(causes, key=_commonest_first))


def _on_allowed_nodes(cluster: Cluster, ask: Ask, refused: list[tuple[StaticFilter, Rows]], lacking: Tally) -> Tally:
    """Only the nodes that the pod's own conditions allow. A node that another rule turned away first may be excluded
    by these as well. `lacking`: nodes that passed all the rules about names, labels, taints and models."""
    found: Tally = Counter(lacking)
    own_rules = [rule for rule in STATIC_FILTERS if rule.code in _OWN_CONDITIONS]
    for rule, failing in refused:
        allowed = failing if rule not in own_rules else failing[:0]
        for own in own_rules if len(allowed) else ():
            verdicts = own.passes(cluster, ask, allowed)
            allowed = allowed if verdicts is None else allowed[verdicts]
        _count_static(cluster, ask, rule, allowed, found)
    return found


def _commonest_first(cause: Cause) -> tuple[int, Code, str]:
    return -cause.nodes, cause.code, cause.detail


def _count_static(cluster: Cluster, ask: Ask, rule: StaticFilter, failing: Rows, domain_count: Tally) -> None:
    """What a rule names can differ between nodes only through their taints: ask it once per set of taints."""
    _, first, counts = np.unique(cluster.taints.code.take(failing), return_index=True, return_counts=True)
    for row, count in zip(failing[first].tolist(), counts.tolist(), strict=True):
        domain_count[rule.code, rule.detail(cluster, ask, row)] += count


class _Lacks:
    """What each of the rows lacks, one column per thing asked for."""

    def __init__(self, cluster: Cluster, ask: Ask, need: NDArray[np.int64], rows: Rows) -> None:
        self._cluster = cluster
        self._ask = ask
        self._rows = rows
        self._columns = (need > facts.NEVER_LACKING).nonzero()[0]
        self._need = need[self._columns]
        self._free = cluster.free[np.ix_(rows, self._columns)]
        self._total = cluster.total[np.ix_(rows, self._columns)]
        self._short: Verdicts = self._free < self._need
        self._refused: list[tuple[NodeFilter, Verdicts]] = []
        self._measures: dict[Code, Measure | None] = {}
        window = Window(cluster, rows)
        for rule in NODE_FILTERS:
            passes = rule.compiled(cluster, ask)
            verdicts = None if passes is None else passes(window)
            if verdicts is not None:
                self._refused.append((rule, ~verdicts))
                if isinstance(rule, MeasuringFilter):
                    self._measures[rule.code] = rule.measure(cluster, ask, rows)
        self._pod_rules: list[tuple[Code, Verdicts]] = []
        self._lacking = self._short.sum(axis=1)
        for _, refused in self._refused:
            self._lacking += refused

    def add_pod_rules(self, rule_refusals: list[tuple[Code, Verdicts]]) -> None:
        """Take rules about other pods into account."""
        for code, refused in rule_refusals:
            self._pod_rules.append((code, refused))
            self._lacking += refused

    @property
    def fitting(self) -> int:
        return int(np.count_nonzero(self._lacking == 0))

    def count(self, domain_count: Tally) -> None:
        """Stage by stage: a node that one of them turns away is not asked in the next."""
        left = self._count_first(domain_count, _BEFORE_CAPACITY, np.ones(len(self._rows), np.bool_))
        left = self._count_capacity(domain_count, left)
        for code, refused in self._pod_rules:
            # Of these, each has only what those before it let through.
            nodes = int(np.count_nonzero(refused & left))
            if nodes:
                domain_count[code, ""] += nodes
        for _, refused in self._pod_rules:
            left &= ~refused
        self._count_first(domain_count, _ABOUT_CLAIMS, left)

    def _count_capacity(self, domain_count: Tally, left: Verdicts) -> Verdicts:
        """Under all that a node lacks; which nodes lack nothing."""
        short = self._short & left[:, None]
        for place, nodes in enumerate(short.sum(axis=0).tolist()):
            others = int(np.count_nonzero(short[:, place] & self._other_words(place))) if nodes else 0
            if nodes > others:
                domain_count[self._cause(place)] += nodes - others
            if others:
                domain_count[self._cause(place, other=True)] += others
        sufficient = left & ~short.any(axis=1)
        for rule, refused in self._refused:
            if rule.code not in _BEFORE_CAPACITY and rule.code not in _ABOUT_CLAIMS:
                self._count(domain_count, rule, refused & left)
                sufficient &= ~refused
        return sufficient

    def _count_first(self, domain_count: Tally, codes: Collection[Code], left: Verdicts) -> Verdicts:
        """Under the first of these rules that a node fails; which nodes pass them all."""
        for rule, refused in self._refused:
            if rule.code in codes:
                self._count(domain_count, rule, refused & left)
                left = left & ~refused
        return left

    def _count(self, domain_count: Tally, rule: NodeFilter, refused: Verdicts) -> None:
        failing = self._rows[refused]
        if len(failing):
            domain_count[rule.code, rule.detail(self._cluster, self._ask, int(failing[0]))] += len(failing)

    def nearest(self) -> tuple[str, tuple[Shortfall, ...]]:
        if len(self._rows) == 0:
            return "", ()
        hopeless = (self._total < self._need).any(axis=1)
        gap, never = np.zeros(len(self._rows)), np.zeros(len(self._rows))
        for place, asked in enumerate(self._need.tolist()):
            gap += np.where(self._short[:, place], (asked - self._free[:, place]) / asked, 0.0)
            never += np.maximum(asked - self._total[:, place], 0) / asked
        for rule, refused in self._refused:
            measure = self._measures.get(rule.code)
            if measure is None:
                gap += refused
            else:
                gap += np.where(refused, (measure.asked - measure.free) / measure.asked, 0.0)
                never += np.maximum(measure.asked - measure.total, 0) / measure.asked
                # Also where another rule spoke first: GPUs that lie apart stay apart when all of them are free.
                hopeless |= measure.total < measure.asked
        for _, refused in self._pod_rules:
            gap += refused
        # Of nodes on which equally little is free, the one that has most when it is empty.
        line = int(np.lexsort((self._cluster.rank.take(self._rows), self._lacking, never, gap, hopeless))[0])
        return self._cluster.names[int(self._rows[line])], self._shortfalls(line)

    def _shortfalls(self, line: int) -> tuple[Shortfall, ...]:
        lacking = [
            Shortfall(
                self._unit(place, other=bool(self._other_words(place)[line])),
                int(self._need[place]),
                int(self._free[line, place]),
                int(self._total[line, place]),
                self._cause(place, other=bool(self._other_words(place)[line]))[0],
            )
            for place in self._short[line].nonzero()[0].tolist()
        ]
        row = int(self._rows[line])
        for rule, refused in self._refused:
            measure = self._measures.get(rule.code)
            never = measure is not None and int(measure.total[line]) < measure.asked
            if measure is not None and measure.unit and (refused[line] or never):
                free, total = int(measure.free[line]), int(measure.total[line])
                lacking.append(Shortfall(measure.unit, measure.asked, free, total, rule.code))
            elif refused[line]:
                lacking.append(Shortfall(rule.detail(self._cluster, self._ask, row), 1, 0, 1, rule.code))
        lacking.extend(Shortfall("", 1, 0, 1, code) for code, refused in self._pod_rules if refused[line])
        return tuple(lacking)

    def _other_words(self, place: int) -> Verdicts:
        """Rows on which a column means something else: replicas for GPUs, places for MIG instances."""
        column = int(self._columns[place])
        odd = self._cluster.devices.odd
        if column == facts.GPU_WHOLE:
            # Renamed replicas are not what was asked for: such a node has no GPUs to speak of.
            rows = [row for row, layout in odd.items() if layout.is_replicated() and not layout.renamed]
        elif column >= facts.FIRST_EXTENDED and self._cluster.resources.names[column].startswith(RESOURCE_PREFIX):
            rows = [row for row, layout in odd.items() if layout.mig]
        else:
            rows = []
        return np.isin(self._rows, rows)

    def _cause(self, place: int, *, other: bool = False) -> tuple[Code, str]:
        column = int(self._columns[place])
        if column == facts.PODS:
            return Code.TOO_MANY_PODS, ""
        asked = int(self._need[place])
        if column == facts.GPU_WHOLE and other:
            return Code.NO_DEVICE, f"{asked} free {GPU_REPLICAS}" if asked > 1 else "a free GPU replica"
        if column == facts.GPU_WHOLE:
            return Code.NO_DEVICE, "an empty GPU" if asked == 1 else f"{asked} {EMPTY_GPUS}"
        if column == facts.GPU_BEST:
            return Code.NO_DEVICE, f"a GPU with {asked} thousandths free"
        if other:
            return Code.NO_MIG_PLACE, f"{asked} x {self._cluster.resources.names[column].removeprefix(RESOURCE_PREFIX)}"
        return Code.INSUFFICIENT, self._unit(place)

    def _unit(self, place: int, *, other: bool = False) -> str:
        column = int(self._columns[place])
        if column == facts.GPU_WHOLE and other:
            return GPU_REPLICAS
        name = _DEVICE_UNITS.get(column) or self._cluster.resources.names[column]
        return f"legal places for {name.removeprefix(RESOURCE_PREFIX)}" if other else name
