"""The definitions of Kueue's kinds with a webhook that converts between their versions, for clusters that have one.

The embedded cluster needs none: it converts these kinds by itself (`provided.py`). Where a webhook answers, an object
that was written in one version is converted to the other; without one, both versions keep the names of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables

Obj = dict[str, Any]
_KUEUE = "kueue"


def kueue_definitions(client: Mapping[str, Any] | None = None) -> Iterator[Obj]:
    """`client` is the webhook's clientConfig: a url or service, its path, the caBundle. Without it nothing converts."""
    for file, table in tables():
        if table.project == _KUEUE:
            yield from led(definitions_of(file, table), table.project, client)


def led(definitions: Iterable[Obj], project: str, client: Mapping[str, Any] | None) -> Iterator[Obj]:
    """The definitions of a project; those of Kueue's with several versions lead to the webhook."""
    for definition in definitions:
        if client is not None and project == _KUEUE and len(definition["spec"]["versions"]) > 1:
            webhook = {"clientConfig": dict(client), "conversionReviewVersions": ["v1"]}
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield definition
