"""Makes and reads the reference to the controller that owns an object."""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.kind import Kind


def controlled_by(kind: Kind, name: str, uid: str) -> Obj:
    """The owner is deleted after the objects that it controls, if its deletion waits for them."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
