"""PriorityLevelConfigurations: how much at a time, and how long the queues are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.flowcontrol.flows import check_conditions
from shoal.embedded.apiserver.strategy import Strategy

_MOST_QUEUES = 10_000_000
_HASH_BITS = 60
_USUAL_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


class PriorityLevelStrategy(Strategy):
    has_status = True
    counts_generation = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        if (exempt := spec.get("exempt")) is not None or spec.get("type") == "Exempt":
            exempt = spec.setdefault("exempt", exempt or {})
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        if (limited := spec.get("limited")) is not None:
            limited.setdefault("nominalConcurrencyShares", 30)
            limited.setdefault("lendablePercent", 0)
            response = limited.setdefault("limitResponse", {})
            if (queuing := response.get("queuing")) is not None:
                for key, value in _USUAL_QUEUING.items():
                    queuing[key] = queuing.get(key) or value
        obj.setdefault("status", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        kind = spec.get("type", "")
        if (name == "exempt") is not (kind == "Exempt"):
            words = "type must be 'Exempt' if and only if name is 'exempt'"
            errors.append(bad_value("spec.type", kind, words))
        if kind == "Exempt":
            if spec.get("limited") is not None:
                errors.append(not_allowed("spec.limited", "must be nil if the type is not Limited"))
            _check_shares(spec.get("exempt") or {}, "spec.exempt", errors)
        elif kind == "Limited":
            if spec.get("exempt") is not None:
                errors.append(not_allowed("spec.exempt", "must be nil if the type is Limited"))
            if (limited := spec.get("limited")) is None:
                errors.append(required("spec.limited", "must not be empty when type is Limited"))
            else:
                _check_shares(limited, "spec.limited", errors)
                _check_response(limited.get("limitResponse") or {}, "spec.limited.limitResponse", errors)
        else:
            errors.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        return check_conditions(new)


def _check_shares(held: Obj, path: str, errors: Errors) -> None:
    shares = held.get("nominalConcurrencyShares", 0)
    if shares < 0:
        errors.append(bad_value(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    lent = held.get("lendablePercent", 0)
    if not 0 <= lent <= 100:
        errors.append(bad_value(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive"))
    borrowed = held.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        words = "if specified, must be a non-negative integer"
        errors.append(bad_value(f"{path}.borrowingLimitPercent", borrowed, words))


def _check_response(response: Obj, path: str, errors: Errors) -> None:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            words = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(not_allowed(f"{path}.queuing", words))
    elif kind != "Queue":
        errors.append(not_supported(f"{path}.type", kind, ("Queue", "Reject")))
    elif queuing is None:
        words = "must not be empty if limited.limitResponse.type is Limited"
        errors.append(required(f"{path}.queuing", words))
    else:
        _check_queuing(queuing, f"{path}.queuing", errors)


def _check_queuing(queuing: Obj, path: str, errors: Errors) -> None:
    queues, hand, length = (queuing.get(key, 0) for key in ("queues", "handSize", "queueLengthLimit"))
    if length <= 0:
        errors.append(bad_value(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(bad_value(f"{path}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        errors.append(bad_value(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    if hand <= 0:
        errors.append(bad_value(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        errors.append(bad_value(f"{path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif _needed_bits(queues, hand) > _HASH_BITS:
        words = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        )
        errors.append(bad_value(f"{path}.handSize", hand, words))


def _needed_bits(queues: int, hand: int) -> int:
    """How long a number must be to deal a hand of that many different queues."""
    return math.ceil(math.log2(queues) * hand)
