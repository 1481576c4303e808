"""Tracks how much each local queue used lately, so that those that used less come first (admission fair sharing).

Use is weighted over resources and forgotten by half every half-life. Between two changes of what a queue holds the
rule has a closed form, so nothing needs to tick: use is brought up to date when it is read or changed.

Rejected: sampling every five minutes, as Kueue does. A sample in between says nothing that the closed form does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.api.resources import CPU
from shoal.engine.queues.facts import LocalQueueFacts, QuotaAssignment
from shoal.engine.queues.settings import Settings

INFINITE = float("inf")
_WEIGHED = ""
"""The resource of usage that is known as one number only."""


@dataclass(slots=True)
class _Account:
    """By resource, in cores and whole units."""

    consumed: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    at_s: float = 0.0


class LocalUsage:
    """One account per local queue."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._accounts: dict[str, _Account] = {}
        self._weights: dict[str, float] = {}
        self._reported: dict[str, float] = {}

    @property
    def is_on(self) -> bool:
        return self._settings.usage_half_life_s is not None

    def weigh(self, local: LocalQueueFacts, now_s: float) -> None:
        """What the local queue's object says of its use; the same word twice is no news. What held quota since the
        moment of which it speaks has used it."""
        queue, used = local.key, local.used
        self._weights[queue] = local.weight
        if used is not None and self._reported.get(queue) != used:
            self._reported[queue] = used
            account = self._accounts.setdefault(queue, _Account(at_s=now_s))
            account.consumed = dict(local.consumed) if local.consumed else {_WEIGHED: used}
            account.at_s = min(local.used_s, now_s) if local.used_s else now_s

    def of(self, queue: str, now_s: float) -> float:
        """Its use as the order of the line counts it."""
        weight = self._weights.get(queue, 1.0)
        account = self._accounts.get(queue)
        if account is None:
            return 0.0 if weight > 0 else INFINITE
        self._advance(account, now_s)
        return self._weighted(account.consumed) / weight if weight > 0 else INFINITE

    def seen(self, queue: str, now_s: float) -> float:
        """The same for callers that only read: nothing is brought up to date, so that no decision hangs on who looked
        when.
        """
        account = self._accounts.get(queue)
        if account is None:
            return self.of(queue, now_s)
        weight, copy = self._weights.get(queue, 1.0), _Account(dict(account.consumed), account.running, account.at_s)
        self._advance(copy, now_s)
        return self._weighted(copy.consumed) / weight if weight > 0 else INFINITE

    def consumed(self, queue: str, now_s: float) -> dict[str, float]:
        """Its use by resource, for callers that store it."""
        account = self._accounts.get(queue)
        if account is None:
            return {}
        self._advance(account, now_s)
        return {name: amount for name, amount in account.consumed.items() if name != _WEIGHED}

    def admitted(self, queue: str, admission: QuotaAssignment, now_s: float, *, is_new: bool) -> None:
        """It holds more; a new admission counts at once as if it had run for one sampling interval."""
        account = self._accounts.setdefault(queue, _Account(at_s=now_s))
        self._advance(account, now_s)
        share = self._share(self._settings.usage_sampling_s) if is_new else 0.0
        for name, amount in _amounts(admission).items():
            account.running[name] = account.running.get(name, 0.0) + amount
            account.consumed[name] = account.consumed.get(name, 0.0) + amount * share

    def released(self, queue: str, admission: QuotaAssignment, now_s: float) -> None:
        account = self._accounts.get(queue)
        if account is not None:
            self._advance(account, now_s)
            for name, amount in _amounts(admission).items():
                account.running[name] = max(0.0, account.running.get(name, 0.0) - amount)

    def _advance(self, account: _Account, now_s: float) -> None:
        if not self._settings.usage_half_life_s and now_s > account.at_s:
            # Nothing is remembered at all: as soon as time has passed, all are equal.
            account.consumed = {}
        share = self._share(now_s - account.at_s)
        if share:
            running, consumed = account.running, account.consumed
            for name in consumed.keys() | running.keys():
                before = consumed.get(name, 0.0)
                consumed[name] = before + (running.get(name, 0.0) - before) * share
        account.at_s = max(account.at_s, now_s)

    def _weighted(self, amounts: Mapping[str, float]) -> float:
        weights = self._settings.usage_weights
        return sum(
            (1.0 if name == _WEIGHED else weights.get(name, 1.0)) * amount for name, amount in sorted(amounts.items())
        )

    def _share(self, elapsed_s: float) -> float:
        """How much of the past is forgotten after so long."""
        half_life = self._settings.usage_half_life_s or 0.0
        if elapsed_s <= 0 or half_life <= 0:
            return 0.0
        return float(1.0 - 0.5 ** (elapsed_s / half_life))


def _amounts(admission: QuotaAssignment) -> dict[str, float]:
    found: dict[str, float] = {}
    for pod_set in admission.pod_sets:
        for name, amount in pod_set.usage.items():
            found[name] = found.get(name, 0.0) + (amount / 1000 if name == CPU else amount)
    return found
