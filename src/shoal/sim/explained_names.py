"""Finds the pod, gang or workload that a name means before the first round, since evicted pods are gone after it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from shoal.engine.cluster import Cluster
from shoal.sim.rounds import Rounds
from shoal.sim.workload_explanation import queue_names
from shoal.store.held_pods import Hold
from shoal.units.errors import UserError, excerpt

_NEAR = 3
_ALIKE = 0.75


class ExplainedNames:
    """Names of pods, gangs and workloads."""

    def __init__(self, rounds: Rounds, gated: Mapping[str, Hold]) -> None:
        cluster: Cluster = rounds.cluster
        gangs = {gang.name for gang in cluster.gangs}
        self._names = sorted({*cluster.pods, *cluster.pending.in_order(), *gated, *gangs, *queue_names(rounds)})

    def find(self, name: str) -> str:
        """A full name as it is; a bare one if only one namespace has it."""
        if name in self._names:
            return name
        found = [known for known in self._names if known.partition("/")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{excerpt(name)} is in several namespaces", fix=f"name one of {', '.join(found[:_NEAR])}")
        bare = {known.partition("/")[2]: known for known in self._names}
        near = difflib.get_close_matches(name, self._names, n=_NEAR, cutoff=_ALIKE)
        short = name.rpartition("/")[2]
        near += [bare[each] for each in difflib.get_close_matches(short, bare, n=_NEAR, cutoff=_ALIKE)]
        names = list(dict.fromkeys(near))[:_NEAR]
        fix = f"did you mean {' or '.join(names)}?" if names else f"{len(self._names):,} pods and gangs exist"
        raise UserError(f"pod or gang {excerpt(name)} not found", fix=fix)
