"""Represents the account of launches at an external gRPC provider, which a ConfigMap keeps.

The provider knows neither requests nor tags. What it should have is the number of machines outside Shoal's launches and
one for each place of a launch; a target size below that means that a request was not carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.cloud.launch_account import Launch, Place, free_places, machines_of, place_of, place_text, without_place
from shoal.units.errors import UserError, Where

NAMESPACE: Final = "kube-system"
NAME: Final = "shoal-external-grpc"
KEY: Final = "groups"


class GroupAccount(msgspec.Struct, frozen=True):
    """Of one node group."""

    outside: tuple[str, ...] = ()
    """The instances that are not Shoal's."""
    outside_count: int = 0
    """How many machines the group had for others, also those that had no instance yet."""
    launches: Mapping[str, Launch] = {}
    places: Mapping[str, str] = {}
    """The places of instances."""
    ending: tuple[str, ...] = ()
    """The instances whose deletion was decided."""

    @property
    def wanted(self) -> int:
        return self.outside_count + machines_of(self.launches)

    def with_launch(self, token: str, launch: Launch, instances: Collection[str], target: int) -> GroupAccount:
        """`instances`, `target`: of the provider before the request."""
        launched = {*self.places, *self.ending}
        outside = tuple(sorted(each for each in instances if each not in launched))
        # Instances that are ending may still count in the target.
        others = target - machines_of(self.launches) - len([each for each in self.ending if each in instances])
        return replace(
            self,
            outside=outside,
            outside_count=max(others, len(outside)),
            launches={**self.launches, token: launch},
        )

    def with_instances(self, instances: Sequence[str]) -> GroupAccount:
        """Once new instances have taken their places. Places of instances that are gone are free again."""
        kept = {name: text for name, text in self.places.items() if name in instances}
        held = {place for text in kept.values() if (place := place_of(text)) is not None}
        new = [each for each in sorted(instances) if each not in {*kept, *self.outside, *self.ending}]
        for name, place in zip(new, free_places(self.launches, held), strict=False):
            kept[name] = place_text(place)
        ending = tuple(each for each in self.ending if each in instances)
        return replace(self, places=kept, ending=ending)

    def by_place(self) -> dict[Place, str]:
        found = ((place_of(text), name) for name, text in self.places.items())
        return {place: name for place, name in found if place is not None}

    def without(self, places: Collection[Place]) -> GroupAccount:
        """Without these machines; those that exist are ending."""
        launches: Mapping[str, Launch] = self.launches
        for place in places:
            launches = without_place(launches, place)
        texts = {place_text(place) for place in places}
        ended = sorted(name for name, text in self.places.items() if text in texts)
        left = {name: text for name, text in self.places.items() if text not in texts}
        return replace(self, launches=launches, places=left, ending=(*self.ending, *ended))


Accounts = dict[str, GroupAccount]
"""By the id of the group."""


def read_accounts(text: str) -> Accounts:
    where = Where(obj=f"ConfigMap {NAMESPACE}/{NAME}", path=f"data.{KEY}")
    try:
        return msgspec.json.decode(text or "{}", type=Accounts)
    except msgspec.MsgspecError as error:
        fix = "restore it, or remove it together with the machines that it lists"
        raise UserError(f"it was changed by others: {error}", where=where, fix=fix) from error


def accounts_text(accounts: Accounts) -> str:
    """Groups without launches are forgotten."""
    return msgspec.json.encode({key: each for key, each in accounts.items() if each.launches or each.ending}).decode()
