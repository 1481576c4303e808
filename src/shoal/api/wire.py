"""Defines how API values are encoded in JSON: camelCase, absent means default, unknown fields ignored, quantities as
text.

Every wire type derives from `ApiStruct`: frozen, because facts are shared freely; `gc=False`, because decoded
objects are trees and a fleet of them would otherwise be walked by the collector again and again. Lists are
tuples, so that a value without maps can be a dictionary key.

Rejected: dataclasses with a hand-written reader, and pydantic. `bench/decode.py` prints what they would cost.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

Quantities = dict[str, Quantity]
# A time without its zone would compare with none.
Timestamp = Annotated[datetime, msgspec.Meta(tz=True)]


class ApiStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The shape shared by all wire types."""


def dec_hook(wanted: type, found: Any) -> Any:
    """What msgspec asks for types it does not know. It adds the field path only to a ValueError."""
    if wanted is Quantity:
        try:
            return to_quantity(found)
        except UserError as error:
            raise ValueError(str(error)) from error
    raise NotImplementedError(f"no JSON spelling for {wanted.__name__}")


def enc_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"no JSON spelling for {type(value).__name__}")


def to_quantity(found: object) -> Quantity:
    """Kubernetes writes quantities as text, people write `cpu: 2` and `cpu: 0.5`: all are read."""
    if isinstance(found, str):
        return Quantity.parse(found.strip())
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return Quantity.parse(repr(found))
    kind = {bool: "true or false", list: "a list", dict: "a mapping"}.get(type(found), type(found).__name__)
    raise UserError(f"expected a quantity, got {kind}", fix="write e.g. 2, 500m or 1.5Gi")


def to_json(value: ApiStruct) -> bytes:
    """The compact JSON spelling, defaults left out; reading it back gives an equal value."""
    return msgspec.json.encode(value, enc_hook=enc_hook)
