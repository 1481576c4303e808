"""One object that is there from the start, in its stored version and with its address.

Seeds carry what a user would have written and what defaulting would have added; uid, creationTimestamp and
resourceVersion are set by the operations, as for all objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.embedded.apiserver.resource import Home, Obj, Ref


class Seed(NamedTuple):
    ref: Ref
    obj: Obj


def seed(kind: tuple[str, str, str], name: str, namespace: str = "", /, **fields: Any) -> Seed:
    """`kind` is api version, kind and plural; `labels` and `annotations` among the fields go into the metadata."""
    api_version, kind_name, plural = kind
    metadata: Obj = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    for key in ("labels", "annotations"):
        found = fields.pop(key, None)
        if found:
            metadata[key] = dict(found)
    group = api_version.rpartition("/")[0]
    obj = {"apiVersion": api_version, "kind": kind_name, "metadata": metadata, **fields}
    return Seed(Ref(Home(group, plural), namespace, name), obj)
