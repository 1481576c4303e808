"""Writes a record of use as a text of bounded length, to be kept in an annotation, and reads it back.

The text is compressed JSON. A record that would be too long is made coarser until it fits, also the one in memory, so
that a process that goes on and one that starts anew have the same.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from binascii import Error

import msgspec

from shoal.engine.queues.disciplines.kai.usage_record import UsageRecord, UsageState

MOST_CHARACTERS = 220_000
"""All annotations of an object together may have 256 KiB."""
_MOST_ENTRIES = 10_000
"""Amounts of a queue in a bucket. More would be too long in any case, and take long to compress."""
_MOST_BYTES = 64 << 20
"""A text that becomes longer than this was not written here."""
_LAST_S = 253_402_300_799
_states = msgspec.json.Decoder(UsageState)


def usage_text(record: UsageRecord, most: int = MOST_CHARACTERS) -> str:
    """Empty where nothing was measured yet, and where even one bucket is too long."""
    while record.state is not None and len(record.state.buckets) > 1 and _entries(record.state) > _MOST_ENTRIES:
        record.make_coarser()
    while record.state is not None:
        text = b64encode(zlib.compress(msgspec.json.encode(record.state))).decode()
        if len(text) <= most:
            return text
        if len(record.state.buckets) < 2:
            break
        record.make_coarser()
    return ""


def usage_state(text: str) -> UsageState:
    """Raises ValueError for a text that was not written by `usage_text`."""
    try:
        packed = b64decode(text, validate=True)
        opened = zlib.decompressobj()
        found = _states.decode(opened.decompress(packed, _MOST_BYTES))
    except (Error, zlib.error, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from error
    if any(len(amounts) != 3 for bucket in found.buckets for amounts in (bucket.capacity, *bucket.use.values())):
        raise ValueError("an amount does not have three numbers")
    if not all(0 <= moment_s <= _LAST_S for moment_s in (found.until_s, found.window_s)):
        raise ValueError("a time is not between 1970 and 9999")
    return found


def _entries(state: UsageState) -> int:
    return sum(len(bucket.use) for bucket in state.buckets)
