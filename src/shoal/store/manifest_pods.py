"""Reads the pods of a set of manifests and those that its controllers would create, with their identities, priorities,
and gangs with succeeded pods.

Ages follow the order, not the time: of two pods without a creation time the first in the manifests is the older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from shoal.api.pod import Pod
from shoal.engine.from_api import Priorities, Rank, who_of_pod
from shoal.store.gangs import GangMember
from shoal.store.held_pods import HeldPod
from shoal.store.inventory import Inventory, Placed
from shoal.store.manifest_admission import ManifestAdmission
from shoal.store.operator_pods import OperatorPods
from shoal.store.replicas import made_pods
from shoal.units.errors import UserError, Where

FIRST = datetime.min.replace(tzinfo=UTC)


class ManifestPods:
    def __init__(
        self, inventory: Inventory, priorities: Priorities, operators: OperatorPods, warnings: list[str]
    ) -> None:
        self._priorities = priorities
        self.ranks: dict[str, Rank] = {}
        """By the key of an existing pod."""
        self.ended: list[GangMember] = []
        """A gang needs one pod less for each pod that succeeded."""
        made = [*made_pods(inventory, warnings), *operators.made(warnings)]
        admission = ManifestAdmission(inventory, priorities)
        self.there = self._read(admission.admitted([*inventory.of(Pod), *made]))
        """All pods that have not ended."""
        self.refused: Mapping[str, HeldPod] = admission.refused
        """Pods that an API server would not create, by key."""

    def _read(self, pods: list[Placed[Pod]]) -> list[GangMember]:
        members: dict[str, GangMember] = {}
        by_age = sorted(range(len(pods)), key=lambda at: pods[at].value.metadata.creation_timestamp or FIRST)
        orders = {at: order for order, at in enumerate(by_age)}
        for at, placed in enumerate(pods):
            pod = placed.value
            key = pod.metadata.key
            if pod.is_finished():
                self._note_end(placed)
                continue
            if key in members:
                raise UserError(
                    f"makes a pod {key}, which already exists", where=placed.where.with_path("metadata.name")
                )
            try:
                rank = self._priorities.of_pod(pod.spec, Where(path="spec"))
                who = who_of_pod(pod, rank, order=orders[at])
            except UserError as error:
                raise placed.reported(error) from error
            self.ranks[key] = rank
            members[key] = GangMember(placed, who)
        return list(members.values())

    def _note_end(self, placed: Placed[Pod]) -> None:
        if placed.value.has_succeeded():
            try:
                self.ended.append(GangMember(placed, who_of_pod(placed.value, Rank())))
            except UserError as error:
                raise placed.reported(error) from error
