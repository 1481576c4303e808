"""Admission fair sharing: how much each local queue used lately, so that those that used less come first.

Use is weighted over resources and forgotten by half every half-life. Between two changes of what a queue holds the
rule has a closed form, so nothing needs to tick: use is brought up to date when it is read or changed.

Rejected: sampling every five minutes, as Kueue does. A sample in between says nothing that the closed form does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.resources import CPU
from shoal.engine.queues.facts import Admission, Settings

INFINITE = float("inf")


@dataclass(slots=True)
class _Account:
    consumed: float = 0.0
    running: float = 0.0
    at_s: float = 0.0


class LocalUsage:
    """One account per local queue."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._accounts: dict[str, _Account] = {}
        self._weights: dict[str, float] = {}
        self._told: dict[str, float] = {}

    @property
    def is_on(self) -> bool:
        return self._settings.usage_half_life_s is not None

    def weigh(self, queue: str, weight: float, used: float | None, now_s: float) -> None:
        """What the local queue's object says of it; the same word twice is no news."""
        self._weights[queue] = weight
        if used is not None and self._told.get(queue) != used:
            self._told[queue] = used
            account = self._accounts.setdefault(queue, _Account(at_s=now_s))
            account.consumed, account.at_s = used, now_s

    def of(self, queue: str, now_s: float) -> float:
        """Its use as the order of the line counts it."""
        weight = self._weights.get(queue, 1.0)
        account = self._accounts.get(queue)
        if account is None:
            return 0.0 if weight > 0 else INFINITE
        self._settle(account, now_s)
        return account.consumed / weight if weight > 0 else INFINITE

    def admitted(self, queue: str, admission: Admission, now_s: float, *, is_new: bool) -> None:
        """It holds more; a new admission counts at once as if it had run for one sampling interval."""
        account = self._accounts.setdefault(queue, _Account(at_s=now_s))
        self._settle(account, now_s)
        amount = self._weighted(admission)
        account.running += amount
        if is_new:
            account.consumed += amount * self._share(self._settings.usage_sampling_s)

    def released(self, queue: str, admission: Admission, now_s: float) -> None:
        account = self._accounts.get(queue)
        if account is not None:
            self._settle(account, now_s)
            account.running = max(0.0, account.running - self._weighted(admission))

    def _settle(self, account: _Account, now_s: float) -> None:
        if not self._settings.usage_half_life_s:
            # Nothing is remembered at all: as soon as time has passed, all are equal.
            account.consumed = account.consumed if now_s <= account.at_s else 0.0
        share = self._share(now_s - account.at_s)
        account.consumed += (account.running - account.consumed) * share
        account.at_s = max(account.at_s, now_s)

    def _share(self, elapsed_s: float) -> float:
        """How much of the past is forgotten after so long."""
        half_life = self._settings.usage_half_life_s or 0.0
        if elapsed_s <= 0 or half_life <= 0:
            return 0.0
        return float(1.0 - 0.5 ** (elapsed_s / half_life))

    def _weighted(self, admission: Admission) -> float:
        weights = self._settings.usage_weights
        total = 0.0
        for pod_set in admission.pod_sets:
            for resource, amount in pod_set.usage.items():
                total += weights.get(resource, 1.0) * (amount / 1000 if resource == CPU else amount)
        return total
