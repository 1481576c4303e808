"""Continue tokens: where a page of a list ended, and at which revision the list is read.

They are opaque to clients, so they need only be stable for as long as the history is kept.
"""

from __future__ import annotations

import base64
import binascii
import re

import msgspec

from shoal.cluster.status import ApiError, bad_request


class Position(msgspec.Struct, frozen=True, array_like=True):
    revision: int
    namespace: str
    name: str


def token(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).rstrip(b"=").decode()


def position_of(text: str) -> Position:
    if not re.fullmatch(r"[\w-]{1,2048}", text):
        raise _not_valid()
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        found = msgspec.json.decode(raw, type=Position)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise _not_valid() from None
    return found


def _not_valid() -> ApiError:
    return bad_request("continue key is not valid: the token was not made by this server")
