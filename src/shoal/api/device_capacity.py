"""Capacities of a DRA device, and the portions in which several claims may consume them at once.

A policy belongs to devices that may be shared: a list of portions, or a range with a step. A claim that
asks for less than a portion gets the next one, a claim that does not say gets the default.
"""

from __future__ import annotations

from shoal.api.device_classes import check_length
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

MOST_VALUES = 10


class ValidRange(ApiStruct, frozen=True):
    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None

    def contains(self, amount: Quantity) -> bool:
        if amount < self.min or (self.max is not None and amount > self.max):
            return False
        return self.step is None or (amount.nano - self.min.nano) % self.step.nano == 0

    def check(self, total: Quantity, where: Where) -> None:
        if self.min.nano < 0:
            raise UserError(f"must be 0 or more, got {self.min}", where=where.below("min"))
        if self.step is not None and self.step.nano <= 0:
            raise UserError(f"must be greater than zero, got {self.step}", where=where.below("step"))
        top = total if self.max is None else self.max
        if top > total:
            raise UserError(f"must be at most the capacity of {total}, got {top}", where=where.below("max"))
        if self.min > top:
            raise UserError(f"must be at most {top}, got {self.min}", where=where.below("min"))
        if self.max is not None and not self.contains(self.max):
            raise UserError(f"must be min plus a multiple of step, got {self.max}", where=where.below("max"))


class RequestPolicy(ApiStruct, frozen=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None

    def check(self, total: Quantity, where: Where) -> None:
        if self.valid_values and self.valid_range is not None:
            raise UserError("validValues and validRange cannot be both set", where=where)
        if self.default is None:
            if self.valid_values or self.valid_range is not None:
                raise UserError("is required with validValues or validRange", where=where.below("default"))
            return
        if not 0 <= self.default.nano <= total.nano:
            what = f"must be from 0 to the capacity of {total}, got {self.default}"
            raise UserError(what, where=where.below("default"))
        self._check_values(total, where.below("validValues"))
        if self.valid_range is not None:
            self.valid_range.check(total, where.below("validRange"))
        if not self._allows(self.default):
            raise UserError(f"{self.default} is not one of the valid amounts", where=where.below("default"))

    def portion(self, asked: Quantity | None) -> Quantity | None:
        """What a claim that asks for this much takes; None where no portion is large enough."""
        if asked is None:
            return self.default
        if self.valid_values:
            return next((value for value in self.valid_values if value >= asked), None)
        bounds = self.valid_range
        if bounds is None:
            return asked
        taken = max(asked, bounds.min)
        if bounds.step is not None:
            steps = -((bounds.min.nano - taken.nano) // bounds.step.nano)
            taken = Quantity(bounds.min.nano + steps * bounds.step.nano, bounds.min.format)
        return None if bounds.max is not None and taken > bounds.max else taken

    def _allows(self, amount: Quantity) -> bool:
        if self.valid_values:
            return amount in self.valid_values
        return self.valid_range is None or self.valid_range.contains(amount)

    def _check_values(self, total: Quantity, where: Where) -> None:
        check_length(self.valid_values, MOST_VALUES, where)
        for index, value in enumerate(self.valid_values):
            here = where.below(f"[{index}]")
            if not 0 <= value.nano <= total.nano:
                raise UserError(f"must be from 0 to the capacity of {total}, got {value}", where=here)
            if index and value <= self.valid_values[index - 1]:
                raise UserError("must be larger than the value before it", where=here, fix="sort the values")


class Capacity(ApiStruct, frozen=True):
    value: Quantity
    request_policy: RequestPolicy | None = None

    def portion(self, asked: Quantity | None) -> Quantity | None:
        """What a claim takes of a shared device: all of it where neither the claim nor a policy says less."""
        policy = self.request_policy
        taken = asked if policy is None else policy.portion(asked)
        if taken is None:
            return self.value if asked is None else None
        return taken if taken <= self.value else None

    def check(self, where: Where, *, is_shared: bool) -> None:
        if self.value.nano < 0:
            raise UserError(f"must be 0 or more, got {self.value}", where=where.below("value"))
        if self.request_policy is None:
            return
        if not is_shared:
            what = "is only for devices with allowMultipleAllocations: true"
            raise UserError(what, where=where.below("requestPolicy"))
        self.request_policy.check(self.value, where.below("requestPolicy"))
