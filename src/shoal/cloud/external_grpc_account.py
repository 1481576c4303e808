"""Represents the account of launches at an external gRPC provider, which a ConfigMap keeps.

The provider knows neither requests nor tags. What it should have is the number of machines outside Shoal's launches and
one for each place of a launch; a target size below that means that a request was not carried out, or not yet. What is
requested, given up and deleted is in the account before the request, and leaves it only after the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from shoal.cloud.launch_account import Launch, Place, free_places, machines_of, place_of, place_text, without_place
from shoal.units.errors import UserError, Where

NAMESPACE: Final = "kube-system"
NAME: Final = "shoal-external-grpc"
KEY: Final = "groups"

Amount = Annotated[int, msgspec.Meta(ge=0)]


class GroupAccount(msgspec.Struct, frozen=True):
    """Of one node group."""

    outside: tuple[str, ...] = ()
    """The instances that are not Shoal's."""
    outside_count: Amount = 0
    """How many machines the group had for others, also those that had no instance yet."""
    launches: Mapping[str, Launch] = {}
    places: Mapping[str, str] = {}
    """The places of instances."""
    asked: Amount = 0
    """Machines of the last request to increase the group, until it is known that it was carried out."""
    doubted: Amount = 0
    """Machines of earlier such requests, and of those whose launch was given up: they may still come, beside those of
    the last one.
    """
    late_until_s: float = 0.0
    """Until when a request without an answer may still be carried out, in seconds since 1970."""
    ending: tuple[str, ...] = ()
    """The instances whose deletion is to be requested."""
    deleted: tuple[str, ...] = ()
    """The instances whose deletion was accepted, until they are gone."""
    unmade: Amount = 0
    """Machines that were given up before they had an instance: the target is lowered by them."""

    @property
    def wanted(self) -> int:
        return self.outside_count + machines_of(self.launches)

    @property
    def expected(self) -> int:
        """The target size, once all requests are carried out but for those that lower it."""
        return self.wanted + len(self.ending) + self.unmade

    @property
    def is_closed(self) -> bool:
        return not (self.launches or self.ending or self.deleted or self.unmade or self.doubted or self.asked)

    def with_launch(self, token: str, launch: Launch, instances: Collection[str], target: int) -> GroupAccount:
        """`instances`, `target`: of the provider before the request. Those of others are counted while Shoal has none
        there: later the target may lack a request that is on its way.
        """
        account = self
        if self.is_closed:
            outside = tuple(sorted(instances))
            account = replace(self, outside=outside, outside_count=max(target, len(outside)))
        return replace(account, launches={**self.launches, token: launch})

    def with_instances(self, instances: Sequence[str]) -> GroupAccount:
        """Once new instances have taken their places. Places of instances that are gone are free again. Instances that
        an uncertain request brought twice, or that came after they were given up, are ending.
        """
        kept = {name: text for name, text in self.places.items() if name in instances}
        held = {place for text in kept.values() if (place := place_of(text)) is not None}
        known = {*kept, *self.outside, *self.ending, *self.deleted}
        new = [each for each in sorted(instances) if each not in known]
        free = free_places(self.launches, held)
        for name, place in zip(new, free, strict=False):
            kept[name] = place_text(place)
        others = self.outside_count - sum(each in instances for each in self.outside)
        surplus = new[len(free) + max(others, 0) :][: self.unmade + self.doubted]
        unmade = max(self.unmade - len(surplus), 0)
        return replace(
            self,
            places=kept,
            ending=(*(each for each in self.ending if each in instances), *surplus),
            deleted=tuple(each for each in self.deleted if each in instances),
            unmade=unmade,
            doubted=self.doubted - (len(surplus) - (self.unmade - unmade)),
        )

    def by_place(self) -> dict[Place, str]:
        found = ((place_of(text), name) for name, text in self.places.items())
        return {place: name for place, name in found if place is not None}

    def asking(self, count: int, late_until_s: float) -> GroupAccount:
        """Before a request for so many machines: an earlier one of which nothing is known may still be carried out."""
        return replace(self, asked=count, doubted=self.doubted + self.asked, late_until_s=late_until_s)

    def lowered(self, count: int, now_s: float) -> GroupAccount:
        """Once the target is lowered by this number. Other machines that were given up are not in the target: those of
        a request without an answer may still come, until its time is over. Afterwards, machines that come are those of
        others.
        """
        answered = max(self.unmade - self.asked, 0)
        late = self.asked + self.doubted - max(count - answered, 0)
        given_up = min(max(self.unmade - count, 0), self.asked)
        asked = min(self.asked - given_up, late) if self.launches else 0
        doubted = late - asked if now_s < self.late_until_s else 0
        return replace(self, unmade=0, asked=asked, doubted=doubted)

    def without(self, places: Collection[Place]) -> GroupAccount:
        """Without these machines: those that exist are ending, the others are not made."""
        launches: Mapping[str, Launch] = self.launches
        for place in places:
            launches = without_place(launches, place)
        texts = {place_text(place) for place in places}
        ended = sorted(name for name, text in self.places.items() if text in texts)
        left = {name: text for name, text in self.places.items() if text not in texts}
        return replace(
            self,
            launches=launches,
            places=left,
            ending=(*self.ending, *ended),
            unmade=self.unmade + len(places) - len(ended),
        )


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
    """Groups in which nothing is Shoal's are forgotten."""
    return msgspec.json.encode({key: each for key, each in accounts.items() if not each.is_closed}).decode()
