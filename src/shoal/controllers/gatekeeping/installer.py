"""Keeps the admission policies installed: writes those that are missing or differ, and nothing else.

Objects without Shoal's labels are not changed, even if they have the same names. Where policies are not served, nothing
is installed here and the webhook does their work (`webhook.py`); where Kueue admits jobs in this cluster, the policies
of queues are removed and that of the rendezvous stays.

Rejected: installing once at the start. After an upgrade, an accidental deletion or a change by another version of
Shoal, jobs would silently not be held.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LOCAL_QUEUES
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import Kind
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.refusals import ForbiddenError, InvalidError, NotFoundError
from shoal.client.served import Served
from shoal.client.wanted_fields import says
from shoal.controllers.gatekeeping.held_kinds import HoldingRules, Rules
from shoal.controllers.gatekeeping.policies import (
    BINDINGS,
    CHECKING,
    CHECKING_BINDINGS,
    OLDER_BINDINGS,
    OLDER_POLICIES,
    OURS,
    POLICIES,
    PolicyPair,
    checking_policies,
    devices_policy,
    parts_policy,
    queue_policies,
    rendezvous_policy,
)
from shoal.controllers.gatekeeping.rule_policies import owned_objects
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.mutations import mutating_policies
from shoal.policy.admission_rules.policies import validating_policies
from shoal.store.watched.queue_configuration import WhenNew, never_new

_log = logging.getLogger("shoal.gatekeeping")
_OLDER_QUEUES = LOCAL_QUEUES._replace(version="v1beta1")
_THE_ONE: Key = ("", "gatekeeping")
_POLL_S = 30.0
_REFUSED_S = 60.0


def gatekeeping_controller(
    context: Context,
    served: Served,
    rules: Rules = HoldingRules,
    when_new: WhenNew = never_new,
    modes: RuleModes | None = None,
) -> Controller:
    """`modes`: of the admission rules; None: they are not installed."""
    installer = Installer(context, served, rules, modes)
    loop = Loop(context, installer.reconcile, workers=1)
    loop.wake(_THE_ONE)
    when_new(lambda: loop.wake(_THE_ONE))

    def follow(kind: Kind) -> None:
        context.informers.of(kind).on_change(lambda _before, _after: loop.wake(_THE_ONE, 0.1))
        # The first look may have been before the kinds of the server were known.
        loop.wake(_THE_ONE, 0.1)

    served.when_there(POLICIES, follow, OLDER_POLICIES)
    served.when_there(BINDINGS, follow, OLDER_BINDINGS)
    served.when_there(CHECKING, follow)
    served.when_there(CHECKING_BINDINGS, follow)
    served.when_there(LOCAL_QUEUES, lambda _: loop.wake(_THE_ONE), _OLDER_QUEUES)
    return loop


class Installer:
    def __init__(self, context: Context, served: Served, rules: Rules, modes: RuleModes | None = None) -> None:
        self._context = context
        self._served = served
        self._rules = rules
        self._checked = [] if modes is None else list(owned_objects(validating_policies(modes)))
        self._added = [] if modes is None else list(owned_objects(mutating_policies(modes)))
        self._reported = ""
        self._right: dict[tuple[Kind, str], tuple[int, Obj]] = {}
        """The versions of objects with the right content. They are stored because the comparison of long expressions is
        costly.
        """

    async def reconcile(self, _: Key) -> float:
        """Check all policies; returns the seconds until the next check."""
        # Without queues, held jobs would never be admitted.
        queues = self._served.find(LOCAL_QUEUES)
        rules = self._rules() if queues is not None else None
        checking = [*(checking_policies(rules) if rules else []), devices_policy(), parts_policy()]
        refused = await self._install(CHECKING, CHECKING_BINDINGS, [*_objects(checking), *self._checked])
        holding = queue_policies(rules, queues) if rules is not None else []
        mutating = [*_objects(holding), *self._added, *_objects([rendezvous_policy()])]
        refused += await self._install(POLICIES, BINDINGS, mutating)
        self._report("; ".join(refused))
        return _REFUSED_S if refused else _POLL_S

    async def _install(self, policy: Kind, binding: Kind, wanted: Sequence[tuple[Obj, list[Obj]]]) -> list[str]:
        """Returns the refusals; the other objects are installed nevertheless."""
        policies, bindings = self._served.find(policy), self._served.find(binding)
        if policies is None or bindings is None:
            return []
        await self._context.informers.synced((policies, bindings))
        names = {_name(obj) for made, bound in wanted for obj in (made, *bound)}
        refused = []
        for made, bound in wanted:
            try:
                await self._put(policies, made)
                for obj in bound:
                    await self._put(bindings, obj)
            except (ForbiddenError, InvalidError) as error:
                refused.append(str(error))
        # Bindings are deleted before policies: a binding without its policy would reject the objects that it matches.
        for kind in (bindings, policies):
            for item in self._context.informers.of(kind):
                if item.name not in names and is_ours(item.obj()):
                    await self._remove(kind, item)
        return refused

    async def _put(self, kind: Kind, wanted: Obj) -> None:
        name = wanted["metadata"]["name"]
        item = self._context.informers.of(kind).get("", name)
        if item is not None:
            if self._right.get((kind, name)) == (item.version, wanted):
                return
            present = item.obj()
            if says(present, wanted):
                self._right[kind, name] = (item.version, wanted)
                return
            if not is_ours(present):
                raise InvalidError(f"{kind.name} {name} was not created by Shoal and is not changed")
        body = {"apiVersion": kind.api_version, "kind": kind.name, **wanted}
        await self._context.api.patch(kind, "", name, Patch("apply", body, force=True))

    async def _remove(self, kind: Kind, item: Item) -> None:
        try:
            await self._context.api.delete(kind, "", item.name)
        except NotFoundError:
            return

    def _report(self, words: str) -> None:
        """Log a fault once, until it is resolved."""
        if words != self._reported:
            self._reported = words
            if words:
                _log.warning("jobs are not held back at their creation: %s", words)


def _objects(pairs: Sequence[PolicyPair]) -> list[tuple[Obj, list[Obj]]]:
    return [(pair.policy, [pair.binding]) for pair in pairs]


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def is_ours(obj: Obj) -> bool:
    return says(obj["metadata"].get("labels") or {}, OURS)
