"""Frees capacity for pods that must be together or apart: subgroup by subgroup, domain by domain, pod by pod.

A team that must stay in one domain is tried in each that could hold it, and goes where its victims cost least. Pods are
placed as capacity is made for them, so the next one sees what is left. The proof comes afterwards, by placing the gang
its own way.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.fitter import Fitter
from shoal.engine.gangs.next_pods import PodsToPlace
from shoal.engine.preemption.candidates import Mask
from shoal.engine.preemption.capacity_bounds import FeasibleRows, PodCapacity, Rows
from shoal.engine.preemption.domain_estimates import DomainEstimates
from shoal.engine.preemption.node_costs import RowBounds
from shoal.engine.preemption.policy import Price
from shoal.engine.preemption.preemptor import Preemptor, wanted
from shoal.engine.preemption.victims import Victims
from shoal.engine.topology.tree import NO_DOMAIN


class Closeness:
    """Makes room for one claimant's teams."""

    def __init__(self, fitter: Fitter, victims: Victims, claim: Preemptor, reaches: FeasibleRows) -> None:
        self._fitter = fitter
        self._cluster = fitter.cluster
        self._victims = victims
        self._claim = claim
        self._reaches = reaches

    def whole_domains(self) -> list[Rows] | None:
        """Sets of nodes in any of which the whole preemptor may run; None when its parts must be distinguished."""
        want = self._claim.want
        if any(map(_is_bound, want.parts)) or want.requirement.slice_level:
            return None
        return self._domains(want, self._cluster.all_rows())

    def free(self, eligible: Mask) -> list[int] | None:
        """Victims that let every pod fit, one after the other; no victim is taken when it returns."""
        found = self._free(eligible)
        if found is None and len(self._claim.pods) > 1 and self._victims.allowances.covered:
            # The cheap victims may have used up a budget that others cannot do without.
            self._victims.thrifty = True
            found = self._free(eligible)
            self._victims.thrifty = False
        return found

    def _free(self, eligible: Mask) -> list[int] | None:
        mark = self._fitter.ledger.mark()
        free = self._team(self._claim.want, self._cluster.all_rows(), eligible)
        chosen = self._victims.chosen
        self._back(mark, chosen)
        return chosen if free else None

    def _team(self, want: PodsToPlace, rows: Rows, eligible: Mask) -> bool:
        domains = self._domains(want, rows)
        pods = wanted(want)
        if len(domains) > 1 and pods:
            charge = self._cluster.pending[pods[0]].charge
            alike = sum(self._cluster.pending[pod].charge is charge for pod in pods)
            domains = DomainEstimates(self._cluster, self._victims, charge, self._reaches, eligible).best(
                domains, alike
            )
        if len(domains) == 1:
            return self._inside(want, domains[0], eligible)
        best: tuple[Price, int] | None = None
        mark, before = self._fitter.ledger.mark(), set(self._victims.chosen)
        for place, domain in enumerate(domains):
            free = self._inside(want, domain, eligible)
            new = [index for index in self._victims.chosen if index not in before]
            self._back(mark, new)
            if free:
                priced = self._victims.price(new), place
                best = priced if best is None else min(best, priced)
        return best is not None and self._inside(want, domains[best[1]], eligible)

    def _inside(self, want: PodsToPlace, rows: Rows, eligible: Mask) -> bool:
        """Room for a team in these nodes; a failure leaves victims and pods behind."""
        parts = sorted(want.parts[: want.least], key=lambda part: len(list(part.all_pods())), reverse=True)
        if not all(self._team(part, rows, eligible) for part in parts):
            return False
        pods = [pod for demand in want.demands for pod in demand.pods[: demand.need]]
        everywhere = len(rows) == self._cluster.rows
        return all(
            self._fitter.pod(pod, None if everywhere else rows) or self._room_for(pod, rows, eligible) for pod in pods
        )

    def _room_for(self, pod: str, rows: Rows, eligible: Mask) -> bool:
        waiting = self._cluster.pending[pod]
        rows = np.intersect1d(self._reaches.of(waiting.charge), rows, assume_unique=True)
        bounds = RowBounds(
            self._cluster, self._victims, PodCapacity(self._cluster, waiting.charge), eligible, rows, counting=False
        )
        bounds.look(rows)

        def fits(row: int) -> bool:
            return self._fitter.placement.choose(waiting.charge, 0, waiting.who, np.array([row])) is not None

        return bounds.free_capacity(fits) is not None and self._fitter.pod(pod, rows)

    def _domains(self, want: PodsToPlace, rows: Rows) -> list[Rows]:
        """The sets of nodes a team may be in."""
        requirement = want.requirement
        tree = self._fitter.placement.trees.of(requirement) if _must_be_together(want) else None
        if tree is None:
            return [] if _must_be_together(want) else [rows]
        level = tree.level(requirement.required)
        if level < 0:
            return [rows] if not requirement.required else []
        codes = tree.codes[level][rows]
        running: list[int] = [tree.codes[level].item(self._cluster.pods[pod].row) for pod in want.running]
        held = [code for code in running if code != NO_DOMAIN]
        if held:
            domains = [max(set(held), key=held.count)]
        else:
            domains = np.unique(codes[codes != NO_DOMAIN]).tolist()
        return [rows[codes == domain] for domain in domains]

    def _back(self, mark: int, new: list[int]) -> None:
        self._fitter.ledger.rollback(mark)
        self._victims.forget(new)


def _must_be_together(want: PodsToPlace) -> bool:
    return bool(want.requirement.required)


def _is_bound(want: PodsToPlace) -> bool:
    return bool(want.requirement.required or want.requirement.slice_level) or any(map(_is_bound, want.parts))
