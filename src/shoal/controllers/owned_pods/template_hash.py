"""The name of a template: a short text that equal templates share.

It goes into the names and labels of replica sets, pods and revisions. Kubernetes hashes a dump of Go structs, which
nobody else can repeat; what matters to clients is only that it is stable, has no vowels that could spell words, and
changes with the collision count. A template that the server has filled in and stored is written the same way each
time, so hashing its sorted JSON is stable.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Any, collisions: int | None = None) -> str:
    """Eight to ten letters, as Kubernetes' own have."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic"))
    if collisions is not None:
        digest.update(collisions.to_bytes(4, "little"))
    number = int.from_bytes(digest.digest()[:4], "little")
    return "".join(_LETTERS[int(digit) % len(_LETTERS)] for digit in f"{number:08d}")
