"""Computes the hash of a pod template: a short text that is equal for equal templates.

The hash is part of the names and labels of ReplicaSets, pods and revisions. Kubernetes hashes a dump of Go structs,
which other programs cannot reproduce. Clients only need a hash that is stable, has no vowels that could form words, and
changes with the collision count. The API server stores a defaulted template in one form, so a hash of its sorted JSON
is stable.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Any, collisions: int | None = None) -> str:
    """Eight to ten letters, as in Kubernetes."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic"))
    if collisions is not None:
        digest.update(collisions.to_bytes(4, "little"))
    number = int.from_bytes(digest.digest()[:4], "little")
    return "".join(_LETTERS[int(digit) % len(_LETTERS)] for digit in f"{number:08d}")
